//! Everything that was seen of a conversation, in order.

use mcpact_engine::client::EraVerdict;
use mcpact_engine::effect::{Drop, End};
use mcpact_engine::refusal::{ApiMisuse, Refusal};
use mcpact_spec::{Revision, Side};
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::Id;

/// One thing that was seen.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message left a machine.
    Wrote {
        /// Whose.
        from: Side,
        /// The message.
        text: String,
        /// Whether there was anything to write to.
        onto: Onto,
    },
    /// A request was handed to its owner.
    Served {
        /// To whom.
        side: Side,
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
        /// Its raw parameters.
        params: Option<String>,
        /// The revision that holds for it.
        revision: Revision,
    },
    /// A notification was handed to its owner.
    Observed {
        /// To whom.
        side: Side,
        /// Its method.
        method: String,
    },
    /// A request of one's own has ended.
    Settled {
        /// Whose.
        side: Side,
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
        /// How it ended.
        end: Ended,
    },
    /// A side holds that there is an agreement.
    Concluded {
        /// Which side.
        side: Side,
        /// On this revision.
        revision: Revision,
    },
    /// A message was not written.
    Withheld {
        /// Whose.
        side: Side,
        /// Why.
        misuse: ApiMisuse,
    },
    /// A message was not passed on.
    Dropped {
        /// By whom.
        side: Side,
        /// What and why.
        drop: Drop,
    },
    /// A side holds that the other broke a rule.
    Reported {
        /// Who says so.
        side: Side,
        /// Which rule.
        refusal: Refusal,
    },
    /// The client wants this known at the next connection.
    Remembered(EraVerdict),
    /// The client gave up a request by closing its stream.
    Abandoned(Id),
    /// The client had the server started anew.
    Respawned,
    /// A side closed the connection.
    HungUp(Side),
    /// The connection is gone, and both were told.
    Down,
}

/// Whether there was a connection to write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onto {
    /// There was.
    Wire,
    /// There was none.
    Nothing,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this raw result.
    Result(String),
    /// With this raw error.
    Error(String),
    /// It took too long.
    TimedOut,
    /// Its owner gave it up.
    Cancelled,
    /// The connection went.
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

/// A message on the wire, as far as a bystander can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A request with this id and method.
    Request(Id, String),
    /// A notification of this method.
    Notification(String),
    /// An answer.
    Answer,
    /// Nothing that makes sense.
    Noise,
}

impl Seen {
    /// Looks at a message.
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

    /// The method, where there is one.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(_, method) | Self::Notification(method) => Some(method),
            Self::Answer | Self::Noise => None,
        }
    }
}
