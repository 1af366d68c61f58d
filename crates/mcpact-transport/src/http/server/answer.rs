//! What arrives in an HTTP request and what goes back.

use std::net::SocketAddr;
use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;
use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::link::Link;

/// A request that was let in and read whole.
#[derive(Debug)]
pub struct Arrival {
    /// The verb.
    pub verb: Method,
    /// The path, without the query.
    pub path: String,
    /// The query, without its question mark.
    pub query: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Who is on the other end.
    pub peer: Option<SocketAddr>,
}

impl Arrival {
    /// The value of a header, if it stands there once and is text.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}

/// What goes back.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers beside those that the body implies.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: AnswerBody,
}

/// The body of an answer.
pub enum AnswerBody {
    /// Nothing.
    Empty,
    /// One JSON text.
    Json(Bytes),
    /// Plain text for people.
    Text(Bytes),
    /// Server-sent events, already framed. Dropping the stream means that the client went away.
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// A WebSocket, if the request asks for one; this is called with its link once it is open.
    Socket(Box<dyn FnOnce(Link) + Send>),
}

impl Answer {
    /// Nothing but a status.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: AnswerBody::Empty,
        }
    }

    /// One JSON text.
    #[must_use]
    pub fn json(status: u16, text: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: AnswerBody::Json(text.into()),
        }
    }

    /// Plain text.
    #[must_use]
    pub fn text(status: u16, text: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: AnswerBody::Text(text.into()),
        }
    }

    /// A stream of events.
    #[must_use]
    pub fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: AnswerBody::Events(Box::pin(stream)),
        }
    }

    /// A WebSocket, whose link goes to `run`.
    #[must_use]
    pub fn socket(run: impl FnOnce(Link) + Send + 'static) -> Self {
        Self {
            status: 101,
            headers: Vec::new(),
            body: AnswerBody::Socket(Box::new(run)),
        }
    }

    /// With one more header; a value that no header can hold is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
