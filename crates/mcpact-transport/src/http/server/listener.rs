//! Listener: accepts connections and serves requests within limits.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::guard::{Guard, HTTP, HTTPS};
use super::idle::{CloseCause, Directive, IdleMonitor, MonitoredConnection};
use super::message::{HttpRequest, HttpResponse};
use super::peer::{Client, LocalClients, LocalUsers, Peer};
use super::request::ListenerShared;
use super::tls::TlsIdentity;
use super::token::Tokens;
use crate::budget::MemoryBudget;
use crate::error::TransportError;
use crate::http::waker::{CoalescingWaker, SubFuture};
use crate::open_files;

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Headers of a request; more are answered with 431.
    pub headers: usize,
    /// Bytes of the headers of a request, at least 8192; more are answered with 431.
    pub header_bytes: usize,
    /// Concurrent connections. A low limit of open files lowers it: see [`crate::open_files`].
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

#[derive(Debug)]
enum ServerSocket {
    Tcp(TcpListener, SocketAddr),
    #[cfg(unix)]
    Unix(crate::unix::Listener),
}

/// Socket of an accepted connection.
trait AcceptedSocket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Returns false if the client has reset the connection, so that another socket may have its addresses.
    fn is_connected(&self) -> bool;
}

impl AcceptedSocket for TcpStream {
    fn is_connected(&self) -> bool {
        self.peer_addr().is_ok()
    }
}

#[cfg(unix)]
impl AcceptedSocket for UnixStream {
    fn is_connected(&self) -> bool {
        true
    }
}

/// An accepted connection.
enum Accepted {
    Tcp(TcpStream, Client),
    #[cfg(unix)]
    Unix(UnixStream, Client),
}

impl ServerSocket {
    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener, _) => {
                let (stream, peer) = listener.accept().await?;
                // Without this, a response in two writes waits 40 ms for the client's ACK.
                let _ = stream.set_nodelay(true);
                let local = stream.local_addr().ok();
                Ok(Accepted::Tcp(stream, Client::Tcp { peer, local }))
            }
            #[cfg(unix)]
            Self::Unix(listener) => {
                let (stream, uid) = listener.accept_any().await?;
                Ok(Accepted::Unix(stream, Client::Unix { uid }))
            }
        }
    }

    fn clients(&self, users: Option<LocalUsers>) -> LocalClients {
        match self {
            Self::Tcp(_, address) => LocalClients::over_tcp(*address, users),
            #[cfg(unix)]
            Self::Unix(_) => LocalClients::over_unix(users),
        }
    }
}

/// A listening HTTP server.
#[derive(Debug)]
pub struct HttpServer {
    socket: ServerSocket,
    /// Allowed hosts and origins.
    pub guard: Guard,
    /// Accepted bearer tokens; none are required if it is empty.
    pub tokens: Tokens,
    /// Users of this machine that are served; `None` serves everyone who can connect. Over TCP, checked on Linux only.
    pub local_users: Option<LocalUsers>,
    /// Identity of a server that serves TLS only.
    pub tls: Option<TlsIdentity>,
    /// Limits.
    pub limits: Limits,
}

/// Time for aborted requests to send their last response.
const ABORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Pause before the next connection is closed to make room for a new one.
const EVICTION_PAUSE: Duration = Duration::from_millis(50);

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
        Ok(Self::on(ServerSocket::Tcp(listener, address)))
    }

    /// Binds a Unix socket for these users. Its folder must not be writable by every user.
    ///
    /// # Errors
    /// The socket cannot be bound, or its folder is not safe.
    #[cfg(unix)]
    pub async fn bind_unix(
        path: impl AsRef<Path>,
        users: LocalUsers,
    ) -> Result<Self, TransportError> {
        let listener = crate::unix::listen_in_safe_folder(path, users.socket_mode()).await?;
        let mut server = Self::on(ServerSocket::Unix(listener));
        server.local_users = Some(users);
        Ok(server)
    }

    fn on(socket: ServerSocket) -> Self {
        Self {
            socket,
            guard: Guard::default(),
            tokens: Tokens::default(),
            local_users: None,
            tls: None,
            limits: Limits::default(),
        }
    }

    /// Returns the listen address; none of a Unix socket.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            ServerSocket::Tcp(_, address) => Some(*address),
            #[cfg(unix)]
            ServerSocket::Unix(_) => None,
        }
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
            socket,
            guard,
            tokens,
            local_users,
            tls,
            limits,
        } = self;
        let scheme = if tls.is_some() { HTTPS } else { HTTP };
        let acceptor = tls.map(|identity| identity.acceptor());
        let (sockets, mut closed) = mpsc::channel(1);
        let shared = Arc::new(ListenerShared {
            endpoint: Arc::clone(&endpoint),
            guard: match socket {
                ServerSocket::Tcp(_, address) => guard.at(address, scheme),
                #[cfg(unix)]
                ServerSocket::Unix(_) => guard,
            },
            tokens,
            clients: socket.clients(local_users),
            limits,
            sockets,
        });
        let connections = limits.connections.min(open_files::for_connections());
        let permits = Arc::new(Semaphore::new(connections));
        let monitor = Arc::new(IdleMonitor::new(MemoryBudget::process()));
        let mut monitoring = JoinSet::new();
        monitoring.spawn(Arc::clone(&monitor).run(limits.header_timeout));
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                permit = make_room(&permits, &monitor) => tokio::select! {
                    () = &mut stop => break,
                    accepted = socket.accept() => (permit, accepted),
                },
            };
            while open.try_join_next().is_some() {}
            match accepted {
                (permit, Ok(stream)) => {
                    let (shared, monitor) = (Arc::clone(&shared), Arc::clone(&monitor));
                    let acceptor = acceptor.clone();
                    match stream {
                        Accepted::Tcp(stream, client) => {
                            open.spawn(accept(shared, acceptor, stream, client, monitor, permit));
                        }
                        #[cfg(unix)]
                        Accepted::Unix(stream, client) => {
                            open.spawn(accept(shared, acceptor, stream, client, monitor, permit));
                        }
                    }
                }
                (_, Err(error)) if is_transient(&error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    monitor.close_longest_idle();
                    tokio::time::sleep(EVICTION_PAUSE).await;
                }
                (_, Err(error)) => return Err(error.into()),
            }
        }
        drop(socket);
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

/// Returns the permit for a new connection. If there is none, connections without a request are closed, the longest idle
/// one first.
async fn make_room(
    permits: &Arc<Semaphore>,
    monitor: &IdleMonitor,
) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Some(permit);
        }
        monitor.close_longest_idle();
        let permit = Arc::clone(permits).acquire_owned();
        if let Ok(permit) = tokio::time::timeout(EVICTION_PAUSE, permit).await {
            return permit.ok();
        }
    }
}

/// Returns whether accepting can go on after an error.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
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
    stream: impl AcceptedSocket,
    client: Client,
    monitor: Arc<IdleMonitor>,
    permit: Option<OwnedSemaphorePermit>,
) {
    let monitored = monitor.register(permit);
    let mut peer = shared.clients.identify(client).await;
    // The user id belongs to this client only if the connection still exists after the lookup.
    if !stream.is_connected() {
        peer.uid = None;
    }
    match acceptor {
        None => serve_connection(shared, stream, peer, monitored).await,
        // Boxed, so that connections without TLS do not reserve its memory.
        Some(acceptor) => Box::pin(accept_tls(shared, acceptor, stream, peer, monitored)).await,
    }
}

/// Performs the TLS handshake, then serves the connection.
async fn accept_tls<E: Endpoint>(
    shared: Arc<ListenerShared<E>>,
    acceptor: TlsAcceptor,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    monitored: Arc<MonitoredConnection>,
) {
    let limit = shared.limits.header_timeout;
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(limit, acceptor.accept(stream)) => accepted,
        () = monitored.closed() => return tracing::debug!(%peer, "connection closed during the TLS handshake"),
    };
    match accepted {
        Ok(Ok(stream)) => serve_connection(shared, stream, peer, monitored).await,
        Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS handshake"),
        Err(_) => tracing::debug!(%peer, "TLS handshake timed out"),
    }
}

async fn serve_connection<E: Endpoint>(
    shared: Arc<ListenerShared<E>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    monitored: Arc<MonitoredConnection>,
) {
    let limits = shared.limits;
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
            return Poll::Ready(Ok(ended));
        }
        match monitored.directive(context) {
            Directive::Serve => Poll::Pending,
            Directive::Drain if is_draining => Poll::Pending,
            Directive::Drain => {
                is_draining = true;
                connection.as_mut().graceful_shutdown();
                connection.as_mut().poll(context).map(Ok)
            }
            Directive::Close(cause) => Poll::Ready(Err(cause)),
        }
    };
    let coalescing = CoalescingWaker::default();
    let ended = poll_fn(|context| coalescing.poll(context, &mut serve));
    match ended.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, %peer, "connection ended"),
        Err(CloseCause::Idle) => tracing::debug!(%peer, "connection idle for too long"),
        Err(CloseCause::Evicted) => {
            tracing::debug!(%peer, "idle connection closed to make room for another one");
        }
        Err(CloseCause::Stalled) => {
            monitored.record_cut();
            tracing::warn!(%peer, "connection closed: memory is scarce, and the client does not continue its transfer");
        }
    }
}
