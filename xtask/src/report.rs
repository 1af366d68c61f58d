//! Output of the commands: results on standard output, failures on standard error.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the one place of xtask that prints"
)]

use std::error::Error;
use std::fmt::Display;

use crate::failure::Failure;

/// Prints a line.
pub(crate) fn say(text: impl Display) {
    println!("{text}");
}

/// Prints a heading after an empty line.
pub(crate) fn heading(text: impl Display) {
    println!("\n=== {text}");
}

/// Prints a failure with its causes.
pub(crate) fn complain(failure: &Failure) {
    eprintln!("error: {failure}");
    let mut cause = failure.source();
    while let Some(inner) = cause {
        eprintln!("  caused by: {inner}");
        cause = inner.source();
    }
}
