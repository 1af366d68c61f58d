//! What a single call may be told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use tokio::sync::watch;

use crate::model::Progress;

/// Gives a call up from elsewhere; copies are the same token.
#[derive(Clone, Debug)]
pub struct CancelToken {
    is_cancelled: Arc<watch::Sender<bool>>,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// A token that nobody has used.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_cancelled: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Gives up every call that has this token, and every later one.
    pub fn cancel(&self) {
        self.is_cancelled.send_replace(true);
    }

    pub(super) async fn cancelled(&self) {
        let mut receiver = self.is_cancelled.subscribe();
        // The sender lives as long as this token.
        let _ = receiver.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// What a single call may be told beyond its arguments.
#[derive(Clone, Default)]
pub struct CallOptions {
    pub(super) progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    pub(super) timeout: Option<Duration>,
    pub(super) maximum: Option<Duration>,
    pub(super) cancel: Option<CancelToken>,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("maximum", &self.maximum)
            .finish_non_exhaustive()
    }
}

impl CallOptions {
    /// Nothing beyond the arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls this with every sign of progress, in order and before the result. It must not block.
    #[must_use]
    pub fn on_progress(mut self, call: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(call));
        self
    }

    /// How long the server may be silent; progress starts it anew.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long the call may take in all, whatever progress comes.
    #[must_use]
    pub const fn maximum(mut self, maximum: Duration) -> Self {
        self.maximum = Some(maximum);
        self
    }

    /// Gives the call up when the token says so.
    #[must_use]
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    pub(super) fn patience(&self, timeout: Duration) -> RequestTimeout {
        let timeout = self.timeout.unwrap_or(timeout);
        let usual = RequestTimeout::default().maximum;
        RequestTimeout {
            timeout,
            maximum: self.maximum.unwrap_or_else(|| usual.max(timeout)),
            on_progress: OnProgress::Extend,
        }
    }
}
