//! Recorded events of a conversation.

use mcpact_engine::client::EraVerdict;
use mcpact_engine::effect::{Drop, End};
use mcpact_engine::refusal::{ApiMisuse, Refusal};
use mcpact_spec::{Revision, Side};
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::Id;

/// A recorded event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A machine wrote a message.
    Wrote {
        /// Writer.
        from: Side,
        /// The message.
        text: String,
        /// State of the connection at that time.
        target: WriteTarget,
    },
    /// A request was passed to its owner.
    Served {
        /// Receiver.
        side: Side,
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
        /// Its raw parameters.
        params: Option<String>,
        /// Revision that applies.
        revision: Revision,
    },
    /// A notification was passed to its owner.
    Observed {
        /// Receiver.
        side: Side,
        /// Its method.
        method: String,
    },
    /// An own request has ended.
    Settled {
        /// Requester.
        side: Side,
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
        /// Outcome.
        end: Ended,
    },
    /// A side considers the negotiation complete.
    Concluded {
        /// The side.
        side: Side,
        /// Agreed revision.
        revision: Revision,
    },
    /// A message was not written.
    Withheld {
        /// The side.
        side: Side,
        /// Reason.
        misuse: ApiMisuse,
    },
    /// A message was dropped.
    Dropped {
        /// The side.
        side: Side,
        /// Message and reason.
        drop: Drop,
    },
    /// A side reports a protocol violation.
    Reported {
        /// The reporting side.
        side: Side,
        /// The violated rule.
        refusal: Refusal,
    },
    /// The client stores this verdict for the next connection.
    Remembered(EraVerdict),
    /// The client cancelled a request by closing its stream.
    Abandoned(Id),
    /// The client restarted the server.
    Respawned,
    /// A side closed the connection.
    HungUp(Side),
    /// The connection is closed, and both sides know it.
    Down,
}

/// State of the connection at the time of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// Connected.
    Wire,
    /// Not connected.
    Nothing,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Raw result.
    Result(String),
    /// Raw error.
    Error(String),
    /// Timed out.
    TimedOut,
    /// Cancelled by its owner.
    Cancelled,
    /// The connection was closed.
    ConnectionClosed,
}

impl From<End<'_>> for Ended {
    fn from(end: End<'_>) -> Self {
        match end {
            End::Answered(Outcome::Result(body)) => Self::Result(body.raw.to_owned()),
            End::Answered(Outcome::Error(raw)) => Self::Error(raw.to_owned()),
            End::TimedOut => Self::TimedOut,
            End::Cancelled => Self::Cancelled,
            End::ConnectionClosed => Self::ConnectionClosed,
        }
    }
}

/// A message on the wire, classified without state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A request with this id and method.
    Request(Id, String),
    /// A notification of this method.
    Notification(String),
    /// An answer.
    Answer,
    /// Not a message.
    Noise,
}

impl Seen {
    /// Classifies a message.
    #[must_use]
    pub fn of(text: &str) -> Self {
        match Envelope::parse(text.as_bytes()) {
            Ok(Envelope::Request(request)) => {
                Self::Request(request.id.to_id(), request.method.into_owned())
            }
            Ok(Envelope::Notification(note)) => Self::Notification(note.method.into_owned()),
            Ok(Envelope::Response(_)) => Self::Answer,
            Err(_) => Self::Noise,
        }
    }

    /// Method, if it has one.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(_, method) | Self::Notification(method) => Some(method),
            Self::Answer | Self::Noise => None,
        }
    }
}
