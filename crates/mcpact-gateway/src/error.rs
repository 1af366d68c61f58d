//! What goes wrong with an upstream server.

mod advice;
mod room;
mod serve;
mod text;

use mcpact_config::DeedKind;
use mcpact_engine::client::Failure;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Revision};
use mcpact_translate::shape::ShapeError;
use mcpact_transport::error::DoorError;
use mcpact_transport::stdio::child::Masks;
use mcpact_wire::raw::ObjectWriter;

pub(crate) use self::room::Room;
pub(crate) use self::serve::{Delivery, ServeError};
pub use self::text::FailureText;
pub(crate) use self::text::{AGAIN, Explanation};
use crate::figures::Outcome;
use crate::stable::Reason;

/// Why an upstream server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{target}: {kind}")]
pub struct UpstreamError {
    /// The server, as people know it.
    pub target: String,
    /// What happened.
    #[source]
    pub kind: Trouble,
    /// What the server was given and nobody else is told, even if the server repeats it.
    pub masks: Masks,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It cannot be reached or started.
    #[error("the server cannot be reached")]
    Door(#[from] DoorError),
    /// There is something at its address, and it is no MCP server.
    #[error("nothing takes MCP messages there (HTTP {status})")]
    NotThere {
        /// The HTTP status of the first message.
        status: u16,
    },
    /// The program ended before there was an agreement.
    #[error("the program ended before it agreed to anything ({status})")]
    Exited {
        /// Its exit status, in words.
        status: String,
        /// The end of its log.
        stderr: String,
    },
    /// It was reached, and there is no agreement.
    #[error("no agreement with the server")]
    Failure {
        /// Why.
        #[source]
        failure: Failure,
        /// The end of its log.
        stderr: String,
    },
    /// It wants to know who asks, or does not want to be asked now.
    #[error("the server answered with status {status}{}", emptily(*status))]
    Status {
        /// The HTTP status.
        status: u16,
        /// Whether it was told who asks.
        has_credentials: bool,
    },
    /// It says that requests to it go round in a circle.
    #[error(
        "the server is a gateway that serves this one in turn, directly or by way of others, or is this very one"
    )]
    Circle,
    /// It did not answer a call.
    #[error("the server did not answer within {limit:?}")]
    Silent {
        /// `call_seconds`.
        limit: std::time::Duration,
    },
    /// A call took too long before it was given to the server.
    #[error("the call waited for {limit:?} to be given to the server, which has not seen it")]
    Unseen {
        /// `call_seconds`.
        limit: std::time::Duration,
    },
    /// The connection was lost before a call was given to the server.
    #[error("{}; the server has not seen this call", .0.cause)]
    Unsent(FailureText),
    /// The connection was lost during a call.
    #[error("{}", .0.cause)]
    Gone(FailureText),
    /// The same, and what it kept for the client was lost with it.
    #[error("what the server kept for this client is gone, and the call is lost: {}", .0.cause)]
    GoneWithState(FailureText),
    /// It was ended by us, and the call with it.
    #[error(
        "the server was ended while this call ran, because the config was read anew or the gateway stops"
    )]
    Ended,
    /// The instance that ran a task is over, and the task with it.
    #[error("the instance of the server that ran this task is gone, and the task with it")]
    TaskGone,
    /// What it kept for the client was lost before the call, which was not made.
    #[error("what the server kept for this client is gone, and this call was not made: {}", .0.cause)]
    StateLost(FailureText),
    /// It has forgotten a session during a call.
    #[error("the server forgot the session")]
    Forgotten,
    /// It said something that the client cannot be told.
    #[error("its {what} cannot be passed on to a client of {to}")]
    Unfit {
        /// What it said.
        what: &'static str,
        /// What the client speaks.
        to: Revision,
        /// Why not.
        #[source]
        fault: ShapeError,
    },
    /// It said something that it must not.
    #[error("the server broke a rule: {0}")]
    Misbehaved(String),
    /// It crashed too often lately.
    #[error("the server failed {}because {}", often(*tries), why.cause)]
    Suspended {
        /// How often.
        tries: u32,
        /// Until it is tried again.
        wait: std::time::Duration,
        /// The last failure.
        why: FailureText,
    },
    /// All its instances have as many calls as they may.
    #[error("{}", room.full(state))]
    Busy {
        /// How it is.
        state: &'static str,
        /// What it may take.
        room: Room,
    },
    /// No instance became free in time.
    #[error("{}", room.late(state, *waited))]
    Late {
        /// How it is.
        state: &'static str,
        /// What it may take.
        room: Room,
        /// `queue_seconds`.
        waited: std::time::Duration,
    },
    /// Its answer was too long.
    #[error("its answer is longer than the {limit} bytes that a message may have, and is lost")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// It took too long to start.
    #[error(
        "the server did not start and agree within {limit:?}; see what it does meanwhile, or raise \
         `start_seconds`"
    )]
    Slow {
        /// `start_seconds`.
        limit: std::time::Duration,
    },
    /// Nobody has agreed to it.
    #[error("{} (its mark is `{mark}`)", kind.refused())]
    Unapproved {
        /// What it would do.
        kind: DeedKind,
        /// What an approval of it is given for.
        mark: String,
    },
    /// Whether it was approved cannot be told.
    #[error("it cannot be told whether the server is approved; nothing was started or sent")]
    Unapprovable(#[source] std::io::Error),
    /// It is not served any more.
    #[error("the server is not served any more, and has not seen this call")]
    Closed,
    /// The server speaks another revision than the request was translated for; the request was not sent.
    #[error(
        "the server speaks another revision than before, and has not looked at this; try again"
    )]
    Changed,
    /// What another call was told that waited for the same start.
    #[error(transparent)]
    Same(std::sync::Arc<Self>),
}

/// What is strange about a status that is none of trouble.
const fn emptily(status: u16) -> &'static str {
    match status {
        400.. => "",
        _ => " and no message",
    }
}

/// How often in a row, before the cause.
fn often(tries: u32) -> String {
    match tries {
        1 => String::from("once, "),
        tries => format!("{tries} times in a row, last "),
    }
}

impl Trouble {
    /// Whether the server was there, and did not go along.
    pub(crate) const fn is_disagreement(&self) -> bool {
        matches!(
            self,
            Self::Failure { .. } | Self::Exited { .. } | Self::NotThere { .. }
        )
    }

    /// How long the server is left alone, if that is what it is.
    pub(crate) fn pause(&self) -> Option<std::time::Duration> {
        match self {
            Self::Suspended { wait, .. } => Some(*wait),
            Self::Same(same) => same.pause(),
            _ => None,
        }
    }

    /// Returns the stable reason.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Door(_) | Self::NotThere { .. } => Reason::UpstreamUnreachable,
            Self::Exited { .. } => Reason::UpstreamExited,
            Self::Failure { .. } => Reason::UpstreamNoAgreement,
            Self::Status { .. } => Reason::UpstreamStatus,
            Self::Circle => Reason::UpstreamCircle,
            Self::Silent { .. } => Reason::UpstreamTimeout,
            Self::Gone(_)
            | Self::GoneWithState(_)
            | Self::Ended
            | Self::TaskGone
            | Self::Unsent(_) => Reason::UpstreamGone,
            Self::StateLost(_) => Reason::UpstreamStateLost,
            Self::Forgotten => Reason::UpstreamSession,
            Self::Unfit { .. } => Reason::UpstreamUnfit,
            Self::Misbehaved(_) => Reason::UpstreamMisbehaved,
            Self::Suspended { .. } => Reason::UpstreamSuspended,
            Self::Busy { .. } => Reason::UpstreamBusy,
            Self::Late { .. } | Self::Unseen { .. } => Reason::UpstreamLate,
            Self::Slow { .. } => Reason::UpstreamSlow,
            Self::TooLong { .. } => Reason::UpstreamTooLong,
            Self::Unapproved { .. } | Self::Unapprovable(_) => Reason::UpstreamUnapproved,
            Self::Closed => Reason::UpstreamClosed,
            Self::Changed => Reason::UpstreamChanged,
            Self::Same(same) => same.reason(),
        }
    }

    /// The same for a call that waited for its turn, rather than for an instance that has room.
    pub(crate) const fn in_turn(mut self) -> Self {
        if let Self::Busy { room, .. } | Self::Late { room, .. } = &mut self {
            room.is_of_turns = true;
        }
        self
    }

    /// The same for a call of which the server has seen something.
    fn after_all(self) -> Self {
        match self.is_retired() {
            true => Self::Ended,
            false => self,
        }
    }

    /// Outcome of the request in the metrics.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Busy { .. } | Self::Late { .. } | Self::Unseen { .. } => Outcome::Busy,
            Self::Gone(_)
            | Self::GoneWithState(_)
            | Self::Ended
            | Self::TaskGone
            | Self::Unsent(_)
            | Self::Forgotten
            | Self::TooLong { .. }
            | Self::Misbehaved(_) => Outcome::Lost,
            Self::Silent { .. } => Outcome::Timeout,
            Self::Unfit { .. } => Outcome::Error,
            Self::Door(_)
            | Self::NotThere { .. }
            | Self::Exited { .. }
            | Self::Failure { .. }
            | Self::Status { .. }
            | Self::Circle
            | Self::StateLost(_)
            | Self::Suspended { .. }
            | Self::Slow { .. }
            | Self::Unapproved { .. }
            | Self::Unapprovable(_)
            | Self::Closed
            | Self::Changed => Outcome::Unavailable,
            Self::Same(same) => same.outcome(),
        }
    }

    /// Fate of the request that failed this way.
    pub(crate) fn delivery(&self) -> Delivery {
        match self {
            Self::Door(_)
            | Self::NotThere { .. }
            | Self::Exited { .. }
            | Self::Failure { .. }
            | Self::Circle
            | Self::Unseen { .. }
            | Self::Unsent(_)
            | Self::StateLost(_)
            | Self::Suspended { .. }
            | Self::Busy { .. }
            | Self::Late { .. }
            | Self::Slow { .. }
            | Self::Unapproved { .. }
            | Self::Unapprovable(_)
            | Self::Closed
            | Self::Changed => Delivery::NotSent,
            Self::Forgotten => Delivery::RefusedUnread,
            Self::Status { .. }
            | Self::Silent { .. }
            | Self::Gone(_)
            | Self::GoneWithState(_)
            | Self::Ended
            | Self::TaskGone
            | Self::Unfit { .. }
            | Self::Misbehaved(_)
            | Self::TooLong { .. } => Delivery::Unknown,
            Self::Same(same) => same.delivery(),
        }
    }

    /// Returns true if the server left the config before it was given the request.
    pub(crate) fn is_retired(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Same(same) => same.is_retired(),
            _ => false,
        }
    }

    /// Returns the cause and the end of the server's log, with the secrets masked that the server repeats.
    pub(crate) fn text(&self, masks: &Masks) -> FailureText {
        let cause = match self {
            Self::Same(same) => return same.text(masks),
            // It contains nothing from the server, and a masked value may be part of the program's path.
            Self::Door(_) => chain(self),
            _ => masks.cover(chain(self)),
        };
        FailureText {
            cause,
            stderr: self.stderr().to_owned(),
        }
    }

    /// Returns the end of the server's log, if it is part of the failure.
    fn stderr(&self) -> &str {
        match self {
            Self::Exited { stderr, .. } | Self::Failure { stderr, .. } => stderr,
            Self::Unsent(text)
            | Self::Gone(text)
            | Self::GoneWithState(text)
            | Self::StateLost(text)
            | Self::Suspended { why: text, .. } => &text.stderr,
            Self::Same(same) => same.stderr(),
            _ => "",
        }
    }
}

/// The whole chain of causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

impl UpstreamError {
    /// The same for a call of which the server has seen something.
    pub(crate) fn after_all(self) -> Self {
        Self {
            kind: self.kind.after_all(),
            ..self
        }
    }

    /// Returns cause, log and lasting advice.
    pub(crate) fn explanation(&self) -> Explanation {
        // The time until the next start is over when the text is read later.
        let is_lasting = self.kind.pause().is_none();
        Explanation {
            text: self.kind.text(&self.masks),
            hint: is_lasting.then(|| self.kind.advised(&self.masks)).flatten(),
        }
    }

    /// JSON-RPC error code of every upstream error.
    pub(crate) const CODE: i64 = ErrorCode::InternalError.code();

    /// Returns the message for the client: server, cause, log and advice.
    pub(crate) fn message(&self) -> String {
        let explanation = Explanation {
            text: self.kind.text(&self.masks),
            hint: self.kind.advised(&self.masks),
        };
        format!("{}: {explanation}", self.target)
    }

    /// Encodes the error for the client.
    #[must_use]
    pub fn on_wire(&self) -> WireError {
        let advice = self.kind.advised(&self.masks);
        let data = ObjectWriter::new().text("reason", self.kind.reason().as_str());
        let data = match &advice {
            None => data,
            Some(advice) => data.text("advice", advice),
        };
        WireError {
            code: Self::CODE,
            message: self.message(),
            data: Some(data.finish()),
            http_status: 200,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_log_stands_behind_the_cause_and_before_the_hint() {
        let error = UpstreamError {
            target: String::from("`x`"),
            kind: Trouble::Failure {
                failure: Failure::InitTimeout,
                stderr: format!("{}\u{1b}[1mwaiting\n", "-".repeat(600)),
            },
            masks: Masks::default(),
        };
        let message = error.on_wire().message;
        let start = "`x`: no agreement with the server: the server did not answer `initialize` in time; its log ends with: …---";
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

    /// What is read later names no time that is over by then, and one failure is told as one.
    #[test]
    fn a_failure_that_is_kept_names_no_time() {
        let error = |tries| {
            let kind = Trouble::Suspended {
                tries,
                wait: std::time::Duration::from_millis(27_200),
                why: FailureText::from("it fell"),
            };
            UpstreamError {
                target: String::from("`x`"),
                kind,
                masks: Masks::default(),
            }
        };
        let once = "the server failed once, because it fell";
        assert_eq!(
            error(1).on_wire().message,
            format!("`x`: {once}; hint: it is tried again in 27.2s")
        );
        assert_eq!(error(1).explanation().to_string(), once);
        let often = "the server failed 3 times in a row, last because it fell";
        assert_eq!(error(3).explanation().to_string(), often);
    }
}
