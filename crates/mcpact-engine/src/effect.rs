//! Effects of a machine: returned, never performed.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use mcpact_spec::{LogLevel, Method};
use mcpact_wire::codec;
use mcpact_wire::envelope::{Notification, Outcome, Params, Request};
use mcpact_wire::id::{Id, IdRef};
use smallvec::SmallVec;

use crate::client::EraVerdict;
use crate::negotiation::Negotiation;
use crate::pact::Pact;
use crate::refusal::{ApiMisuse, Refusal};

/// A machine after one input, and what is to be done.
#[must_use]
#[derive(Debug)]
pub struct Step<'a, M> {
    /// The machine in its new state.
    pub next: M,
    /// Effects in their order.
    pub effects: SmallVec<[Effect<'a>; 1]>,
}

/// One thing to do.
#[derive(Debug)]
pub enum Effect<'a> {
    /// Send this message.
    Write(String),
    /// Send this answer; over HTTP, with this status.
    Reply {
        /// The whole message.
        text: String,
        /// The request that it answers, where it could be read.
        id: Option<Id>,
        /// The status of the HTTP answer.
        http_status: u16,
        /// Label of the refusal, for metrics.
        refused: Option<Refused>,
    },
    /// Serve this request and answer it later.
    Serve(Call<'a>),
    /// Take note of this notification.
    Observe(IncomingNotification<'a>),
    /// One of our own requests has ended.
    Settled {
        /// Its id.
        id: Id,
        /// Its method.
        method: Box<str>,
        /// Its outcome.
        end: End<'a>,
    },
    /// The peers have agreed.
    Concluded(Arc<Pact>),
    /// A negotiation has ended: for the log, nothing depends on it.
    Negotiated(Box<Negotiation>),
    /// A message of the owner was not sent.
    Withheld(ApiMisuse),
    /// A received message was not passed on.
    Dropped(Drop),
    /// The peer broke a rule and the policy wants it told.
    Report {
        /// The broken rule.
        refusal: Refusal,
        /// Severity of the report.
        gravity: Severity,
    },
    /// Remember this about the peer for the next connection.
    Remember(EraVerdict),
    /// Give up a request on its own stream (modern HTTP: close it).
    Abandon(Id),
    /// Restart the server process, then pass [`crate::client::Input::Connected`].
    Respawn,
    /// Try the HTTP+SSE transport of 2024-11-05 instead, then say
    /// [`crate::client::Input::Connected`].
    TryHttpSse,
    /// Close the connection.
    HangUp,
}

/// A request that was refused, in words of which there are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its method, where the refusal is about one that a revision defines.
    pub method: Option<Method>,
    /// [`Refusal::reason`].
    pub reason: &'static str,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        Self {
            method: refusal.method(),
            reason: refusal.reason(),
        }
    }
}

/// A request that may be served.
#[derive(Debug)]
pub struct Call<'a> {
    /// To be used in the answer.
    pub id: Id,
    /// The method, if any revision defines it.
    pub method: Option<Method>,
    /// Its name as it came.
    pub name: Box<str>,
    /// Its parameters, unread.
    pub params: Params<'a>,
    /// Pact of this request.
    pub pact: Arc<Pact>,
    /// Lowest level of log messages, if the request names one.
    pub log_level: Option<LogLevel>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        request: Request<'a>,
        method: Option<Method>,
        pact: Arc<Pact>,
        log_level: Option<LogLevel>,
    ) -> Self {
        Self {
            id: request.id.to_id(),
            method,
            name: Box::from(request.method.as_ref()),
            params: request.params,
            pact,
            log_level,
        }
    }
}

/// A notification that may be heeded.
#[derive(Debug)]
pub struct IncomingNotification<'a> {
    /// The method, if any revision defines it.
    pub method: Option<Method>,
    /// Its name as it came.
    pub name: Box<str>,
    /// Its parameters, unread.
    pub params: Params<'a>,
}

/// Outcome of one of our own requests.
#[derive(Debug)]
pub enum End<'a> {
    /// The peer answered.
    Answered(Outcome<'a>),
    /// The peer did not answer in time.
    TimedOut,
    /// We gave it up.
    Cancelled,
    /// The connection is gone.
    ConnectionClosed,
}

/// Something that came and was not passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// Its method, or the id of an answer.
    pub what: Box<str>,
    /// Cause.
    pub why: DropCause,
}

mcpact_spec::stable_strings! {
    /// Reason why a message was not passed on.
    pub enum DropCause {
        /// A notification that was not negotiated.
        Undeclared = "undeclared",
        /// A late, duplicate or unknown response.
        UnknownAnswer = "unknown_answer",
        /// A message that has no meaning at this time.
        OutOfPlace = "out_of_place",
        /// Our response to a request that the peer cancelled.
        Cancelled = "cancelled",
    }
}

/// Severity of a broken rule, as set in the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It should be looked at.
    Warning,
    /// It is an error of the peer.
    Error,
}

/// Gathers the effects of one input.
#[derive(Debug, Default)]
pub(crate) struct Effects<'a> {
    all: SmallVec<[Effect<'a>; 1]>,
}

impl<'a> Effects<'a> {
    pub(crate) fn push(&mut self, effect: Effect<'a>) {
        self.all.push(effect);
    }

    pub(crate) fn drop(&mut self, what: &str, why: DropCause) {
        self.push(Effect::Dropped(Drop {
            what: Box::from(what),
            why,
        }));
    }

    /// Drops an answer to no request of ours.
    pub(crate) fn drop_answer(&mut self, id: Option<IdRef<'_>>) {
        self.drop(id.map_or("response", IdRef::raw), DropCause::UnknownAnswer);
    }

    /// Answers a request with a raw result.
    pub(crate) fn reply(&mut self, id: IdRef<'_>, result: &str) {
        self.push(Effect::Reply {
            text: codec::result(id, result),
            id: Some(id.to_id()),
            http_status: 200,
            refused: None,
        });
    }

    pub(crate) fn observe(&mut self, method: Option<Method>, note: Notification<'a>) {
        self.push(Effect::Observe(IncomingNotification {
            method,
            name: Box::from(note.method.as_ref()),
            params: note.params,
        }));
    }

    /// Ends one of our own requests, given by id and method.
    pub(crate) fn settle(&mut self, (id, method): (Id, Box<str>), end: End<'a>) {
        self.push(Effect::Settled { id, method, end });
    }

    /// Writes a message, or reports why it is withheld.
    pub(crate) fn write(&mut self, text: Result<String, ApiMisuse>) {
        self.push(match text {
            Ok(text) => Effect::Write(text),
            Err(misuse) => Effect::Withheld(misuse),
        });
    }

    pub(crate) fn report(&mut self, refusal: Refusal, gravity: Severity) {
        self.push(Effect::Report { refusal, gravity });
    }

    pub(crate) fn all(self) -> SmallVec<[Effect<'a>; 1]> {
        self.all
    }
}
