//! Output: results on stdout, everything else on stderr.
//!
//! Only this module writes to the terminal. A result is formatted completely before it is written,
//! so an error cannot cut it short.

pub(crate) mod approvals;
mod explain;
mod explain_json;
pub(crate) mod installs;
mod layout;
pub(crate) mod log;
#[cfg(unix)]
pub(crate) mod logs;
pub(crate) mod problems;
#[cfg(unix)]
pub(crate) mod reload;
pub(crate) mod servers;
#[cfg(unix)]
pub(crate) mod status;
mod style;

use std::error::Error;
use std::io::{ErrorKind, Write, stderr, stdout};

use serde::Serialize;

use crate::error::CliError;
use crate::explanation::Explanation;

use layout::{Layout, printable_lines};
use style::Tone;

/// Formats an explanation as text; `show_all` adds a row for every method that the revision does not define.
pub(crate) fn explain_text(explanation: &Explanation, show_all: bool) -> String {
    let mut layout = Layout::new(layout::width());
    explain::write(&mut layout, explanation, show_all);
    layout.finish(&stdout())
}

/// Formats an explanation as JSON.
pub(crate) use explain_json::write as explain_json;

/// Formats a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Strings, numbers and checked raw values: serialization cannot fail.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Formats a count with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Writes a result to stdout.
///
/// # Errors
/// Writing failed. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_part(text).map(drop)
}

/// State of stdout after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// More can be written.
    Open,
    /// The reader closed the pipe.
    Closed,
}

/// Writes a part of an endless result to stdout.
///
/// # Errors
/// Writing failed.
pub(crate) fn print_part(text: &str) -> Result<Stdout, CliError> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Stdout::Open),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Stdout::Closed),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Prints an error with its causes and hints.
pub(crate) fn print_error(error: &CliError) {
    let message = printable_lines(&error.to_string());
    let mut text = format!("{} {message}\n", Tone::Bad.paint("error:"));
    let mut cause = error.source();
    while let Some(inner) = cause {
        let message = printable_lines(&inner.to_string());
        text.push_str(&format!("  caused by: {message}\n"));
        cause = inner.source();
    }
    for hint in error.hints() {
        text.push_str(&hint_line(&hint));
    }
    eprint(&style::for_stream(text, &stderr()));
}

/// Prints a warning with a hint.
pub(crate) fn warn(message: &str, hint: &str) {
    let warning = Tone::Name.paint("warning:");
    let text = format!(
        "{warning} {}\n{}",
        printable_lines(message),
        hint_line(hint)
    );
    eprint(&style::for_stream(text, &stderr()));
}

/// Prints a hint.
pub(crate) fn hint(text: &str) {
    let text = format!(
        "\n{} {}\n",
        Tone::Hint.paint("hint:"),
        printable_lines(text)
    );
    eprint(&style::for_stream(text, &stderr()));
}

fn hint_line(text: &str) -> String {
    format!(
        "  {} {}\n",
        Tone::Hint.paint("hint:"),
        printable_lines(text)
    )
}

/// Writes to stderr.
pub(crate) fn eprint(text: &str) {
    // A closed stderr cannot be reported.
    let _ = stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests;
