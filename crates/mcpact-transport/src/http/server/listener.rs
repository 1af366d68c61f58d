//! Listener: accepts connections and serves requests within limits.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::guard::Guard;
use super::idle::{Directive, IdleMonitor};
use super::message::{HttpRequest, HttpResponse};
use super::request::ListenerShared;
use super::tls::TlsIdentity;
use super::token::Token;
use crate::error::TransportError;
use crate::http::waker::{CoalescingWaker, SubFuture};

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Headers of a request; more are answered with 431.
    pub headers: usize,
    /// Bytes of the headers of a request, at least 8192; more are answered with 431.
    pub header_bytes: usize,
    /// Concurrent connections.
    pub connections: usize,
    /// Timeout for a TLS handshake, for the headers of a request, and for the next request on a connection; the
    /// connection is closed after it.
    pub header_timeout: Duration,
    /// Timeout for the body of a request, answered with 408.
    pub body_timeout: Duration,
    /// Time for in-flight requests at shutdown.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            headers: 100,
            header_bytes: 64 * 1024,
            connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        }
    }
}

/// Handler of admitted requests.
pub trait Endpoint: Send + Sync + 'static {
    /// Handles one request.
    fn handle(&self, request: Box<HttpRequest>) -> impl Future<Output = HttpResponse> + Send;

    /// Aborts every in-flight request. All connections are polled afterwards.
    fn cut_off(&self) {}
}

/// A listening HTTP server.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    /// Allowed hosts and origins.
    pub guard: Guard,
    /// Required bearer token.
    pub token: Option<Token>,
    /// Identity of a server that serves TLS only.
    pub tls: Option<TlsIdentity>,
    /// Limits.
    pub limits: Limits,
}

/// Time for aborted requests to send their last response.
const ABORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Minimum buffer size of hyper.
const MIN_BUFFER: usize = 8192;

/// Default header limit of hyper.
const HYPER_HEADER_LIMIT: usize = 100;

impl HttpServer {
    /// Binds an address; port 0 picks a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(address: SocketAddr) -> Result<Self, TransportError> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            guard: Guard::default(),
            token: None,
            tls: None,
            limits: Limits::default(),
        })
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves, then drains in-flight requests and aborts the rest.
    ///
    /// # Errors
    /// Accepting connections failed permanently.
    pub async fn serve<E: Endpoint>(
        self,
        endpoint: Arc<E>,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), TransportError> {
        let Self {
            listener,
            guard,
            token,
            tls,
            limits,
            address,
        } = self;
        let acceptor = tls.map(|identity| identity.acceptor());
        let (sockets, mut closed) = mpsc::channel(1);
        let shared = Arc::new(ListenerShared {
            endpoint: Arc::clone(&endpoint),
            guard: guard.at(address),
            token,
            limits,
            sockets,
        });
        let permits = Arc::new(Semaphore::new(limits.connections));
        let monitor = Arc::new(IdleMonitor::default());
        let mut monitoring = JoinSet::new();
        monitoring.spawn(Arc::clone(&monitor).run(limits.header_timeout));
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let permit = Arc::clone(&permits).acquire_owned();
            let accepted = tokio::select! {
                () = &mut stop => break,
                permit = permit => tokio::select! {
                    () = &mut stop => break,
                    accepted = listener.accept() => (permit, accepted),
                },
            };
            while open.try_join_next().is_some() {}
            match accepted {
                (permit, Ok((stream, peer))) => {
                    // Without this, a response in two writes waits 40 ms for the client's ACK.
                    let _ = stream.set_nodelay(true);
                    let (shared, monitor) = (Arc::clone(&shared), Arc::clone(&monitor));
                    open.spawn(accept(
                        shared,
                        acceptor.clone(),
                        stream,
                        peer,
                        monitor,
                        permit,
                    ));
                }
                (_, Err(error)) if is_transient(&error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                (_, Err(error)) => return Err(error.into()),
            }
        }
        drop(listener);
        monitor.drain();
        drop(shared);
        let mut all = async || {
            while open.join_next().await.is_some() {}
            // Nothing is sent; the channel closes with the last WebSocket.
            while closed.recv().await.is_some() {}
        };
        let finished = tokio::time::timeout(limits.drain, all()).await;
        if finished.is_err() {
            endpoint.cut_off();
            monitor.drain();
            let _ = tokio::time::timeout(ABORT_TIMEOUT, all()).await;
        }
        Ok(())
    }
}

/// Returns whether accepting can go on after an error.
fn is_transient(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    matches!(
        error.kind(),
        Kind::ConnectionAborted | Kind::ConnectionReset | Kind::Interrupted
    ) || error
        .raw_os_error()
        .is_some_and(|code| TOO_MANY_FILES.contains(&code))
}

/// Serves an accepted connection, which holds its permit until it ends.
async fn accept<E: Endpoint>(
    shared: Arc<ListenerShared<E>>,
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    monitor: Arc<IdleMonitor>,
    _permit: Result<OwnedSemaphorePermit, AcquireError>,
) {
    match acceptor {
        None => serve_connection(shared, stream, peer, monitor).await,
        // Boxed, so that connections without TLS do not reserve its memory.
        Some(acceptor) => Box::pin(accept_tls(shared, acceptor, stream, peer, monitor)).await,
    }
}

/// Performs the TLS handshake, then serves the connection.
async fn accept_tls<E: Endpoint>(
    shared: Arc<ListenerShared<E>>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    monitor: Arc<IdleMonitor>,
) {
    let limit = shared.limits.header_timeout;
    match tokio::time::timeout(limit, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => serve_connection(shared, stream, peer, monitor).await,
        Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS handshake"),
        Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
    }
}

async fn serve_connection<E: Endpoint>(
    shared: Arc<ListenerShared<E>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    monitor: Arc<IdleMonitor>,
) {
    let limits = shared.limits;
    let monitored = monitor.register();
    // HTTP/1 requests come one at a time.
    let request = SubFuture::default();
    let service = service_fn(|incoming| {
        let (shared, guard) = (Arc::clone(&shared), monitored.begin_request());
        let (request, monitored) = (&request, &monitored);
        async move {
            let mut serving = pin!(shared.serve(incoming, peer, guard));
            let served = poll_fn(|context| {
                request.poll(context, monitored.is_closing(), |context| {
                    serving.as_mut().poll(context)
                })
            });
            Ok::<_, Infallible>(served.await)
        }
    });
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits.header_bytes.max(MIN_BUFFER));
    // hyper's default limit is free; any other allocates a list per request.
    if limits.headers != HYPER_HEADER_LIMIT {
        builder.max_headers(limits.headers);
    }
    // Pinned in place: a moved future would reserve its memory twice for the whole connection.
    let mut connection = pin!(
        builder
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let mut is_draining = false;
    let mut serve = |context: &mut Context<'_>| {
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            return Poll::Ready(Some(ended));
        }
        match monitored.directive(context) {
            Directive::Serve => Poll::Pending,
            Directive::Drain if is_draining => Poll::Pending,
            Directive::Drain => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
                connection.as_mut().poll(context).map(Some)
            }
            Directive::Close => Poll::Ready(None),
        }
    };
    let coalescing = CoalescingWaker::default();
    let ended = poll_fn(|context| coalescing.poll(context, &mut serve));
    match ended.await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, %peer, "connection ended"),
        None => tracing::debug!(%peer, "connection idle for too long"),
    }
}
