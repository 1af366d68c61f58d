//! Features that a pair of peers can use.

use std::fmt;

use serde::Deserialize;

/// A feature of the protocol, as peers report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Feature {
    Negotiate,
    List,
    Call,
    Read,
    Prompt,
    Complete,
    Progress,
    Cancel,
    Elicit,
    Sample,
    Roots,
    Log,
    Subscribe,
}

impl Feature {
    /// All features, in the order of the table.
    pub(super) const ALL: [Self; 13] = [
        Self::Negotiate,
        Self::List,
        Self::Call,
        Self::Read,
        Self::Prompt,
        Self::Complete,
        Self::Progress,
        Self::Cancel,
        Self::Elicit,
        Self::Sample,
        Self::Roots,
        Self::Log,
        Self::Subscribe,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Negotiate => "negotiate",
            Self::List => "list",
            Self::Call => "call",
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Complete => "complete",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::Elicit => "elicit",
            Self::Sample => "sample",
            Self::Roots => "roots",
            Self::Log => "log",
            Self::Subscribe => "subscribe",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Result of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It was used and did what it should.
    Works,
    /// One side does not offer it.
    Absent,
    /// It was used and did something else.
    Fails,
}

/// One line of a report.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) feature: Feature,
    pub(super) outcome: Outcome,
    #[serde(default)]
    pub(super) note: String,
}
