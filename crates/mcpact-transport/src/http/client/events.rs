//! A stream of events as it arrives.

use std::time::Duration;

use mcpact_wire::frame::sse::{Event, EventError, EventReader};

use super::HttpSettings;
use super::source::Source;
use crate::error::DoorError;

/// The events of one answer.
#[derive(Debug)]
pub struct EventStream {
    body: Source,
    reader: EventReader,
    idle: Duration,
    is_open: bool,
}

impl EventStream {
    pub(super) const fn new(body: Source, settings: &HttpSettings) -> Self {
        Self {
            body,
            reader: EventReader::new(settings.event_limit),
            idle: settings.stream_idle_timeout,
            is_open: true,
        }
    }

    /// The next event; none when the server has ended the stream. Safe to drop at any time.
    ///
    /// # Errors
    /// An event was too long or not text, after which reading may go on; or the connection broke,
    /// after which the stream has ended.
    pub async fn next(&mut self) -> Option<Result<Event, DoorError>> {
        loop {
            match self.reader.next_event() {
                Some(Ok(event)) => return Some(Ok(event)),
                Some(Err(EventError::TooLong { limit })) => {
                    return Some(Err(DoorError::TooLarge { limit }));
                }
                Some(Err(error @ EventError::InvalidUtf8)) => {
                    return Some(Err(DoorError::Http(error.to_string())));
                }
                None if !self.is_open => return None,
                None => {}
            }
            match self.body.next(self.idle, "waiting for an event").await {
                Some(Ok(data)) => self.reader.push(&data),
                Some(Err(error)) => {
                    self.is_open = false;
                    return Some(Err(error));
                }
                None => {
                    self.is_open = false;
                    self.reader.finish();
                }
            }
        }
    }

    /// Whether more may come.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// What a resumption of this stream sends as `Last-Event-ID`.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.reader.last_event_id()
    }
}
