//! State of one client in its instance, and the report of its loss.
//!
//! With an instance per client, the server may keep state of the client. If the instance ends on its own, the client gets
//! one report: the error of the call that was lost, or that of the next call, which is not sent. An idle stop is
//! intended and not reported.

use std::sync::atomic::{AtomicBool, Ordering};

use mcpact_spec::Method;

use crate::connection::UpstreamConnection;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::upstream::binding::ServerBinding;
use mcpact::connection::FailureText;

/// Use of a connection that may leave state of its client in the server.
#[derive(Debug, Default)]
pub(crate) struct StatefulUse {
    is_any: AtomicBool,
    /// The loss of the state was reported.
    is_reported: AtomicBool,
}

impl StatefulUse {
    /// Records a request that has reached the server.
    pub(crate) fn note(&self, method: Option<Method>) {
        if is_stateful(method) {
            self.is_any.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Records the report of the loss. Returns true if it is the first one.
    pub(crate) fn report(&self) -> bool {
        !self.is_reported.swap(true, Ordering::Relaxed)
    }
}

/// Returns true if a request may use or leave state in the server.
fn is_stateful(method: Option<Method>) -> bool {
    method.is_some_and(Method::may_ask_for_input)
}

impl ServerBinding {
    /// Refuses a stateful request if the client's state is lost and this was not reported.
    pub(crate) fn check_state(&self, method: Option<Method>) -> Result<(), ServeError> {
        self.check_loss(method, || self.slot.report_loss())
    }

    /// Refuses to resend a stateful request if the client's state on its connection is lost and this was not reported.
    pub(crate) fn check_state_on(
        &self,
        connection: &UpstreamConnection,
        method: Option<Method>,
    ) -> Result<(), ServeError> {
        self.check_loss(method, || self.slot.report_loss_of(connection))
    }

    fn check_loss(
        &self,
        method: Option<Method>,
        report_loss: impl FnOnce() -> Option<FailureText>,
    ) -> Result<(), ServeError> {
        match is_stateful(method).then(report_loss).flatten() {
            Some(why) => Err(self.lost_call(UpstreamErrorKind::StateLost(why)).into()),
            None => Ok(()),
        }
    }

    /// Returns the error for a call that was lost with its connection. It reports the loss of the client's state.
    pub(crate) fn loss_error(
        &self,
        connection: &UpstreamConnection,
        why: FailureText,
    ) -> UpstreamErrorKind {
        if !connection.upstream.is_gone() || !self.slot.has_state_on(connection) {
            return UpstreamErrorKind::ConnectionLost(why);
        }
        connection.stateful_use.report();
        UpstreamErrorKind::ConnectionAndStateLost(why)
    }
}
