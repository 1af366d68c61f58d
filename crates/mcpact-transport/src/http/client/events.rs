//! Event stream of a response.

use std::time::Duration;

use mcpact_wire::frame::sse::{Event, EventError, EventReader};

use super::HttpSettings;
use super::body_reader::BodyReader;
use crate::error::TransportError;

/// Events of one response.
#[derive(Debug)]
pub struct EventStream {
    body: BodyReader,
    reader: EventReader,
    idle: Duration,
    is_open: bool,
}

impl EventStream {
    pub(super) const fn new(body: BodyReader, settings: &HttpSettings) -> Self {
        Self {
            body,
            reader: EventReader::new(settings.event_limit),
            idle: settings.stream_idle_timeout,
            is_open: true,
        }
    }

    /// Returns the next event; `None` at the end of the stream. Cancel safe.
    ///
    /// # Errors
    /// An event was too long or not UTF-8, and reading may continue; or the connection failed, and the stream has
    /// ended.
    pub async fn next(&mut self) -> Option<Result<Event, TransportError>> {
        loop {
            match self.reader.next_event() {
                Some(Ok(event)) => return Some(Ok(event)),
                Some(Err(EventError::TooLong { limit })) => {
                    return Some(Err(TransportError::TooLarge { limit }));
                }
                Some(Err(error @ EventError::InvalidUtf8)) => {
                    return Some(Err(TransportError::Http(error.to_string())));
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
}
