//! Text of failures, kept in parts so that each reader shows what it needs.

use std::fmt;

use mcpact::connection::FailureText;

const HINT: &str = "; hint: ";

/// Precedes the time until the next start of a server.
pub(crate) const NEXT_START_IN: &str = "next start in ";

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
