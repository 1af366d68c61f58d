//! Text of failures, kept in parts so that each reader shows what it needs.

use std::fmt;

const LOG: &str = "; its log ends with: ";
const HINT: &str = "; hint: ";

/// Precedes the time until the next start of a server.
pub(crate) const AGAIN: &str = "it is tried again in ";

/// Number of characters shown of a server's log.
const LOG_CHARS: usize = 600;

/// Cause of a failure and the end of the server's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureText {
    /// The cause, in one line.
    pub cause: String,
    /// The end of the log, or empty.
    pub stderr: String,
}

impl FailureText {
    /// Returns the cause in one line, without the log.
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
        let skipped = stderr.chars().count().saturating_sub(LOG_CHARS);
        let ellipsis = if skipped > 0 { "…" } else { "" };
        let end: String = stderr.chars().skip(skipped).map(printable).collect();
        write!(f, "{LOG}{ellipsis}{end}")
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
    /// Returns cause and advice in one line, without the log.
    pub(crate) fn in_short(&self) -> String {
        match &self.hint {
            None => self.text.in_short(),
            Some(hint) => format!("{}{HINT}{hint}", self.text.cause).replace(['\n', '\r'], " "),
        }
    }
}

impl From<FailureText> for Explanation {
    fn from(text: FailureText) -> Self {
        Self { text, hint: None }
    }
}

impl From<String> for Explanation {
    fn from(cause: String) -> Self {
        FailureText::from(cause).into()
    }
}

impl From<&str> for Explanation {
    fn from(cause: &str) -> Self {
        FailureText::from(cause).into()
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
