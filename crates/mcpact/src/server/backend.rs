//! Backends: the interface through which a gateway takes the place of handlers.
//!
//! A listener (stdio, HTTP, HTTP+SSE, WebSocket) moves bytes, keeps sessions and streams, and lets the engine check
//! every message. Admitted requests go to a [`Backend`]. A [`Server`](super::Server) with its handlers is one.

use std::fmt::Debug;
use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Method;
use mcpact_transport::http::server::HttpServer;
use mcpact_transport::link::Link;
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::{Envelope, Params};

use super::http::HttpEndpoint;
use super::principal::anonymous;
use super::router::HttpRoute;
use super::settings::Settings;
use crate::error::Error;

pub use super::backend_request::{BackendRequest, ResponseMode};
pub use super::client_identity::{ClientIdentity, ClientKey};
pub use super::date::now as date;
pub use super::outbox::{ClientGone, Outbox};
pub use super::raw_params::RawParams;
pub use super::seal::Sealer;
pub use super::session::{OpenQuestion, QuestionOutcome, Session};
pub use super::session_end::SessionEnd;

/// Serves the requests that a listener has admitted.
pub trait Backend: Debug + Send + Sync + 'static {
    /// State that the backend keeps for each client.
    type State: Clone + Debug + Send + Sync + 'static;

    /// Returns the settings of the listeners.
    fn settings(&self) -> &Settings;

    /// Returns the terms for clients that have not sent anything yet.
    fn terms(&self) -> &Arc<ServerTerms>;

    /// Returns the terms for a client that opens a session or sends a self-contained request.
    fn accept_client(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> impl Future<Output = Result<ClientSetup<Self::State>, WireError>> + Send;

    /// Serves one request. Dropping the future cancels it.
    fn serve(
        self: Arc<Self>,
        request: BackendRequest,
        session: Arc<Session<Self::State>>,
        outbox: Outbox,
    ) -> impl Future<Output = Result<ByteString, WireError>> + Send;

    /// A legacy session has begun; `outbox` takes messages that belong to no request.
    fn opened(&self, session: &Arc<Session<Self::State>>, outbox: Outbox);

    /// The client sent a notification.
    fn observe(&self, session: &Arc<Session<Self::State>>, method: Method, params: Option<&str>);

    /// A client with its own connection has closed its sending side; it may still wait for responses.
    fn input_closed(&self, identity: &ClientIdentity);

    /// A client with its own connection has disconnected.
    fn disconnected(&self, identity: &ClientIdentity);

    /// Returns the parameters of a tool that are mirrored into headers.
    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>>;

    /// Ends streams that have no end of their own.
    fn stop(&self);
}

/// First message of a client.
#[derive(Clone, Copy, Debug)]
pub enum ClientHello<'a> {
    /// `initialize`.
    Handshake(&'a Params<'a>),
    /// A self-contained modern request.
    Request(&'a Params<'a>),
}

impl<'a> ClientHello<'a> {
    /// Returns the hello in a message, if it is one.
    pub(super) fn of(frame: &'a Frame<'a>) -> Option<Self> {
        let Frame::Single(Envelope::Request(request)) = frame else {
            return None;
        };
        if request.params.meta.protocol_version.is_some() {
            Some(Self::Request(&request.params))
        } else if request.method == Method::Initialize.as_str() {
            Some(Self::Handshake(&request.params))
        } else {
            None
        }
    }
}

/// Terms and backend state for a client.
#[derive(Clone, Debug)]
pub struct ClientSetup<S = ()> {
    /// Terms for the engine.
    pub terms: Arc<ServerTerms>,
    /// State of the backend, available as [`Session::state`].
    pub state: Option<S>,
}

impl<S> ClientSetup<S> {
    /// Creates a setup with these terms and without state.
    pub(super) fn with_terms(terms: &Arc<ServerTerms>) -> Self {
        Self {
            terms: Arc::clone(terms),
            state: None,
        }
    }
}

/// Serves one client on a stdio-like transport until it disconnects or `session_end` fires.
///
/// # Errors
/// The transport fails.
pub async fn serve_link<B: Backend>(
    backend: Arc<B>,
    link: Link,
    session_end: SessionEnd,
) -> Result<(), Error> {
    super::connection::run_spawned(backend, link, anonymous(), "lines", session_end).await
}

/// Replaces an unspecified address by loopback, which local clients can connect to.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Binds an address according to the settings.
pub(super) async fn bind(settings: &Settings, address: SocketAddr) -> Result<HttpServer, Error> {
    let host = address.ip().to_canonical();
    if !host.is_loopback() && settings.token.is_none() && !settings.allow_remote {
        return Err(Error::NotLoopback(address));
    }
    let mut guard = settings.guard.clone();
    if !host.is_unspecified() {
        guard = guard.allow_host(address.ip().to_string());
    }
    let mut server = HttpServer::bind(address)
        .await?
        .guard(guard)
        .limits(settings.limits);
    if let Some(token) = &settings.token {
        server = server.token(token.clone());
    }
    if let Some(identity) = &settings.tls {
        server = server.tls(identity.clone());
    }
    Ok(server)
}

/// HTTP server with one backend, bound to an address.
#[derive(Debug)]
pub struct HttpListener<B: Backend> {
    server: HttpServer,
    endpoint: Arc<HttpEndpoint<B>>,
}

impl<B: Backend> HttpListener<B> {
    /// Binds this address. Accepted host names are the address and those of the guard.
    ///
    /// # Errors
    /// The address is reachable from other machines without a token and the settings do not allow that, or it cannot
    /// be bound.
    pub async fn bind(backend: Arc<B>, address: SocketAddr) -> Result<Self, Error> {
        let server = bind(backend.settings(), address).await?;
        let endpoint = Arc::new(HttpEndpoint::new(backend));
        Ok(Self { server, endpoint })
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the route to the backend.
    #[must_use]
    pub fn route(&self) -> HttpRoute {
        HttpRoute::from_endpoint(&self.endpoint)
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = self.endpoint.scheme();
        let address = reachable(self.address());
        format!("{scheme}://{address}{}", self.endpoint.path())
    }

    /// Serves until `stop` resolves.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        self.endpoint.spawn_idle_reaper();
        let endpoint = Arc::clone(&self.endpoint);
        let stop = async move {
            stop.await;
            endpoint.stop();
        };
        Ok(self.server.serve(self.endpoint, stop).await?)
    }
}
