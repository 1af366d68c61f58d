//! A stream of messages, and what is needed to take it up again.

use std::time::Duration;

use bytes::Bytes;
use mcpact_transport::error::DoorError;
use mcpact_transport::http::client::EventStream;

/// How long to wait before a broken stream is taken up again, if the server does not say.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// The longest such wait that is honoured.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A message that was longer than this many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong(pub(super) usize);

/// What is needed to take up a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    pub(super) last_id: Option<String>,
    retry: Option<Duration>,
    pub(super) attempt: u32,
}

/// A stream that is open.
pub(super) struct Reading {
    pub(super) events: Box<EventStream>,
    pub(super) resume: Resume,
}

impl Resume {
    /// `retry` is respected; failures in a row wait longer.
    pub(super) fn pause(&self) -> Duration {
        let first = self.retry.unwrap_or(PAUSE);
        let factor = 1 << self.attempt.saturating_sub(1).min(5);
        (first * factor).min(LONGEST_PAUSE)
    }
}

impl Reading {
    /// The next message; none when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        while let Some(event) = self.events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(DoorError::TooLarge { limit }) => return Some(Err(TooLong(limit))),
                Err(error) => {
                    tracing::debug!(%error, "invalid SSE event dropped");
                    continue;
                }
            };
            if let Some(id) = event.id {
                self.resume.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                self.resume.retry = Some(Duration::from_millis(retry).min(LONGEST_PAUSE));
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
