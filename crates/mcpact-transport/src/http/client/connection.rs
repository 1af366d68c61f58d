//! An open connection: sends one request and reads its response.
//!
//! Parsing is done by `head` and `framing`. A connection has no background job: the caller that awaits the response
//! polls it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, Method};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::connector::ClientStream;
use super::head::Head;
use super::{Address, Forwarding, JSON, LAST_EVENT_ID, RequestSpec};
use crate::error::TransportError;

/// Bytes read at a time.
const READ: usize = 8 * 1024;

/// Minimum free space of a read.
const LEAST: usize = 1024;

/// An open connection.
pub(super) struct OpenConnection {
    io: TokioIo<ClientStream>,
    /// Bytes read but not consumed.
    pub(super) buffer: BytesMut,
}

impl fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("came", &self.buffer.len())
            .finish_non_exhaustive()
    }
}

/// Failed request.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) why: TransportError,
    /// True if nothing of the request was sent.
    pub(super) is_unsent: bool,
}

impl OpenConnection {
    pub(super) fn new(stream: ClientStream) -> Self {
        Self {
            io: TokioIo::new(stream),
            buffer: BytesMut::new(),
        }
    }

    /// Returns whether a request can be sent. The connection was not polled while idle: the server may have closed it,
    /// or sent unexpected data.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.buffer.is_empty() && self.poll_fill(0, &mut context).is_pending()
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: &mut OutgoingRequest,
    ) -> Result<Head, RequestFailure> {
        let mut failed = None;
        let sent = poll_fn(|context| self.poll_send(request, &mut failed, context)).await;
        sent.map_err(|why| RequestFailure {
            why,
            is_unsent: !request.is_begun(),
        })
    }

    /// A server may respond and close before it has read the whole request, so the response is awaited even if writing
    /// fails.
    fn poll_send(
        &mut self,
        request: &mut OutgoingRequest,
        failed: &mut Option<io::Error>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, TransportError>> {
        let mut is_sent = false;
        if failed.is_none() {
            match self.poll_write(request, context) {
                Poll::Ready(Ok(())) => is_sent = true,
                Poll::Ready(Err(error)) => *failed = Some(error),
                Poll::Pending => {}
            }
        }
        loop {
            match (ready!(self.poll_fill(0, context)), &*failed) {
                (Ok(0), None) => return Poll::Ready(Err(ended())),
                (Ok(0) | Err(_), Some(error)) => return Poll::Ready(Err(broken(error))),
                (Err(error), None) => return Poll::Ready(Err(broken(&error))),
                (Ok(_), _) => {}
            }
            match Head::take(&mut self.buffer) {
                Ok(None) => {}
                Ok(Some(mut head)) => {
                    head.keeps_open &= is_sent;
                    return Poll::Ready(Ok(head));
                }
                Err(fault) => {
                    return Poll::Ready(Err(TransportError::Unreadable(fault.to_string())));
                }
            }
        }
    }

    fn poll_write(
        &mut self,
        request: &mut OutgoingRequest,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(next) = request.next() {
            match ready!(Pin::new(&mut self.io).poll_write(context, next))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => request.sent(count),
            }
        }
        // TLS buffers what the socket did not accept.
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Reads into the buffer; 0 at EOF.
    pub(super) fn poll_fill(
        &mut self,
        expected: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < expected.max(LEAST) {
            self.buffer.reserve(expected.max(READ));
        }
        pin!(self.io.read_buf(&mut self.buffer)).poll(context)
    }
}

/// Error of a broken connection.
pub(super) fn broken(error: &io::Error) -> TransportError {
    TransportError::Http(format!("the connection broke: {error}"))
}

fn ended() -> TransportError {
    TransportError::Http(String::from(
        "the connection was closed before the response",
    ))
}

/// Maximum length of a body that is copied behind the head: copying costs less than a second write.
const SMALL: usize = 16 * 1024;

/// Typical length of a head.
const USUAL: usize = 512;

/// Unsent rest of a request.
#[derive(Debug)]
pub(super) struct OutgoingRequest {
    first: Bytes,
    body: Bytes,
    is_begun: bool,
}

impl OutgoingRequest {
    pub(super) fn new(
        spec: &RequestSpec<'_>,
        address: &Address,
        static_headers: &HeaderMap,
        proxy: &Forwarding,
    ) -> Self {
        let is_small = spec.body.len() <= SMALL;
        let room = USUAL + if is_small { spec.body.len() } else { 0 };
        let mut first = Vec::with_capacity(room);
        write_head(&mut first, spec, address, static_headers, proxy);
        let mut body = spec.body.clone();
        if is_small {
            first.extend_from_slice(&body);
            body = Bytes::new();
        }
        let first = Bytes::from(first);
        Self {
            first,
            body,
            is_begun: false,
        }
    }

    /// Bytes to send next; `None` if all are sent.
    pub(super) fn next(&self) -> Option<&[u8]> {
        let next = if self.first.is_empty() {
            &self.body
        } else {
            &self.first
        };
        (!next.is_empty()).then_some(next)
    }

    /// Removes sent bytes.
    pub(super) fn sent(&mut self, count: usize) {
        self.is_begun = true;
        if self.first.is_empty() {
            self.body.advance(count);
        } else {
            self.first.advance(count);
        }
    }

    /// Returns whether anything was sent.
    pub(super) const fn is_begun(&self) -> bool {
        self.is_begun
    }
}

fn write_head(
    out: &mut Vec<u8>,
    spec: &RequestSpec<'_>,
    address: &Address,
    static_headers: &HeaderMap,
    proxy: &Forwarding,
) {
    out.extend_from_slice(spec.method.as_str().as_bytes());
    out.extend_from_slice(address.line.as_bytes());
    line(out, &ACCEPT, spec.accept.as_bytes());
    if spec.method == Method::POST {
        line(out, &CONTENT_TYPE, JSON.as_bytes());
        // Writing to memory cannot fail.
        let _ = write!(out, "{CONTENT_LENGTH}: {}\r\n", spec.body.len());
    }
    if let Some(id) = &spec.last_event_id {
        line(out, &LAST_EVENT_ID, id.as_bytes());
    }
    if let Forwarding::Proxy(Some(auth)) = proxy {
        line(out, &PROXY_AUTHORIZATION, auth.as_bytes());
    }
    if let Some((name, value)) = &spec.request_header {
        line(out, name, value.as_bytes());
    }
    for (name, value) in spec.protocol_headers {
        line(out, name, value.as_bytes());
    }
    for (name, value) in static_headers {
        if !spec.protocol_headers.contains_key(name) {
            line(out, name, value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use url::Url;

    use super::*;

    fn text(spec: &RequestSpec<'_>, static_headers: &HeaderMap, proxy: &Forwarding) -> String {
        let place = Url::parse("http://host:8080/mcp?a=b").unwrap();
        let address = Address::new(&place, proxy).unwrap();
        let mut outgoing = OutgoingRequest::new(spec, &address, static_headers, proxy);
        assert!(!outgoing.is_begun());
        let mut all = Vec::new();
        while let Some(next) = outgoing.next() {
            let count = next.len().min(7);
            all.extend_from_slice(&next[..count]);
            outgoing.sent(count);
        }
        assert!(outgoing.is_begun());
        String::from_utf8(all).unwrap()
    }

    /// T7: a request carries protocol headers, the computed header, and custom headers that do not conflict with them.
    #[test]
    fn request_carries_all_headers() {
        let value = HeaderValue::from_static;
        let protocol_headers =
            HeaderMap::from_iter([(HeaderName::from_static("mcp-method"), value("ping"))]);
        let static_headers = HeaderMap::from_iter([
            (HeaderName::from_static("x-key"), value("k")),
            (HeaderName::from_static("mcp-method"), value("other")),
        ]);
        for length in [2, SMALL, SMALL + 1] {
            let body = "x".repeat(length);
            let spec = RequestSpec {
                request_header: Some((HeaderName::from_static("x-said"), value("s"))),
                body: Bytes::from(body.clone()),
                ..RequestSpec::new(Method::POST, &protocol_headers, "*/*")
            };
            let expected = format!(
                "POST /mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: */*\r\ncontent-type: application/json\r\n\
                content-length: {length}\r\nx-said: s\r\nmcp-method: ping\r\nx-key: k\r\n\r\n{body}"
            );
            assert_eq!(text(&spec, &static_headers, &Forwarding::None), expected);
        }
    }

    /// T7: requests to a proxy name the full URL.
    #[test]
    fn proxied_request_names_the_full_url() {
        let none = HeaderMap::new();
        let spec = RequestSpec {
            last_event_id: Some(HeaderValue::from_static("7")),
            ..RequestSpec::new(Method::GET, &none, "text/event-stream")
        };
        let proxy = Forwarding::Proxy(Some(HeaderValue::from_static("Basic eA==")));
        let expected = "GET http://host:8080/mcp?a=b HTTP/1.1\r\nhost: host:8080\r\naccept: text/event-stream\r\n\
            last-event-id: 7\r\nproxy-authorization: Basic eA==\r\n\r\n";
        assert_eq!(text(&spec, &none, &proxy), expected);
    }
}
