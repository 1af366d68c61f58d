//! Errors of upstream servers.

mod advice;
mod capacity;
mod serve;

use mcpact::connection::{ConnectError, Delivery, FailureText};
use mcpact::error::with_causes;
use mcpact_config::ApprovalKind;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Revision};
use mcpact_translate::shape::ShapeError;
use mcpact_transport::budget::MemoryExhausted;
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::{LaunchProblem, Masks};
use mcpact_wire::ambiguity::AmbiguousKey;
use mcpact_wire::raw::ObjectWriter;

pub(crate) use self::advice::{Explanation, NEXT_START_IN};
pub(crate) use self::capacity::CapacityLimits;
pub(crate) use self::serve::{ServeError, wire_error};
use crate::metrics::Outcome;
use crate::reason::Reason;

/// Time between two lookups of a program that could not be started.
pub(crate) const LOOKUP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Error of an upstream server.
#[derive(Debug, thiserror::Error)]
#[error("{target}: {kind}")]
pub struct UpstreamError {
    /// Name of the server.
    pub target: String,
    /// Cause.
    #[source]
    pub kind: UpstreamErrorKind,
    /// Secrets of the server, masked even if the server repeats them.
    pub masks: Masks,
}

/// Cause of an upstream error.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamErrorKind {
    /// No connection was made, and nothing was sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server cannot be reached for a call.
    #[error("{}", .0.connect_failure())]
    Transport(#[source] std::sync::Arc<TransportError>),
    /// The server answered with an HTTP status and no MCP message.
    #[error("the server answered with status {status}{}", without_message(*status))]
    HttpStatus {
        /// HTTP status.
        status: u16,
        /// The request had credentials.
        has_credentials: bool,
    },
    /// The server is a gateway that routes back to this one.
    #[error("proxy loop detected: this server routes back to this gateway")]
    Loop,
    /// The server is a command that starts a gateway with a config above it.
    #[error("{}", Self::Loop)]
    StartLoop,
    /// The server did not answer a call in time.
    #[error("the server did not answer within {limit:?}")]
    CallTimeout {
        /// `call_seconds`.
        limit: std::time::Duration,
    },
    /// A call timed out before it was sent.
    #[error("timed out after {limit:?} in the queue; the call was not sent to the server")]
    TimeoutBeforeSend {
        /// `call_seconds`.
        limit: std::time::Duration,
    },
    /// The connection was lost before a call was sent.
    #[error("{}; the call was not sent to the server", .0.cause)]
    NotSent(FailureText),
    /// The connection was lost during a call.
    #[error("{}", .0.cause)]
    ConnectionLost(FailureText),
    /// The connection was lost during a call, and with it the state of the client.
    #[error("the call and the state of this client on the server are lost: {}", .0.cause)]
    ConnectionAndStateLost(FailureText),
    /// The gateway stopped the server during a call.
    #[error("the server was stopped during this call by a config reload or a shutdown")]
    Stopped,
    /// The instance that ran a task has ended.
    #[error("the server instance that ran this task has ended; the task is lost")]
    TaskLost,
    /// The state of the client was lost before the call.
    #[error("the state of this client on the server is lost; the call was not sent: {}", .0.cause)]
    StateLost(FailureText),
    /// The server lost the session of a call.
    #[error("the server no longer knows the session")]
    SessionLost,
    /// A message of the server has no equivalent in the client's revision.
    #[error("the server's {what} cannot be translated for a client of revision {to}")]
    Untranslatable {
        /// Kind of message.
        what: &'static str,
        /// Revision of the client.
        to: Revision,
        /// Cause.
        #[source]
        fault: ShapeError,
    },
    /// The server violated the protocol.
    #[error("protocol violation by the server: {0}")]
    ProtocolViolation(String),
    /// A filter cannot judge a result that readers understand differently.
    #[error("the result was withheld: {0}; the call may have had its effect")]
    AmbiguousResult(Box<AmbiguousKey>),
    /// The server is in backoff or suspended after failures.
    #[error("the server failed{} {}", times(*failures), why.cause)]
    Suspended {
        /// Number of recent failures.
        failures: usize,
        /// Time until the next start.
        wait: std::time::Duration,
        /// The last failure.
        why: FailureText,
        /// Remedy of the last failure.
        hint: Option<String>,
    },
    /// The program of the server is missing or cannot be executed; a start is not tried again until that changes.
    #[error("{}", why.cause)]
    Unstartable {
        /// The last failure.
        why: FailureText,
        /// Its remedy.
        hint: Option<String>,
    },
    /// All instances are busy and the queue is full.
    #[error("{}", limits.queue_full(state))]
    QueueFull {
        /// State of the server.
        state: &'static str,
        /// Configured limits.
        limits: CapacityLimits,
    },
    /// No instance became free in time.
    #[error("{}", limits.queue_timeout(state, *waited))]
    QueueTimeout {
        /// State of the server.
        state: &'static str,
        /// Configured limits.
        limits: CapacityLimits,
        /// `queue_seconds`.
        waited: std::time::Duration,
    },
    /// The response exceeds the message limit.
    #[error("the response exceeds the limit of {limit} bytes and is lost")]
    ResponseTooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// There was no memory for the response.
    #[error("the response is lost: {0}")]
    MemoryExhausted(MemoryExhausted),
    /// The start took too long.
    #[error(
        "the server did not finish starting within {limit:?}; check its log, or raise `start_seconds`"
    )]
    StartTimeout {
        /// `start_seconds`.
        limit: std::time::Duration,
    },
    /// The server is not approved.
    #[error("{} (mark `{mark}`)", kind.refused())]
    NotApproved {
        /// Kind of action that needs approval.
        kind: ApprovalKind,
        /// Mark that an approval refers to.
        mark: String,
    },
    /// The code of the server is not what was approved.
    #[error("the approved code was exchanged; the server was stopped before it received a call")]
    CodeExchanged(#[source] std::io::Error),
    /// The approvals cannot be read.
    #[error("failed to read the approvals; nothing was started or sent")]
    ApprovalUnreadable(#[source] std::io::Error),
    /// The server was removed from the config, or the gateway shuts down.
    #[error("the server was removed or is shutting down; the call was not sent")]
    Retired,
    /// The server speaks another revision than the request was translated for; the request was not sent.
    #[error("the server switched to another revision; the call was not processed; try again")]
    RevisionChanged,
    /// Error of a start that several calls waited for.
    #[error(transparent)]
    Shared(std::sync::Arc<Self>),
}

/// Explains a success status without an MCP message.
const fn without_message(status: u16) -> &'static str {
    match status {
        400.. => "",
        _ => " without a message",
    }
}

/// Number of failures, before the cause.
fn times(failures: usize) -> String {
    match failures {
        0 | 1 => String::from(":"),
        failures => format!(" {failures} times in a row; last failure:"),
    }
}

impl UpstreamErrorKind {
    /// Returns true if the server was reached or started but the negotiation did not succeed.
    pub(crate) const fn is_negotiation_failure(&self) -> bool {
        use ConnectError::{Exited, Negotiation, NotMcp};
        matches!(
            self,
            Self::Connect(Negotiation { .. } | Exited { .. } | NotMcp { .. })
        )
    }

    /// Returns the time until the next start of a failed server.
    pub(crate) fn next_start(&self) -> Option<std::time::Duration> {
        match self {
            Self::Suspended { wait, .. } => Some(*wait),
            Self::Unstartable { .. } => Some(LOOKUP_INTERVAL),
            Self::Shared(same) => same.next_start(),
            _ => None,
        }
    }

    /// Returns true if the program of the server is missing or cannot be executed.
    pub(crate) fn is_unstartable(&self) -> bool {
        match self {
            Self::Connect(ConnectError::Transport(TransportError::Spawn { source, .. })) => {
                LaunchProblem::of(source).is_some()
            }
            Self::Shared(same) => same.is_unstartable(),
            _ => false,
        }
    }

    /// Returns the stable reason, the outcome in the metrics and the fate of the request.
    fn classify(&self) -> (Reason, Outcome, Delivery) {
        use ConnectError::{Exited, Negotiation, NotMcp, Transport};
        use Delivery::{NotSent, RefusedUnread, Unknown};
        use Outcome::{Busy, Error, Lost, Timeout, Unavailable};
        match self {
            Self::Connect(Transport(TransportError::Sandbox(_))) => {
                (Reason::UpstreamUnsandboxed, Unavailable, NotSent)
            }
            Self::Connect(Transport(_) | NotMcp { .. })
            | Self::Transport(_)
            | Self::Unstartable { .. } => (Reason::UpstreamUnreachable, Unavailable, NotSent),
            Self::Connect(Exited { .. }) => (Reason::UpstreamExited, Unavailable, NotSent),
            Self::Connect(Negotiation { .. }) => {
                (Reason::UpstreamNoAgreement, Unavailable, NotSent)
            }
            Self::Connect(ConnectError::HttpStatus(_)) | Self::HttpStatus { .. } => {
                (Reason::UpstreamStatus, Unavailable, Unknown)
            }
            Self::Loop | Self::StartLoop => (Reason::UpstreamCircle, Unavailable, NotSent),
            Self::CallTimeout { .. } => (Reason::UpstreamTimeout, Timeout, Unknown),
            Self::NotSent(_) => (Reason::UpstreamGone, Lost, NotSent),
            Self::ConnectionLost(_)
            | Self::ConnectionAndStateLost(_)
            | Self::Stopped
            | Self::TaskLost => (Reason::UpstreamGone, Lost, Unknown),
            Self::StateLost(_) => (Reason::UpstreamStateLost, Unavailable, NotSent),
            Self::SessionLost => (Reason::UpstreamSession, Lost, RefusedUnread),
            Self::Untranslatable { .. } => (Reason::UpstreamUnfit, Error, Unknown),
            Self::ProtocolViolation(_) => (Reason::UpstreamMisbehaved, Lost, Unknown),
            Self::AmbiguousResult(_) => (Reason::UpstreamAmbiguous, Error, Unknown),
            Self::Suspended { .. } => (Reason::UpstreamSuspended, Unavailable, NotSent),
            Self::QueueFull { .. } => (Reason::UpstreamBusy, Busy, NotSent),
            Self::QueueTimeout { .. } => (Reason::UpstreamLate, Busy, NotSent),
            Self::TimeoutBeforeSend { .. } => (Reason::UpstreamLate, Busy, NotSent),
            Self::StartTimeout { .. } => (Reason::UpstreamSlow, Unavailable, NotSent),
            Self::ResponseTooLarge { .. } => (Reason::UpstreamTooLong, Lost, Unknown),
            Self::MemoryExhausted(_) => (Reason::MemoryExhausted, Lost, Unknown),
            Self::NotApproved { .. } => (Reason::UpstreamUnapproved, Unavailable, NotSent),
            Self::CodeExchanged(_) => (Reason::UpstreamExchanged, Unavailable, NotSent),
            Self::ApprovalUnreadable(_) => (Reason::UpstreamUnapproved, Unavailable, NotSent),
            Self::Retired => (Reason::UpstreamClosed, Unavailable, NotSent),
            Self::RevisionChanged => (Reason::UpstreamChanged, Unavailable, NotSent),
            Self::Shared(same) => same.classify(),
        }
    }

    /// Returns the stable reason.
    pub(crate) fn reason(&self) -> Reason {
        self.classify().0
    }

    /// Returns the outcome of the request in the metrics.
    pub(crate) fn outcome(&self) -> Outcome {
        self.classify().1
    }

    /// Returns the fate of the request.
    pub(crate) fn delivery(&self) -> Delivery {
        self.classify().2
    }

    /// Marks a queue error of a call that waited for its turn rather than for a free instance.
    pub(crate) const fn in_turn(mut self) -> Self {
        if let Self::QueueFull { limits, .. } | Self::QueueTimeout { limits, .. } = &mut self {
            limits.takes_turns = true;
        }
        self
    }

    /// Returns true if the server left the config before the request was sent.
    pub(crate) fn is_retired(&self) -> bool {
        match self {
            Self::Retired => true,
            Self::Shared(same) => same.is_retired(),
            _ => false,
        }
    }

    /// Returns the cause and the end of the server's stderr, with secrets masked.
    pub(crate) fn text(&self, masks: &Masks) -> FailureText {
        let cause = match self {
            Self::Shared(same) => return same.text(masks),
            // It contains nothing from the server, and a secret may occur in the program's path.
            Self::Connect(ConnectError::Transport(_)) | Self::Transport(_) => with_causes(self),
            // The cause is the failure of the older transport, which most servers do not have.
            Self::Connect(ConnectError::NotMcp { .. }) => masks.cover(self.to_string()),
            _ => masks.cover(with_causes(self)),
        };
        FailureText {
            cause,
            stderr: self.stderr().to_owned(),
        }
    }

    /// Returns the end of the server's stderr, if it is part of the failure.
    fn stderr(&self) -> &str {
        match self {
            Self::Connect(
                ConnectError::Exited { stderr, .. } | ConnectError::Negotiation { stderr, .. },
            ) => stderr,
            Self::NotSent(text)
            | Self::ConnectionLost(text)
            | Self::ConnectionAndStateLost(text)
            | Self::StateLost(text)
            | Self::Suspended { why: text, .. }
            | Self::Unstartable { why: text, .. } => &text.stderr,
            Self::Shared(same) => same.stderr(),
            _ => "",
        }
    }
}

impl UpstreamError {
    /// Adapts the error for a call that was sent: its server was stopped rather than removed.
    pub(crate) fn for_sent_call(mut self) -> Self {
        if self.kind.is_retired() {
            self.kind = UpstreamErrorKind::Stopped;
        }
        self
    }

    /// Returns cause, stderr and advice.
    fn current_explanation(&self) -> Explanation {
        Explanation {
            text: self.kind.text(&self.masks),
            hint: self.kind.advised(&self.masks),
        }
    }

    /// Returns cause, stderr and lasting advice, for a reader after the time of the next start.
    pub(crate) fn explanation(&self) -> Explanation {
        self.kind.lasting_explanation(&self.masks)
    }

    /// JSON-RPC error code of every upstream error.
    pub(crate) const CODE: i64 = ErrorCode::InternalError.code();

    /// Returns the message for the client: server, cause, stderr and advice.
    pub(crate) fn message(&self) -> String {
        format!("{}: {}", self.target, self.current_explanation())
    }

    /// Encodes the error for the client.
    #[must_use]
    pub fn on_wire(&self) -> WireError {
        let explanation = self.current_explanation();
        let data = ObjectWriter::new()
            .text("reason", self.kind.reason().as_str())
            .maybe_text("advice", explanation.hint.as_deref());
        WireError {
            code: Self::CODE,
            message: format!("{}: {explanation}", self.target),
            data: Some(data.finish()),
            http_status: 200,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_engine::client::Failure;

    #[test]
    fn stderr_is_shown_between_cause_and_hint() {
        let error = UpstreamError {
            target: String::from("`x`"),
            kind: UpstreamErrorKind::Connect(ConnectError::Negotiation {
                failure: Failure::InitTimeout,
                stderr: format!("{}\u{1b}[1mwaiting\n", "-".repeat(600)),
                transcript: Box::default(),
            }),
            masks: Masks::default(),
        };
        let message = error.on_wire().message;
        let start = "`x`: negotiation with the server failed: the server did not answer `initialize` in time; stderr: …---";
        assert!(message.starts_with(start), "{message}");
        assert!(
            message.contains("\u{fffd}[1mwaiting; hint: it is silent"),
            "{message}"
        );
        let short = error.explanation().in_short();
        assert!(
            short.contains("in time; hint: it is silent") && !short.contains("waiting"),
            "{short}"
        );
    }

    /// The time until the next start is in the message, but not in an explanation that is read later.
    #[test]
    fn stored_explanation_contains_no_time() {
        let error = |failures| {
            let kind = UpstreamErrorKind::Suspended {
                failures,
                wait: std::time::Duration::from_millis(27_200),
                why: FailureText::from("it crashed"),
                hint: None,
            };
            UpstreamError {
                target: String::from("`x`"),
                kind,
                masks: Masks::default(),
            }
        };
        let once = "the server failed: it crashed";
        assert_eq!(
            error(1).on_wire().message,
            format!("`x`: {once}; hint: next start in 27.2s")
        );
        assert_eq!(error(1).explanation().to_string(), once);
        let often = "the server failed 3 times in a row; last failure: it crashed";
        assert_eq!(error(3).explanation().to_string(), often);
    }

    /// A call during the backoff gets the remedy and the stderr of the failed start, too.
    #[test]
    fn refused_call_gets_remedy_and_stderr_of_the_failure() {
        let error = UpstreamError {
            target: String::from("`x`"),
            kind: UpstreamErrorKind::Suspended {
                failures: 2,
                wait: std::time::Duration::from_secs(3),
                why: FailureText {
                    cause: String::from("it exited"),
                    stderr: String::from("no key"),
                },
                hint: Some(String::from("set the key")),
            },
            masks: Masks::default(),
        };
        let cause = "the server failed 2 times in a row; last failure: it exited; stderr: no key";
        assert_eq!(
            error.on_wire().message,
            format!("`x`: {cause}; hint: set the key; next start in 3.0s")
        );
        assert_eq!(
            error.explanation().to_string(),
            format!("{cause}; hint: set the key")
        );
    }
}
