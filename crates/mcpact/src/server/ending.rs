//! How a conversation on a carrier of lines ends.

use std::time::Duration;

use tokio::sync::watch;

/// How a conversation ends.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How long requests may go on when the client has closed its side.
    pub(super) patience: Duration,
    /// From when on it ends as soon as the client waits for nothing.
    resting: Option<watch::Receiver<bool>>,
    stopping: watch::Receiver<bool>,
}

impl Ending {
    /// Requests may go on for so long when the client has closed its side, and not at all from when `stopping`
    /// says so; whoever waits for an answer then is told.
    #[must_use]
    pub const fn new(patience: Duration, stopping: watch::Receiver<bool>) -> Self {
        Self {
            patience,
            resting: None,
            stopping,
        }
    }

    /// The same; when `resting` says so, it ends also as soon as the client waits for nothing.
    pub(super) fn or_at_rest(mut self, resting: watch::Receiver<bool>) -> Self {
        self.resting = Some(resting);
        self
    }

    /// Only the client ends it; requests may go on for so long when it has closed its side.
    #[must_use]
    pub fn after(patience: Duration) -> Self {
        Self::new(patience, watch::channel(false).1)
    }

    /// Until nothing may go on any more.
    pub(super) async fn stopped(self) {
        said(self.stopping).await;
    }

    /// Until nothing may go on that nobody waits for.
    pub(super) async fn rested(self) {
        match self.resting {
            Some(resting) => said(resting).await,
            None => std::future::pending().await,
        }
    }
}

/// Until it says so.
async fn said(mut saying: watch::Receiver<bool>) {
    if saying.wait_for(|is_so| *is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}
