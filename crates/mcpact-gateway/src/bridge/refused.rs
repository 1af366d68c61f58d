//! Whether a server that refuses a request has become another one, which has to be given it.

use std::sync::{Arc, Mutex, PoisonError};

use mcpact_spec::{Era, Revision};

use super::Bridge;
use super::caller::Caller;
use crate::error::UpstreamErrorKind;
use crate::retry::{Attempt, Cause};
use mcpact::connection::CallFailure;
use mcpact::connection::Delivery;

/// How a request was refused that may belong to another server than was met.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    /// It was not sent: the connection that it would have taken is of another revision.
    Unsent,
    /// The server does not speak this revision, and has not looked at it.
    Disagreed(Revision),
    /// The server is not of the modern era any more, or has looked at it and means just this request.
    InDoubt,
}

impl Refused {
    /// The refusal as the retry policy sees it.
    pub(super) const fn attempt(self) -> Attempt {
        let (cause, delivery) = match self {
            Self::Unsent => (Cause::RevisionChanged, Delivery::NotSent),
            Self::Disagreed(_) => (Cause::RevisionChanged, Delivery::RefusedUnread),
            Self::InDoubt => (Cause::Ambiguous, Delivery::Unknown),
        };
        Attempt {
            cause,
            delivery,
            state_lost: false,
            has_successor: false,
            retries: 0,
        }
    }
}

/// The last refusal of a request and on whose behalf it was made, for whoever may bring it once more.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Option<(Refused, Arc<Caller>)>>);

impl Refusals {
    pub(super) fn note(&self, refused: Refused, caller: &Arc<Caller>) {
        let noted = Some((refused, Arc::clone(caller)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }

    /// Notes what a loss on a connection of this revision says about the server.
    pub(super) fn note_loss(&self, loss: &CallFailure, revision: Revision, caller: &Arc<Caller>) {
        match loss {
            CallFailure::RevisionRefused => self.note(Refused::Disagreed(revision), caller),
            CallFailure::Ambiguous(_) => self.note(Refused::InDoubt, caller),
            CallFailure::SessionLost
            | CallFailure::NotSent(_)
            | CallFailure::Unreachable(_)
            | CallFailure::LoopDetected
            | CallFailure::ConnectionLost(_)
            | CallFailure::ProtocolViolation(_)
            | CallFailure::HttpStatus(_)
            | CallFailure::ResponseTooLarge(_) => {}
        }
    }

    pub(super) fn take(&self) -> Option<(Refused, Arc<Caller>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Bridge {
    /// Whether the server, met anew, is another one than the one that refused something: only that one is given it.
    pub(super) async fn is_another(&self, refused: Refused, caller: &Caller) -> bool {
        if let Refused::Unsent = refused {
            return true;
        }
        // In a box: what is rare makes every call larger otherwise.
        let met = Box::pin(caller.meet_anew()).await;
        met.is_ok_and(|lane| match refused {
            Refused::Unsent => true,
            Refused::Disagreed(before) => lane.revision() != before,
            Refused::InDoubt => lane.revision().era() == Era::Legacy,
        })
    }
}

/// What is told of a server that refuses its own revision, and is the same as before when it is met anew.
pub(super) fn disagreed(revision: Revision) -> UpstreamErrorKind {
    let why = format!("it refuses requests of {revision}, which it has agreed to");
    UpstreamErrorKind::ProtocolViolation(why)
}
