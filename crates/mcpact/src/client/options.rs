//! Options of a single call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use tokio::sync::watch;

use super::pending::ProgressCallback;
use crate::model::Progress;

/// Cancels calls from elsewhere; clones are the same token.
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
    /// Creates an unused token.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_cancelled: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Cancels every call with this token, now and later.
    pub fn cancel(&self) {
        self.is_cancelled.send_replace(true);
    }

    pub(super) async fn cancelled(&self) {
        let mut receiver = self.is_cancelled.subscribe();
        // The sender lives as long as this token.
        let _ = receiver.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// Options of a single call.
#[derive(Clone, Default)]
pub struct CallOptions {
    pub(super) progress: Option<ProgressCallback>,
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
    /// Creates default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a callback for progress, called in order and before the result. It must not block.
    #[must_use]
    pub fn on_progress(mut self, call: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(call));
        self
    }

    /// Sets how long the server may stay silent; progress restarts the timeout.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum duration of the call, regardless of progress.
    #[must_use]
    pub const fn maximum(mut self, maximum: Duration) -> Self {
        self.maximum = Some(maximum);
        self
    }

    /// Cancels the call with this token.
    #[must_use]
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Waits for the cancellation of the call.
    pub(super) async fn cancelled(&self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn request_timeout(&self, timeout: Duration) -> RequestTimeout {
        let timeout = self.timeout.unwrap_or(timeout);
        let usual = RequestTimeout::default().maximum;
        RequestTimeout {
            timeout,
            maximum: self.maximum.unwrap_or_else(|| usual.max(timeout)),
            on_progress: OnProgress::Extend,
        }
    }
}
