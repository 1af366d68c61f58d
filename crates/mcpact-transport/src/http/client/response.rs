//! Responses received by the client.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use mcpact_wire::frame::sse::{Event, EventError, EventReader};

use super::body_reader::BodyReader;
use super::{EVENTS, HttpSettings, JSON};
use crate::error::TransportError;

/// Operation named in timeouts.
const READING: &str = "reading an HTTP body";

/// Maximum bytes kept of a body of unknown type.
const EXCERPT: usize = 1024;

/// Response to one request.
#[derive(Debug)]
pub struct ClientResponse {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: ClientResponseBody,
}

/// Body of a response.
#[derive(Debug)]
pub enum ClientResponseBody {
    /// No body.
    Empty,
    /// JSON document.
    Json(Bytes),
    /// Event stream.
    Events(Box<EventStream>),
    /// Beginning of a body of another type.
    Other(String),
}

impl ClientResponse {
    /// Returns a header, if it is present and valid text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Response with an unread body.
#[derive(Debug)]
pub(super) struct UnreadResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: BodyReader,
}

pub(super) async fn read(
    response: UnreadResponse,
    settings: &HttpSettings,
) -> Result<ClientResponse, TransportError> {
    let UnreadResponse {
        status,
        headers,
        body,
    } = response;
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split_once(';').map_or(value, |(kind, _)| kind));
    let is = |kind: &str, wanted| kind.trim_ascii().eq_ignore_ascii_case(wanted);
    let body = match kind {
        Some(kind) if is(kind, EVENTS) => {
            ClientResponseBody::Events(Box::new(EventStream::new(body, settings)))
        }
        Some(kind) if is(kind, JSON) => match whole(body, settings).await? {
            bytes if bytes.is_empty() => ClientResponseBody::Empty,
            bytes => ClientResponseBody::Json(bytes),
        },
        Some(_) | None => match excerpt(body, settings).await {
            text if text.is_empty() => ClientResponseBody::Empty,
            text => ClientResponseBody::Other(text),
        },
    };
    let status = status.as_u16();
    Ok(ClientResponse {
        status,
        headers,
        body,
    })
}

/// Reads a body within its limits; a body in one piece is not copied.
async fn whole(mut body: BodyReader, settings: &HttpSettings) -> Result<Bytes, TransportError> {
    let (idle, limit) = (settings.idle_timeout, settings.body_limit);
    if body.expected() > limit {
        return Err(TransportError::TooLarge { limit });
    }
    body.gather(idle, READING).await?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = body.next(idle, READING).await.transpose()? {
        if first.len().max(all.len()) + data.len() > limit {
            return Err(TransportError::TooLarge { limit });
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Beginning of a body, for the log; errors are ignored.
async fn excerpt(mut body: BodyReader, settings: &HttpSettings) -> String {
    let mut all = BytesMut::new();
    while all.len() < EXCERPT
        && let Some(Ok(data)) = body.next(settings.idle_timeout, READING).await
    {
        all.extend_from_slice(&data);
    }
    all.truncate(EXCERPT);
    String::from_utf8_lossy(&all).into_owned()
}

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
