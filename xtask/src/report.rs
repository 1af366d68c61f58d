//! What the commands say: results on standard output, failures on standard error.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the one place of xtask that prints"
)]

use std::error::Error;
use std::fmt::Display;

use crate::failure::Failure;

/// Print a line of a result.
pub(crate) fn say(text: impl Display) {
    println!("{text}");
}

/// Print the heading of a step, set off from the output of the step before.
pub(crate) fn heading(text: impl Display) {
    println!("\n=== {text}");
}

/// Print a failure with everything that caused it.
pub(crate) fn complain(failure: &Failure) {
    eprintln!("error: {failure}");
    let mut cause = failure.source();
    while let Some(inner) = cause {
        eprintln!("  caused by: {inner}");
        cause = inner.source();
    }
}
