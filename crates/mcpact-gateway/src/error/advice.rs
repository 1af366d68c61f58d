//! Texts of failures for users: cause, stderr and advice, in parts so that each reader shows what it needs.

use std::fmt;

use mcpact::connection::{ConnectError, FailureText};
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::{LaunchProblem, Masks};

use super::UpstreamErrorKind;

const HINT: &str = "; hint: ";

/// Precedes the time until the next start of a server.
pub(crate) const NEXT_START_IN: &str = "next start in ";

/// A failure with advice.
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

impl UpstreamErrorKind {
    /// Returns the advice with secrets masked.
    pub(crate) fn advised(&self, masks: &Masks) -> Option<String> {
        self.advice().map(|advice| masks.cover(advice))
    }

    /// Returns cause, stderr and advice for a reader after the time of the next start.
    pub(crate) fn lasting_explanation(&self, masks: &Masks) -> Explanation {
        Explanation {
            text: self.text(masks),
            hint: self.lasting_advice().map(|advice| masks.cover(advice)),
        }
    }

    /// Returns the advice without the time of the next start.
    fn lasting_advice(&self) -> Option<String> {
        match self {
            Self::Suspended { hint, .. } => hint.clone(),
            Self::Shared(same) => same.lasting_advice(),
            _ => self.advice(),
        }
    }

    /// Returns the advice, if there is any.
    pub(crate) fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Connect(ConnectError::Negotiation { failure, .. }) => {
                return Some(failure.advice());
            }
            Self::Connect(ConnectError::NotMcp { .. }) => {
                "check the path of the URL; MCP servers often use `/mcp` or `/sse`"
            }
            Self::Connect(ConnectError::Exited { stderr, .. }) if is_denied(stderr) => {
                "if the server has a `sandbox`, name the path or port in `allow_read`, `allow_write` or `allow_ports`; \
                 otherwise check its permissions"
            }
            Self::Connect(ConnectError::Exited { .. }) => {
                "run the command in a shell to see what is missing, such as an argument or a variable"
            }
            Self::Connect(ConnectError::Transport(error)) => transport_advice(error)?,
            Self::Transport(error) => transport_advice(error)?,
            Self::Shared(same) => return same.advice(),
            Self::Suspended { wait, hint, .. } => {
                let next = format!("{NEXT_START_IN}{wait:.1?}");
                return Some(match hint {
                    Some(hint) => format!("{hint}; {next}"),
                    None => next,
                });
            }
            Self::Unstartable { hint, .. } => return hint.clone(),
            Self::ResponseTooLarge { .. } => {
                "request less data, such as one page; the limit cannot be raised, and the call may have had \
                 its effect"
            }
            Self::MemoryExhausted(_) => {
                "retry later, or raise `memory_mb` in `[gateway.limits]`; the call may have had its effect"
            }
            Self::TimeoutBeforeSend { .. } => {
                "try again later, or raise `max_instances`, `max_concurrent` or `call_seconds`"
            }
            Self::Loop => {
                "remove this server from the config, or use the URL of a single server (`/servers/NAME/mcp`) that does not \
                 lead back"
            }
            Self::StartLoop => "remove this server from the config",
            Self::NotSent(_) => "call again",
            Self::StateLost(_) => "call again; it starts with empty state",
            Self::ConnectionAndStateLost(_) => {
                "the next call starts with empty state; this one may have had its effect"
            }
            Self::ConnectionLost(_) => {
                "the call may have run; check its effect before you call again"
            }
            Self::Stopped | Self::TaskLost => {
                "it may have had its effect; check that, and call again if it had none"
            }
            Self::CodeExchanged(_) => "find out what changed the file, then run `mcpact approve`",
            Self::NotApproved { .. } => "review what it does, then run `mcpact approve`",
            Self::CallTimeout { .. } => {
                "raise `call_seconds` if the server needs longer; the call may have had its effect"
            }
            Self::Untranslatable { .. } => {
                "report this to the developers of the server, or use a client of another revision"
            }
            Self::HttpStatus {
                status,
                has_credentials,
            } => return status_advice(*status, *has_credentials).map(String::from),
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// Returns whether a program reports a denied access.
fn is_denied(stderr: &str) -> bool {
    ["ermission denied", "EACCES"]
        .iter()
        .any(|text| stderr.contains(text))
}

fn transport_advice(error: &TransportError) -> Option<&'static str> {
    match error {
        TransportError::Spawn { source, .. } => Some(LaunchProblem::of(source)?.remedy()),
        TransportError::Certificate { remedy, .. } => Some(remedy),
        TransportError::Sandbox(problem) => Some(problem.remedy()),
        TransportError::Http(_) | TransportError::Unconnected(_) | TransportError::Timeout(_) => {
            Some("check that the server runs and that its URL is right")
        }
        _ => None,
    }
}

fn status_advice(status: u16, has_credentials: bool) -> Option<&'static str> {
    match (status, has_credentials) {
        (401, false) => Some(
            "set an `Authorization` header, with `headers` in the config or `--header` of `mcpact bridge`",
        ),
        (401, true) => Some(
            "the server rejected the `Authorization` header; check that the token is correct and not expired",
        ),
        (403, _) => Some("access denied; check the credentials and the server's access rules"),
        (429, _) => Some("rate limit reached; try again later"),
        (500.., _) => Some("check the server's log, or try again later"),
        _ => None,
    }
}
