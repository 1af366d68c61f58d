//! Accepting connections, reading requests within limits, and writing answers.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::answer::{Answer, AnswerBody, Arrival};
use super::body::ReplyBody;
use super::guard::Guard;
use crate::error::DoorError;

/// What a server endures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in a body.
    pub body: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Time for the headers of a request.
    pub header_timeout: Duration,
    /// Time for the body of a request.
    pub body_timeout: Duration,
    /// Time that open requests get when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        }
    }
}

/// Whoever answers requests that were let in.
pub trait Endpoint: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, arrival: Arrival) -> impl Future<Output = Answer> + Send;
}

/// A server that listens.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    limits: Limits,
}

impl HttpServer {
    /// Listens on an address; port 0 picks a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(address: SocketAddr) -> Result<Self, DoorError> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            guard: Guard::default(),
            limits: Limits::default(),
        })
    }

    /// With other names and origins than loopback's.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// With other limits.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves, then lets open requests finish for a while.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn serve<E: Endpoint>(
        self,
        endpoint: Arc<E>,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), DoorError> {
        let Self {
            listener,
            guard,
            limits,
            ..
        } = self;
        let shop = Arc::new(Shop {
            endpoint,
            guard,
            limits,
        });
        let seats = Arc::new(Semaphore::new(limits.connections));
        let (closing, closed) = watch::channel(false);
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let seat = Arc::clone(&seats).acquire_owned();
            let accepted = tokio::select! {
                () = &mut stop => break,
                seat = seat => tokio::select! {
                    () = &mut stop => break,
                    accepted = listener.accept() => (seat, accepted),
                },
            };
            while open.try_join_next().is_some() {}
            match accepted {
                (seat, Ok((stream, peer))) => {
                    // An answer in two writes waits 40 ms for the peer's ACK without this.
                    let _ = stream.set_nodelay(true);
                    let connection = connection(Arc::clone(&shop), stream, peer, closed.clone());
                    open.spawn(async move {
                        connection.await;
                        drop(seat);
                    });
                }
                (_, Err(error)) if is_passing(&error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                (_, Err(error)) => return Err(error.into()),
            }
        }
        drop(listener);
        let _ = closing.send(true);
        let _ = tokio::time::timeout(limits.drain, async {
            while open.join_next().await.is_some() {}
        })
        .await;
        Ok(())
    }
}

/// Errors of one connection or of the moment, after which accepting goes on.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    matches!(
        error.kind(),
        Kind::ConnectionAborted | Kind::ConnectionReset | Kind::Interrupted
    ) || error
        .raw_os_error()
        .is_some_and(|code| TOO_MANY_FILES.contains(&code))
}

struct Shop<E> {
    endpoint: Arc<E>,
    guard: Guard,
    limits: Limits,
}

async fn connection<E: Endpoint>(
    shop: Arc<Shop<E>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    mut closing: watch::Receiver<bool>,
) {
    let timeout = shop.limits.header_timeout;
    let service = service_fn(move |request| {
        let shop = Arc::clone(&shop);
        async move { Ok::<_, Infallible>(shop.serve(request, peer).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_headers(100)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { drop(closing.wait_for(|is_closing| *is_closing).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "connection ended");
    }
}

impl<E: Endpoint> Shop<E> {
    async fn serve(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<ReplyBody> {
        let (head, body) = request.into_parts();
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        if let Err(fault) = self.guard.check(authority, &head.headers) {
            tracing::warn!(%peer, %fault, "request turned away");
            return respond(Answer::text(403, fault.to_string()));
        }
        if is_foreign_content(&head) {
            return respond(Answer::text(415, "the body must be application/json"));
        }
        let body = match self.read(body).await {
            Ok(body) => body,
            Err(status) => return respond(Answer::empty(status)),
        };
        let arrival = Arrival {
            verb: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body,
            peer: Some(peer),
        };
        respond(self.endpoint.handle(arrival).await)
    }

    /// Reads a body within its limits; the common body in one piece is not copied.
    async fn read(&self, body: Incoming) -> Result<Bytes, u16> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let limit = self.limits.body;
        if body.size_hint().lower() > limit as u64 {
            return Err(413);
        }
        match tokio::time::timeout(self.limits.body_timeout, gather(body, limit)).await {
            Ok(result) => result,
            Err(_) => Err(408),
        }
    }
}

async fn gather(mut body: Incoming, limit: usize) -> Result<Bytes, u16> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame
            .map_err(drop)
            .and_then(|f| f.into_data().map_err(drop))
        else {
            return Err(400);
        };
        if first.len() + rest.len() + data.len() > limit {
            return Err(413);
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

/// A body of another kind is refused unread: browsers may send `text/plain` anywhere without asking.
fn is_foreign_content(head: &http::request::Parts) -> bool {
    if head.method != http::Method::POST {
        return false;
    }
    let kind = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim());
    !essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

fn respond(answer: Answer) -> Response<ReplyBody> {
    let (kind, body, is_stream) = match answer.body {
        AnswerBody::Empty => (None, ReplyBody::whole(Bytes::new()), false),
        AnswerBody::Json(bytes) => (Some(JSON), ReplyBody::whole(bytes), false),
        AnswerBody::Text(bytes) => (Some(TEXT), ReplyBody::whole(bytes), false),
        AnswerBody::Events(stream) => (Some(EVENTS), ReplyBody::events(stream), true),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    if is_stream {
        headers.insert(CACHE_CONTROL, NO_CACHE);
        headers.insert(NO_BUFFERING.0, NO_BUFFERING.1);
    }
    if answer.status == 405 {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    for (name, value) in answer.headers {
        headers.insert(name, value);
    }
    response
}
