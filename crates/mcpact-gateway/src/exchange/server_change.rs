//! Detection of a server that changed since the negotiation. Only a changed server gets a refused request again.

use mcpact::connection::CallFailure;
use mcpact_spec::{Era, Revision};

use crate::error::UpstreamErrorKind;
use crate::retry::ServerDoubt;
use crate::upstream::binding::ServerBinding;
use crate::upstream::rebind;

/// Returns the doubt that a failed call raises about a server of this revision.
pub(crate) const fn doubt(failure: &CallFailure, revision: Revision) -> Option<ServerDoubt> {
    match failure {
        CallFailure::RevisionRefused => Some(ServerDoubt::RefusesRevision(revision)),
        CallFailure::Ambiguous(_) => Some(ServerDoubt::Ambiguous),
        _ => None,
    }
}

/// Negotiates again and returns true if the server has changed.
pub(crate) async fn is_changed(doubt: Option<ServerDoubt>, binding: &ServerBinding) -> bool {
    // Boxed: this is rare, and would otherwise enlarge the future of every call.
    let renegotiate = || Box::pin(rebind::latest(binding).renegotiate());
    match doubt {
        None => false,
        Some(ServerDoubt::NotSent) => true,
        Some(ServerDoubt::RefusesRevision(before)) => {
            let connection = renegotiate().await;
            connection.is_ok_and(|connection| connection.revision() != before)
        }
        Some(ServerDoubt::Ambiguous) => {
            let connection = renegotiate().await;
            connection.is_ok_and(|connection| connection.revision().era() == Era::Legacy)
        }
    }
}

/// Error for a server that refuses its own revision and is unchanged after renegotiation.
pub(crate) fn disagreed(revision: Revision) -> UpstreamErrorKind {
    let why = format!("it rejects requests of {revision}, to which it agreed");
    UpstreamErrorKind::ProtocolViolation(why)
}
