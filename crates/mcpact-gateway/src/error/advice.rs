//! Advice for people: what to do about an upstream error.

use mcpact_transport::error::DoorError;
use mcpact_transport::stdio::child::{Masks, Obstacle};

use super::{AGAIN, Trouble};

impl Trouble {
    /// What would help, covered likewise.
    pub(crate) fn advised(&self, masks: &Masks) -> Option<String> {
        self.advice().map(|advice| masks.cover(advice))
    }

    /// What would help.
    pub(crate) fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Failure { failure, .. } => return Some(failure.advice()),
            Self::Same(same) => return same.advice(),
            Self::Suspended { wait, .. } => {
                return Some(format!("{AGAIN}{wait:.1?}"));
            }
            Self::Door(DoorError::Spawn { source, .. }) => Obstacle::of(source)?.remedy(),
            Self::Door(DoorError::Certificate { remedy, .. }) => remedy,
            Self::Door(DoorError::Http(_) | DoorError::Unconnected(_) | DoorError::Timeout(_)) => {
                "check that the server runs and that its address is right"
            }
            Self::NotThere { .. } => {
                "check the path of the address; MCP servers often listen at `/mcp` or `/sse`"
            }
            Self::Exited { .. } => {
                "run the command by itself to see what it needs, such as an argument or a variable"
            }
            Self::TooLong { .. } => {
                "ask for less at a time, such as one page or a part of it; the limit is the same for every \
                 server and cannot be raised, and the call may have had its effect"
            }
            Self::Unseen { .. } => {
                "try again later, or raise `max_instances`, `max_concurrent` or `call_seconds`"
            }
            Self::Circle => {
                "take one out of the config of the other, or let `url` lead to a single one of its servers \
                 (`/servers/NAME/mcp`) that does not lead back"
            }
            Self::Unsent(_) => "call again",
            Self::StateLost(_) => "call again to start afresh",
            Self::GoneWithState(_) => {
                "the next call starts afresh; this one may have had its effect"
            }
            Self::Ended | Self::TaskGone => {
                "it may have had its effect; see whether it had, and call it again if not"
            }
            Self::Unapproved { .. } => "look at what it does, and approve it with `mcpact approve`",
            Self::Silent { .. } => {
                "raise `call_seconds` of the server if it needs longer; the call may have had its effect"
            }
            Self::Unfit { .. } => {
                "tell whoever makes the server, or use a client of another revision"
            }
            Self::Status {
                status,
                has_credentials,
            } => return status_advice(*status, *has_credentials).map(String::from),
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

fn status_advice(status: u16, has_credentials: bool) -> Option<&'static str> {
    match (status, has_credentials) {
        (401, false) => Some(
            "it wants to know who asks: set an `Authorization` header, with `headers` in the config or `--header` \
             of `mcpact bridge`",
        ),
        (401, true) => Some(
            "it does not accept the `Authorization` header that is set: check whether the token is the right one \
             and still valid",
        ),
        (403, _) => {
            Some("it does not let us in: check the credentials and from where it may be used")
        }
        (429, _) => Some("it is asked too often: try again later"),
        (500.., _) => Some("it is in trouble: look into its log, or try again later"),
        _ => None,
    }
}
