//! Accepting connections, reading requests within limits, and writing answers.

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

use super::answer::{Answer, Arrival};
use super::guard::Guard;
use super::serving::Shop;
use super::tls::TlsIdentity;
use super::token::Token;
use super::watch::{Order, Watch};
use crate::error::DoorError;
use crate::http::bell::{Part, Porter};
use crate::vigil;

/// What a server endures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in a body.
    pub body: usize,
    /// Headers in a request; more are answered with 431.
    pub headers: usize,
    /// Bytes in the headers of a request, at least 8192; more are answered with 431.
    pub header_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Time for a TLS handshake, for the headers of a request, and for the next request on the same
    /// connection; who takes longer is hung up on.
    pub header_timeout: Duration,
    /// Time for the body of a request; who takes longer is answered with 408.
    pub body_timeout: Duration,
    /// Time that open requests get when the server stops.
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

/// Whoever answers requests that were let in.
pub trait Endpoint: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, arrival: Box<Arrival>) -> impl Future<Output = Answer> + Send;

    /// Lets nothing go on that is still being answered. Every connection is looked at afterwards.
    fn cut_off(&self) {}
}

/// A server that listens.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    token: Option<Token>,
    tls: Option<TlsIdentity>,
    limits: Limits,
}

/// How long those may take to be told who are cut off.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The least that hyper accepts as the size of its buffer.
const LEAST_BUFFER: usize = 8192;

/// How many headers hyper accepts without being told.
const OWN_HEADER_LIMIT: usize = 100;

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
            token: None,
            tls: None,
            limits: Limits::default(),
        })
    }

    /// With other names and origins than loopback's.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// Lets only those in who show this token.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Speaks TLS, and nothing else, as this identity.
    #[must_use]
    pub fn tls(mut self, identity: TlsIdentity) -> Self {
        self.tls = Some(identity);
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

    /// Serves until `stop` resolves, then lets open requests finish for a while, and tells those that do not.
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
            token,
            tls,
            limits,
            address,
        } = self;
        let acceptor = tls.map(|identity| identity.acceptor());
        let (sockets, mut closed) = mpsc::channel(1);
        let shop = Arc::new(Shop {
            endpoint: Arc::clone(&endpoint),
            guard: guard.at(address),
            token,
            limits,
            sockets,
        });
        let seats = Arc::new(Semaphore::new(limits.connections));
        let watch = Arc::new(Watch::default());
        let mut walking = JoinSet::new();
        walking.spawn(Arc::clone(&watch).walk(limits.header_timeout));
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
                    vigil::over(&stream);
                    let (shop, watch) = (Arc::clone(&shop), Arc::clone(&watch));
                    open.spawn(greet(shop, acceptor.clone(), stream, peer, watch, seat));
                }
                (_, Err(error)) if is_passing(&error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                (_, Err(error)) => return Err(error.into()),
            }
        }
        drop(listener);
        watch.close();
        drop(shop);
        let mut all = async || {
            while open.join_next().await.is_some() {}
            // Nobody sends anything: it ends when nobody could.
            while closed.recv().await.is_some() {}
        };
        let finished = tokio::time::timeout(limits.drain, all()).await;
        if finished.is_err() {
            endpoint.cut_off();
            watch.close();
            let _ = tokio::time::timeout(LAST_WORDS, all()).await;
        }
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

/// Serves a client that has a seat, which is free again when this ends.
async fn greet<E: Endpoint>(
    shop: Arc<Shop<E>>,
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    watch: Arc<Watch>,
    _seat: Result<OwnedSemaphorePermit, AcquireError>,
) {
    match acceptor {
        None => connection(shop, stream, peer, watch).await,
        // In a box, so that a connection without TLS does not pay for its room.
        Some(acceptor) => Box::pin(secure(shop, acceptor, stream, peer, watch)).await,
    }
}

/// Where TLS is spoken, first of all its handshake.
async fn secure<E: Endpoint>(
    shop: Arc<Shop<E>>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    watch: Arc<Watch>,
) {
    let limit = shop.limits.header_timeout;
    match tokio::time::timeout(limit, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => connection(shop, stream, peer, watch).await,
        Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS handshake"),
        Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
    }
}

async fn connection<E: Endpoint>(
    shop: Arc<Shop<E>>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    watch: Arc<Watch>,
) {
    let limits = shop.limits;
    let watched = watch.over();
    // Requests come one after the other.
    let request = Part::default();
    let service = service_fn(|arrived| {
        let (shop, busy) = (Arc::clone(&shop), watched.busy());
        let (request, watched) = (&request, &watched);
        async move {
            let mut serving = pin!(shop.serve(arrived, peer, busy));
            let served = poll_fn(|context| {
                request.attend(context, watched.is_closing(), |context| {
                    serving.as_mut().poll(context)
                })
            });
            Ok::<_, Infallible>(served.await)
        }
    });
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits.header_bytes.max(LEAST_BUFFER));
    // Its own limit costs hyper nothing; any other costs a list of that length for each request.
    if limits.headers != OWN_HEADER_LIMIT {
        builder.max_headers(limits.headers);
    }
    // Pinned where it is made: a value that moves is given room twice, for as long as the client stays.
    let mut connection = pin!(
        builder
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let mut is_finishing = false;
    let mut serve = |context: &mut Context<'_>| {
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            return Poll::Ready(Some(ended));
        }
        match watched.order(context) {
            Order::Serve => Poll::Pending,
            Order::Finish if is_finishing => Poll::Pending,
            Order::Finish => {
                is_finishing = true;
                connection.as_mut().graceful_shutdown();
                connection.as_mut().poll(context).map(Some)
            }
            Order::HangUp => Poll::Ready(None),
        }
    };
    let porter = Porter::default();
    let ended = poll_fn(|context| porter.attend(context, &mut serve));
    match ended.await {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, %peer, "connection ended"),
        None => tracing::debug!(%peer, "nothing was asked for too long"),
    }
}
