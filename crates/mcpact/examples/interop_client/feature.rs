//! Features, their protocol requirements and outcomes.

use mcpact::client::{Era, Method, Pact};
use mcpact_spec::{Kind, Side};

/// Feature under test.
#[derive(Clone, Copy)]
pub(crate) enum Feature {
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

/// All features except the negotiation, which comes first.
pub(crate) const FEATURES: [Feature; 12] = [
    Feature::List,
    Feature::Call,
    Feature::Read,
    Feature::Prompt,
    Feature::Complete,
    Feature::Progress,
    Feature::Cancel,
    Feature::Elicit,
    Feature::Sample,
    Feature::Roots,
    Feature::Log,
    Feature::Subscribe,
];

/// Outcome of a feature.
pub(crate) enum Outcome {
    /// Worked, with a note.
    Works(String),
    /// Not offered by the server, with the reason.
    Absent(String),
    /// Did not work as expected.
    Fails(String),
}

impl Outcome {
    /// Returns the status and the note of the report.
    pub(crate) fn status_and_note(&self) -> (&'static str, &str) {
        match self {
            Self::Works(note) => ("works", note),
            Self::Absent(note) => ("absent", note),
            Self::Fails(note) => ("fails", note),
        }
    }
}

impl Feature {
    pub(crate) const fn as_str(self) -> &'static str {
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

    /// Returns the message that the feature requires.
    const fn message(self) -> (Side, Kind, Method) {
        match self {
            Self::Negotiate | Self::List => (Side::Client, Kind::Request, Method::ToolsList),
            Self::Call | Self::Progress | Self::Cancel => {
                (Side::Client, Kind::Request, Method::ToolsCall)
            }
            Self::Read => (Side::Client, Kind::Request, Method::ResourcesRead),
            Self::Prompt => (Side::Client, Kind::Request, Method::PromptsGet),
            Self::Complete => (Side::Client, Kind::Request, Method::CompletionComplete),
            Self::Elicit => (Side::Server, Kind::Request, Method::ElicitationCreate),
            Self::Sample => (Side::Server, Kind::Request, Method::SamplingCreateMessage),
            Self::Roots => (Side::Server, Kind::Request, Method::RootsList),
            Self::Log => (Side::Server, Kind::Notification, Method::LoggingMessage),
            Self::Subscribe => (Side::Server, Kind::Notification, Method::ResourcesUpdated),
        }
    }

    /// Returns the reason why the pact excludes it, if it does.
    pub(crate) fn excluded(self, pact: &Pact) -> Option<String> {
        let (sender, kind, method) = self.message();
        let is_question = sender == Side::Server && kind == Kind::Request;
        let ruling = match pact.era() {
            Era::Modern if is_question => pact.rule_on_input(method),
            Era::Modern | Era::Legacy => pact.rule_on(sender, kind, method),
        };
        (!ruling.is_open()).then(|| ruling.explain())
    }
}
