//! Reader of a resumable SSE stream.

use std::time::Duration;

use bytes::Bytes;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::EventStream;

/// Pause before a broken stream is resumed, unless the server sends `retry`.
pub(super) const DEFAULT_PAUSE: Duration = Duration::from_millis(500);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A message that exceeds this number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong(pub(super) usize);

/// State for resuming a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    pub(super) last_id: Option<String>,
    retry: Option<Duration>,
    pub(super) attempt: u32,
}

/// An open stream.
pub(super) struct EventReader {
    pub(super) events: Box<EventStream>,
    pub(super) resume: Resume,
}

impl Resume {
    /// Returns the pause before the next attempt: `retry`, doubled with every failure in a row.
    pub(super) fn pause(&self) -> Duration {
        let first = self.retry.unwrap_or(DEFAULT_PAUSE);
        let factor = 1 << self.attempt.saturating_sub(1).min(5);
        (first * factor).min(MAX_PAUSE)
    }
}

impl EventReader {
    /// Returns the next message, or none at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        while let Some(event) = self.events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(TransportError::TooLarge { limit }) => return Some(Err(TooLong(limit))),
                Err(error) => {
                    tracing::debug!(%error, "invalid SSE event dropped");
                    continue;
                }
            };
            if let Some(id) = event.id {
                self.resume.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                self.resume.retry = Some(Duration::from_millis(retry).min(MAX_PAUSE));
            }
            let is_message = matches!(event.name.as_deref(), None | Some("message"));
            if is_message && !event.data.is_empty() {
                self.resume.attempt = 0;
                return Some(Ok(Bytes::from(event.data)));
            }
        }
        None
    }
}
