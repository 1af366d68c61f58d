//! Requests and responses of the HTTP server.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::idle::SocketUsage;
use crate::budget::ConnectionAccount;
use crate::link::Link;

/// An admitted request with its whole body.
#[derive(Debug)]
pub struct HttpRequest {
    /// HTTP method.
    pub verb: Method,
    /// Path without the query.
    pub path: String,
    /// Query without the question mark.
    pub query: Option<String>,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
    /// Address of the client; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// User id of a client on this machine, if the system reports it.
    pub peer_uid: Option<u32>,
    /// Resources of the connection.
    pub account: ConnectionAccount,
    /// Name of the bearer token of the request, if the server requires tokens.
    pub token_name: Option<Arc<str>>,
}

impl HttpRequest {
    /// Returns the value of a header that occurs once and is text.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        let mut all = self.headers.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}

/// A response.
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Headers besides those that the body implies.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body.
    pub body: HttpResponseBody,
}

/// Body of a response.
pub enum HttpResponseBody {
    /// No body.
    Empty,
    /// A JSON document.
    Json(Bytes),
    /// Plain text.
    Text(Bytes),
    /// Server-sent events, already framed. The stream is dropped when the client disconnects.
    Events(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// A WebSocket upgrade; the function receives the link once the socket is open, and reports its usage.
    Socket(Box<dyn FnOnce(Link, SocketUsage) + Send>),
}

impl HttpResponse {
    /// Creates a response without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self::new(status, HttpResponseBody::Empty)
    }

    const fn new(status: u16, body: HttpResponseBody) -> Self {
        let headers = Vec::new();
        Self {
            status,
            headers,
            body,
        }
    }

    /// Creates a JSON response.
    #[must_use]
    pub fn json(status: u16, text: impl Into<Bytes>) -> Self {
        Self::new(status, HttpResponseBody::Json(text.into()))
    }

    /// Creates a plain-text response.
    #[must_use]
    pub fn text(status: u16, text: impl Into<Bytes>) -> Self {
        Self::new(status, HttpResponseBody::Text(text.into()))
    }

    /// Creates an event stream.
    #[must_use]
    pub fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::new(200, HttpResponseBody::Events(Box::pin(stream)))
    }

    /// Creates a WebSocket upgrade; the link goes to `run`.
    #[must_use]
    pub fn socket(run: impl FnOnce(Link, SocketUsage) + Send + 'static) -> Self {
        Self::new(101, HttpResponseBody::Socket(Box::new(run)))
    }

    /// Adds a header; an invalid value is left out.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}

impl std::fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
