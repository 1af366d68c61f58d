//! What the program says: results on standard output, everything else on standard error.
//!
//! This is the only place that writes to the terminal. A result is formatted as a whole first and
//! written in one go, so that it is never torn by an error halfway.

mod agreed;
pub(crate) mod deeds;
mod json;
pub(crate) mod log;
#[cfg(unix)]
pub(crate) mod logs;
mod page;
pub(crate) mod problems;
mod refused;
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

use page::Page;
use style::Colour;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What the agreed revision has; the rest is named.
    Usual,
    /// A row for everything.
    Every,
}

/// The explanation for people.
pub(crate) fn explain_text(explanation: &Explanation, detail: Detail) -> String {
    let page = Page::new(Colour::for_stream(&std::io::stdout()), page::width());
    match explanation.pact() {
        Ok(pact) => agreed::write(page, explanation, pact, detail),
        Err(refusal) => refused::write(page, explanation, refusal),
    }
}

/// The explanation for machines.
pub(crate) use json::write as explain_json;

/// Writes a result to standard output.
///
/// # Errors
/// It cannot be written; a reader that has seen enough and left is fine.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    print_on(text).map(drop)
}

/// Whether somebody reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Somebody does.
    Stay,
    /// They have seen enough.
    HaveLeft,
}

/// Writes a part of a result that does not end by itself.
///
/// # Errors
/// It cannot be written.
pub(crate) fn print_on(text: &str) -> Result<Readers, CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Readers::Stay),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Readers::HaveLeft),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Tells a failure with everything that caused it, and what to do.
pub(crate) fn complain(error: &CliError) {
    let colour = Colour::for_stream(&std::io::stderr());
    let mut text = format!("{} {error}\n", colour.paint(style::Tone::Bad, "error:"));
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!("  caused by: {inner}\n"));
        cause = inner.source();
    }
    let hints = error.hints();
    if !hints.is_empty() {
        text.push('\n');
    }
    for hint in hints {
        text.push_str(&hint_line(colour, &hint));
    }
    aside(&text);
}

/// Tells what will not be as somebody may think, and what to do.
pub(crate) fn warn(message: &str, remedy: &str) {
    let colour = Colour::for_stream(&std::io::stderr());
    let warning = colour.paint(style::Tone::Name, "warning:");
    let hint = hint_line(colour, remedy);
    aside(&format!("{warning} {message}\n\n{hint}"));
}

/// Tells what else could be done.
pub(crate) fn hint(text: &str) {
    let colour = Colour::for_stream(&std::io::stderr());
    aside(&format!("\n{}", hint_line(colour, text)));
}

fn hint_line(colour: Colour, text: &str) -> String {
    format!("{} {text}\n", colour.paint(style::Tone::Remedy, "hint:"))
}

/// Tells something beside the result.
pub(crate) fn aside(text: &str) {
    // Nobody is left to be told when standard error is gone.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

impl Colour {
    /// Colour for a terminal, unless the person does not want any.
    fn for_stream(stream: &impl IsTerminal) -> Self {
        if stream.is_terminal() {
            let told = |name| std::env::var_os(name);
            Self::on_terminal(told("NO_COLOR").as_deref(), told("TERM").as_deref())
        } else {
            Self::Off
        }
    }
}

#[cfg(test)]
mod tests;
