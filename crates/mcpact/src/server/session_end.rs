//! Shutdown of a session on a line-based connection.

use std::time::Duration;

use tokio::sync::watch;

/// Conditions under which a session ends.
#[derive(Clone, Debug)]
pub struct SessionEnd {
    /// Time for in-flight requests after the client closed its side.
    pub(super) drain_timeout: Duration,
    /// Once true, the session ends as soon as no request is in flight.
    draining: Option<watch::Receiver<bool>>,
    stopping: watch::Receiver<bool>,
}

impl SessionEnd {
    /// Lets requests continue for `drain_timeout` after the client closed its side. When `stopping` becomes true,
    /// in-flight requests are cut off with an error response.
    #[must_use]
    pub const fn new(drain_timeout: Duration, stopping: watch::Receiver<bool>) -> Self {
        Self {
            drain_timeout,
            draining: None,
            stopping,
        }
    }

    /// Ends the session only when the client closes its side; requests may then continue for `drain_timeout`.
    #[must_use]
    pub fn after(drain_timeout: Duration) -> Self {
        Self::new(drain_timeout, watch::channel(false).1)
    }

    /// Resolves when all requests must end.
    pub(super) async fn stop_requested(self) {
        is_set(self.stopping).await;
    }

    /// Resolves when idle sessions must end.
    pub(super) async fn drain_requested(self) {
        match self.draining {
            Some(draining) => is_set(draining).await,
            None => std::future::pending().await,
        }
    }
}

/// Switches that end a group of sessions.
#[derive(Debug, Default)]
pub(super) struct SessionSwitches {
    draining: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl SessionSwitches {
    /// Returns the conditions for a session of the group.
    pub(super) fn session_end(&self, drain_timeout: Duration) -> SessionEnd {
        SessionEnd {
            drain_timeout,
            draining: Some(self.draining.subscribe()),
            stopping: self.stopping.subscribe(),
        }
    }

    /// Ends each session as soon as it has no request in flight.
    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Ends every session.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

/// Resolves when the value becomes true.
async fn is_set(mut flag: watch::Receiver<bool>) {
    if flag.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}
