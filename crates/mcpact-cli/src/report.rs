//! Output: results on stdout, everything else on stderr.
//!
//! Only this module writes to the terminal. A result is formatted completely before it is written,
//! so an error cannot cut it short.

pub(crate) mod approvals;
mod json;
mod layout;
pub(crate) mod log;
#[cfg(unix)]
pub(crate) mod logs;
mod pact;
pub(crate) mod problems;
mod refusal;
#[cfg(unix)]
pub(crate) mod reload;
pub(crate) mod servers;
#[cfg(unix)]
pub(crate) mod status;
mod style;

use std::error::Error;
use std::io::{ErrorKind, IsTerminal, Write};

use crate::error::CliError;
use crate::explanation::Explanation;

use layout::Layout;
use style::Colour;

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Methods that the revision defines; the others in one line.
    Defined,
    /// A row for every method.
    All,
}

/// Formats an explanation as text.
pub(crate) fn explain_text(explanation: &Explanation, detail: Detail) -> String {
    let layout = Layout::new(Colour::for_stream(&std::io::stdout()), layout::width());
    match explanation.pact() {
        Ok(pact) => pact::write(layout, explanation, pact, detail),
        Err(refusal) => refusal::write(layout, explanation, refusal),
    }
}

/// Formats an explanation as JSON.
pub(crate) use json::write as explain_json;

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
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Stdout::Open),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Stdout::Closed),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Prints an error with its causes and hints.
pub(crate) fn print_error(error: &CliError) {
    let colour = Colour::for_stream(&std::io::stderr());
    let mut text = format!("{} {error}\n", colour.paint(style::Tone::Bad, "error:"));
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!("  caused by: {inner}\n"));
        cause = inner.source();
    }
    for hint in error.hints() {
        text.push_str(&hint_line(colour, &hint));
    }
    eprint(&text);
}

/// Prints a warning with a hint.
pub(crate) fn warn(message: &str, hint: &str) {
    let colour = Colour::for_stream(&std::io::stderr());
    let warning = colour.paint(style::Tone::Name, "warning:");
    let hint = hint_line(colour, hint);
    eprint(&format!("{warning} {message}\n{hint}"));
}

/// Prints a hint.
pub(crate) fn hint(text: &str) {
    let colour = Colour::for_stream(&std::io::stderr());
    let hint = colour.paint(style::Tone::Hint, "hint:");
    eprint(&format!("\n{hint} {text}\n"));
}

fn hint_line(colour: Colour, text: &str) -> String {
    format!("  {} {text}\n", colour.paint(style::Tone::Hint, "hint:"))
}

/// Writes to stderr.
pub(crate) fn eprint(text: &str) {
    // A closed stderr cannot be reported.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

impl Colour {
    /// Returns whether to colour the output of a stream.
    fn for_stream(stream: &impl IsTerminal) -> Self {
        if stream.is_terminal() {
            let var = |name| std::env::var_os(name);
            Self::on_terminal(var("NO_COLOR").as_deref(), var("TERM").as_deref())
        } else {
            Self::Off
        }
    }
}

#[cfg(test)]
mod tests;
