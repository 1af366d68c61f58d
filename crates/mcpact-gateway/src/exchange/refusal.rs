//! Whether a server that refuses a request has become another one, which has to be given it.

use std::sync::{Arc, Mutex, PoisonError};

use mcpact_spec::{Era, Revision};

use crate::error::UpstreamErrorKind;
use crate::retry::{Attempt, Cause};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::CallFailure;
use mcpact::connection::Delivery;

/// How a request was refused that may belong to another server than was profile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalKind {
    /// It was not sent: the connection that it would have taken is of another revision.
    Unsent,
    /// The server does not speak this revision, and has not looked at it.
    Disagreed(Revision),
    /// The server is not of the modern era any more, or has looked at it and means just this request.
    InDoubt,
}

impl RefusalKind {
    /// The refusal as the retry policy sees it.
    pub(crate) const fn attempt(self) -> Attempt {
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
pub(crate) struct RefusalRecord(Mutex<Option<(RefusalKind, Arc<ServerBinding>)>>);

impl RefusalRecord {
    pub(crate) fn note(&self, refused: RefusalKind, binding: &Arc<ServerBinding>) {
        let noted = Some((refused, Arc::clone(binding)));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }

    /// Notes what a loss on a connection of this revision says about the server.
    pub(crate) fn note_loss(
        &self,
        loss: &CallFailure,
        revision: Revision,
        binding: &Arc<ServerBinding>,
    ) {
        match loss {
            CallFailure::RevisionRefused => self.note(RefusalKind::Disagreed(revision), binding),
            CallFailure::Ambiguous(_) => self.note(RefusalKind::InDoubt, binding),
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

    pub(crate) fn take(&self) -> Option<(RefusalKind, Arc<ServerBinding>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl UpstreamServer {
    /// Whether the server, profile anew, is another one than the one that refused something: only that one is given it.
    pub(crate) async fn is_another(&self, refused: RefusalKind, binding: &ServerBinding) -> bool {
        if let RefusalKind::Unsent = refused {
            return true;
        }
        // In a box: what is rare makes every call larger otherwise.
        let profile = Box::pin(binding.meet_anew()).await;
        profile.is_ok_and(|connection| match refused {
            RefusalKind::Unsent => true,
            RefusalKind::Disagreed(before) => connection.revision() != before,
            RefusalKind::InDoubt => connection.revision().era() == Era::Legacy,
        })
    }
}

/// What is told of a server that refuses its own revision, and is the same as before when it is profile anew.
pub(crate) fn disagreed(revision: Revision) -> UpstreamErrorKind {
    let why = format!("it refuses requests of {revision}, which it has agreed to");
    UpstreamErrorKind::ProtocolViolation(why)
}
