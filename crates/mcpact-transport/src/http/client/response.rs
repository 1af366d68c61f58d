//! Responses received by the client.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, StatusCode};
use mcpact_wire::frame::sse::{Event, EventError, EventReader};

use super::connection::broken;
use super::framing::{BodyPart, Framing};
use super::pool::PooledConnection;
use super::{EVENTS, HttpSettings, JSON};
use crate::budget::{Charge, FREE, MemoryBudget, RESULT_COPIES, Waiting};
use crate::error::TransportError;
use crate::tap::{Tap, Traffic};
use crate::within::within;

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

impl UnreadResponse {
    /// Returns the target of a redirect.
    pub(super) fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
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

/// Charge of a response that is read.
#[derive(Debug)]
struct ReadCharge {
    charge: Charge,
    waiting: Waiting,
}

impl ReadCharge {
    fn new() -> Self {
        Self {
            charge: MemoryBudget::process().empty_charge(),
            waiting: Waiting::default(),
        }
    }

    /// Charges a response of this length. The server is not read until there is memory for it. Cancel safe.
    async fn grow(&mut self, length: usize) -> Result<(), TransportError> {
        if length > FREE
            && let Err(exhausted) = self
                .waiting
                .grow(&mut self.charge, RESULT_COPIES * length)
                .await
        {
            MemoryBudget::process().record_refused();
            return Err(exhausted.into());
        }
        Ok(())
    }
}

/// Reads a body within its limits; a body in one piece is not copied.
async fn whole(mut body: BodyReader, settings: &HttpSettings) -> Result<Bytes, TransportError> {
    let (idle, limit) = (settings.idle_timeout, settings.body_limit);
    if body.expected() > limit {
        return Err(TransportError::TooLarge { limit });
    }
    let mut charge = ReadCharge::new();
    charge.grow(body.expected()).await?;
    body.gather(idle, READING).await?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = body.next(idle, READING).await.transpose()? {
        let length = first.len().max(all.len()) + data.len();
        if length > limit {
            return Err(TransportError::TooLarge { limit });
        }
        charge.grow(length).await?;
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    let whole = if all.is_empty() { first } else { all.freeze() };
    Ok(charge.charge.hold(whole))
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
    charge: ReadCharge,
    tap: Option<Arc<dyn Tap>>,
}

impl EventStream {
    pub(super) fn new(body: BodyReader, settings: &HttpSettings) -> Self {
        Self {
            body,
            reader: EventReader::new(settings.event_limit),
            idle: settings.stream_idle_timeout,
            is_open: true,
            charge: ReadCharge::new(),
            tap: settings.tap.clone(),
        }
    }

    /// Returns the data of the event that was returned last. A long one stays charged to the memory budget until the data and
    /// its parts are dropped.
    pub fn charged(&mut self, data: String) -> Bytes {
        let data = Bytes::from(data);
        match data.len() {
            0..=FREE => data,
            length => {
                let mut charge = self.charge.charge.split();
                charge.cover(RESULT_COPIES * length);
                charge.hold(data)
            }
        }
    }

    /// Returns the next event; `None` at the end of the stream. Cancel safe.
    ///
    /// # Errors
    /// An event was too long or not UTF-8, and reading may continue; or the connection failed or there was no memory for
    /// an event, and the stream has ended.
    pub async fn next(&mut self) -> Option<Result<Event, TransportError>> {
        loop {
            match self.reader.next_event() {
                // The charge of a large event ends with the next call, unless the owner takes it.
                Some(Ok(event)) => {
                    if let Some(tap) = &self.tap {
                        tap.record(Traffic::Event(&event.data));
                    }
                    return Some(Ok(event));
                }
                Some(Err(EventError::TooLong { limit })) => {
                    return Some(Err(TransportError::TooLarge { limit }));
                }
                Some(Err(error @ EventError::InvalidUtf8)) => {
                    return Some(Err(TransportError::Http(error.to_string())));
                }
                None if !self.is_open => return None,
                None => {}
            }
            let unfinished = self.reader.unfinished();
            if unfinished <= FREE {
                drop(self.charge.charge.split());
            } else if let Err(error) = self.charge.grow(unfinished).await {
                self.is_open = false;
                return Some(Err(error));
            }
            match self.body.next(self.idle, "waiting for an event").await {
                Some(Ok(data)) => {
                    self.reader.push(&data);
                }
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

/// Unread rest of a response body.
#[derive(Debug)]
pub(super) struct BodyReader {
    framing: Framing,
    connection: Option<PooledConnection>,
    /// True if the connection can be reused.
    keeps_open: bool,
}

impl BodyReader {
    pub(super) const fn new(
        framing: Framing,
        keeps_open: bool,
        connection: PooledConnection,
    ) -> Self {
        Self {
            framing,
            connection: Some(connection),
            keeps_open,
        }
    }

    /// Minimum number of remaining bytes.
    pub(super) fn expected(&self) -> usize {
        usize::try_from(self.framing.expected()).unwrap_or(usize::MAX)
    }

    /// Returns the next chunk, with an idle timeout; `None` at the end. Cancel safe.
    pub(super) async fn next(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Option<Result<Bytes, TransportError>> {
        let next = within(idle, poll_fn(|context| self.poll_next(context))).await;
        next.unwrap_or(Some(Err(TransportError::Timeout(what))))
    }

    /// Waits for all bytes of a body of known length, so that it is returned in one piece.
    pub(super) async fn gather(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Result<(), TransportError> {
        while let Some(connection) = &mut self.connection {
            let left = self
                .framing
                .expected()
                .saturating_sub(connection.io.buffer.len() as u64);
            let Some(left) = usize::try_from(left).ok().filter(|left| *left > 0) else {
                break;
            };
            let filled = within(
                idle,
                poll_fn(|context| connection.io.poll_fill(left, context)),
            )
            .await;
            match filled {
                // The next read reports the end.
                Some(Ok(0)) => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&error)),
                None => return Err(TransportError::Timeout(what)),
            }
        }
        Ok(())
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(None);
            };
            let fault = match self.framing.take(&mut connection.io.buffer) {
                Ok(BodyPart::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(BodyPart::End) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Ok(BodyPart::Incomplete) => match ready!(connection.io.poll_fill(0, context)) {
                    Ok(0) => match self.framing.closed() {
                        Ok(()) => {
                            self.connection = None;
                            return Poll::Ready(None);
                        }
                        Err(fault) => TransportError::Unreadable(fault.to_string()),
                    },
                    Ok(_) => continue,
                    Err(error) => broken(&error),
                },
                Err(fault) => TransportError::Unreadable(fault.to_string()),
            };
            self.connection = None;
            return Poll::Ready(Some(Err(fault)));
        }
    }

    fn finish(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| self.keeps_open) {
            connection.release();
        }
    }
}

impl Drop for BodyReader {
    /// Returns the connection to the pool if the body is complete.
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection
            && matches!(
                self.framing.take(&mut connection.io.buffer),
                Ok(BodyPart::End)
            )
        {
            self.finish();
        }
    }
}
