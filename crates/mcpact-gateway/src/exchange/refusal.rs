//! Detection of a changed server after a refusal; only a changed server gets the request again.

use crate::sync::lock;
use std::sync::{Arc, Mutex};

use mcpact_spec::{Era, Revision};

use crate::error::UpstreamErrorKind;
use crate::retry::{Attempt, Cause};
use crate::upstream::binding::ServerBinding;
use mcpact::connection::CallFailure;
use mcpact::connection::Delivery;

/// Kind of refusal that may come from a server other than the one negotiated with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusalKind {
    /// The request was not sent because the revision of the available connection differs.
    Unsent,
    /// The server does not support this revision and has not processed the request.
    Disagreed(Revision),
    /// Either the server is no longer of the modern era, or it processed the request and rejects just this one.
    InDoubt,
}

impl RefusalKind {
    /// Converts the refusal to the input of the retry policy.
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

/// Last refusal of a request with its binding, for the decision about a resend.
#[derive(Debug, Default)]
pub(crate) struct RefusalRecord(Mutex<Option<(RefusalKind, Arc<ServerBinding>)>>);

impl RefusalRecord {
    pub(crate) fn note(&self, refused: RefusalKind, binding: &Arc<ServerBinding>) {
        let noted = Some((refused, Arc::clone(binding)));
        *lock(&self.0) = noted;
    }

    /// Records what a failure on a connection of this revision implies about the server.
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
        lock(&self.0).take()
    }
}

/// Renegotiates with the server and returns true if it changed since the refusal. Only then is the request
/// resent.
pub(crate) async fn is_another(refused: RefusalKind, binding: &ServerBinding) -> bool {
    if let RefusalKind::Unsent = refused {
        return true;
    }
    // Boxed: this is rare, and would otherwise enlarge the future of every call.
    let profile = Box::pin(binding.renegotiate()).await;
    profile.is_ok_and(|connection| match refused {
        RefusalKind::Unsent => true,
        RefusalKind::Disagreed(before) => connection.revision() != before,
        RefusalKind::InDoubt => connection.revision().era() == Era::Legacy,
    })
}

/// Error for a server that refuses its own revision and is unchanged after renegotiation.
pub(crate) fn disagreed(revision: Revision) -> UpstreamErrorKind {
    let why = format!("it refuses requests of {revision}, which it has agreed to");
    UpstreamErrorKind::ProtocolViolation(why)
}
