//! What a client has in an instance for itself, and whether it knows that it is lost.
//!
//! Where every client has an instance, the server may keep something of it. An instance that has ended by itself
//! takes that along. The client is told once: with the call that was lost, or else by the next call, which is not made.
//! An instance that was ended because nobody used it for long is what the config wants.

use std::sync::atomic::{AtomicBool, Ordering};

use mcpact_spec::Method;

use crate::connection::UpstreamConnection;
use crate::connection::slot::ConnectionSlot;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::supervisor::{HEALTH_CHECKS_FAILED, StopCause};
use crate::upstream::binding::ServerBinding;
use mcpact::connection::FailureText;

/// Whether a connection has anything of its client.
#[derive(Debug, Default)]
pub(crate) struct StatefulUse {
    is_any: AtomicBool,
    /// Whether its loss was told.
    is_told: AtomicBool,
}

impl StatefulUse {
    /// A request has reached the server, which may keep something of it.
    pub(crate) fn note(&self, method: Option<Method>) {
        if matters(method) {
            self.is_any.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether what a server keeps may matter for a request.
fn matters(method: Option<Method>) -> bool {
    method.is_some_and(Method::may_ask_for_input)
}

impl UpstreamConnection {
    /// Whether it is over because its server is not served any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.running.stop_cause() == Some(StopCause::Shutdown)
    }

    /// Why it is over, if nobody wanted that.
    fn fell(&self) -> Option<FailureText> {
        match self.running.stop_cause() {
            Some(StopCause::Unhealthy) => Some(HEALTH_CHECKS_FAILED.into()),
            Some(_) => None,
            // The supervisor knows a moment before those who use the connection do.
            None => self.upstream.end().or_else(|| self.running.failure()),
        }
    }
}

impl ConnectionSlot {
    /// Whether a server has something of one client on this connection.
    fn keeps_on(&self, connection: &UpstreamConnection) -> bool {
        self.keeps_at(connection.revision().era())
            && connection.stateful_use.is_any.load(Ordering::Relaxed)
    }

    /// Why what the client had on a connection is lost, if it is and nobody has told it.
    pub(crate) fn bereaved(&self, connection: &UpstreamConnection) -> Option<FailureText> {
        let why = self.keeps_on(connection).then(|| connection.fell())??;
        let was_told = connection
            .stateful_use
            .is_told
            .swap(true, Ordering::Relaxed);
        (!was_told).then_some(why)
    }
}

impl ServerBinding {
    /// Refuses a request if what it may rest on is lost, and its client does not know.
    pub(crate) fn check_kept(&self, method: Option<Method>) -> Result<(), ServeError> {
        if !matters(method) {
            return Ok(());
        }
        match self.slot.loss() {
            Some(why) => Err(self.state_lost(why)),
            None => Ok(()),
        }
    }

    /// The same for a request that was on its way when its connection turned out to be over.
    pub(crate) fn check_kept_on(
        &self,
        connection: &UpstreamConnection,
        method: Option<Method>,
    ) -> Result<(), ServeError> {
        if !matters(method) {
            return Ok(());
        }
        match self.slot.bereaved(connection) {
            Some(why) => Err(self.state_lost(why)),
            None => Ok(()),
        }
    }

    fn state_lost(&self, why: FailureText) -> ServeError {
        self.lost_call(UpstreamErrorKind::StateLost(why)).into()
    }

    /// What a call is told that was lost with its connection; that is how its client learns what else is.
    pub(crate) fn gone(
        &self,
        connection: &UpstreamConnection,
        why: FailureText,
    ) -> UpstreamErrorKind {
        if !connection.upstream.is_gone() || !self.slot.keeps_on(connection) {
            return UpstreamErrorKind::ConnectionLost(why);
        }
        connection
            .stateful_use
            .is_told
            .store(true, Ordering::Relaxed);
        UpstreamErrorKind::ConnectionAndStateLost(why)
    }
}
