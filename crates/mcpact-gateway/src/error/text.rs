//! Text of failures, kept in parts so that each reader shows what it needs.

use std::fmt;

const STDERR: &str = "; stderr: ";
const HINT: &str = "; hint: ";

/// Precedes the time until the next start of a server.
pub(crate) const NEXT_START_IN: &str = "next start in ";

/// Number of characters shown of a server's stderr.
const STDERR_CHARS: usize = 600;

/// Cause of a failure and the end of the server's stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureText {
    /// The cause, in one line.
    pub cause: String,
    /// End of the stderr, or empty.
    pub stderr: String,
}

impl FailureText {
    /// Returns the cause in one line, without the stderr.
    pub(crate) fn in_short(&self) -> String {
        self.cause.replace(['\n', '\r'], " ")
    }
}

impl From<&str> for FailureText {
    fn from(cause: &str) -> Self {
        Self::from(cause.to_owned())
    }
}

impl From<String> for FailureText {
    fn from(cause: String) -> Self {
        Self {
            cause,
            stderr: String::new(),
        }
    }
}

impl fmt::Display for FailureText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        let stderr = self.stderr.trim();
        if stderr.is_empty() {
            return Ok(());
        }
        let skipped = stderr.chars().count().saturating_sub(STDERR_CHARS);
        let ellipsis = if skipped > 0 { "…" } else { "" };
        let end: String = stderr.chars().skip(skipped).map(printable).collect();
        write!(f, "{STDERR}{ellipsis}{end}")
    }
}

/// Replaces control characters, which could drive a terminal.
fn printable(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}

/// A failure with the advice that goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    pub(crate) text: FailureText,
    pub(crate) hint: Option<String>,
}

impl Explanation {
    /// Returns cause and advice in one line, without the stderr.
    pub(crate) fn in_short(&self) -> String {
        match &self.hint {
            None => self.text.in_short(),
            Some(hint) => format!("{}{HINT}{hint}", self.text.cause).replace(['\n', '\r'], " "),
        }
    }
}

impl<T: Into<FailureText>> From<T> for Explanation {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            hint: None,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)?;
        match &self.hint {
            None => Ok(()),
            Some(hint) => write!(f, "{HINT}{hint}"),
        }
    }
}
