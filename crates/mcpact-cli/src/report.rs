//! Output: results on stdout, everything else on stderr.
//!
//! Only this module writes to the terminal. A result is formatted completely before it is written,
//! so an error cannot cut it short.

pub(crate) mod approvals;
pub(crate) mod ask;
pub(crate) mod content;
pub(crate) mod doctor;
mod explain;
mod explain_json;
pub(crate) mod installs;
pub(crate) mod items;
mod layout;
pub(crate) mod log;
#[cfg(unix)]
pub(crate) mod logs;
mod probe;
mod probe_json;
pub(crate) mod problems;
pub(crate) mod progress;
#[cfg(unix)]
pub(crate) mod reload;
pub(crate) mod servers;
#[cfg(unix)]
pub(crate) mod status;
mod style;
pub(crate) mod tasks;

use std::error::Error;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use serde::Serialize;

use crate::error::CliError;
use crate::explanation::Explanation;
use crate::probe::Probe;

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

/// Formats the result of a probe as text.
pub(crate) fn probe_text(probe: &Probe) -> String {
    let mut layout = Layout::new(layout::width());
    probe::write(&mut layout, probe);
    layout.finish(&stdout())
}

/// Formats the result of a probe as JSON.
pub(crate) use probe_json::write as probe_json;

#[cfg(test)]
pub(crate) use probe_json::ProbeOutcome;

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

/// Writes text of a server to stdout. Characters that a terminal obeys are escaped there; a pipe gets the exact text.
///
/// # Errors
/// Writing failed. A closed pipe is not an error.
pub(crate) fn print_content(text: &str) -> Result<(), CliError> {
    match stdout().is_terminal() {
        true => print(&content_lines(text)),
        false => print(text),
    }
}

/// Writes text of a server to stderr.
pub(crate) fn eprint_content(text: &str) {
    eprint(&content_lines(text));
}

/// Escapes text with line feeds and tabs.
fn content_lines(text: &str) -> String {
    let parts: Vec<String> = text.split('\t').map(printable_lines).collect();
    parts.join("\t")
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

/// Prints a note about what follows.
pub(crate) fn note(text: &str) {
    eprint(&format!("{}\n", printable_lines(text)));
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
