//! Backends: the interface through which a gateway takes the place of handlers.
//!
//! A listener (stdio, HTTP, HTTP+SSE, WebSocket) moves bytes, keeps sessions and streams, and lets the engine check
//! every message. Admitted requests go to a [`Backend`]. A [`Server`](super::Server) with its handlers is one.

use std::fmt::Debug;
use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::{Dialect, ReasonCode, WireError};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::tables::meta::TRACE_PARENT;
use mcpact_spec::{ErrorCode, LogLevel, Method};
use mcpact_transport::http::server::{HttpRequest, HttpServer, LocalUsers};
use mcpact_transport::link::Link;
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::{Envelope, Meta, Params};
use mcpact_wire::id::Id;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::builder::Settings;
use super::handler_error::HandlerError;
use super::http::HttpEndpoint;
use super::router::HttpRoute;
use crate::connection::headers;
use crate::error::Error;
use crate::validation::Validation;

pub use super::client_identity::{ClientIdentity, ClientKey, Principal, PrincipalKind};
pub use super::connection::SessionEnd;
pub use super::date::now as date;
pub use super::outbox::{ClientGone, Outbox};
pub use super::raw_params::RawParams;
pub use super::seal::Sealer;
pub use super::session::{OpenQuestion, QuestionOutcome, Session};

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
    super::connection::run_spawned(backend, link, Principal::ANONYMOUS, "lines", session_end).await
}

/// Returns the URL of a server on a Unix socket without path.
pub(super) fn unix_origin(path: &Path) -> String {
    format!("unix:{}:", path.display())
}

/// Returns the URL of a server without path. An unspecified address is replaced by loopback, which local clients can
/// connect to.
pub(super) fn origin(settings: &Settings, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    format!("{scheme}://{address}")
}

/// Binds an address according to the settings.
pub(super) async fn bind(settings: &Settings, address: SocketAddr) -> Result<HttpServer, Error> {
    let host = address.ip().to_canonical();
    if !host.is_loopback() && settings.tokens().is_empty() && !settings.allow_remote {
        return Err(Error::NotLoopback(address));
    }
    let mut server = HttpServer::bind(address).await?;
    if settings.tokens().is_empty() && !settings.allow_remote {
        server.local_users = Some(LocalUsers::and(settings.allow_users.as_slice()));
    }
    apply(settings, &mut server);
    if !host.is_unspecified() {
        server.guard = server.guard.allow_host(address.ip().to_string());
    }
    Ok(server)
}

/// Binds a Unix socket according to the settings.
#[cfg(unix)]
pub(super) async fn bind_unix(settings: &Settings, path: &Path) -> Result<HttpServer, Error> {
    let users = LocalUsers::and(settings.allow_users.as_slice());
    let mut server = HttpServer::bind_unix(path, users).await?;
    apply(settings, &mut server);
    Ok(server)
}

fn apply(settings: &Settings, server: &mut HttpServer) {
    server.guard = settings.guard.clone();
    server.limits = settings.limits;
    server.tokens = settings.tokens();
    server.tls = settings.tls.clone();
}

/// HTTP server with one backend, bound to an address.
#[derive(Debug)]
pub struct HttpListener<B: Backend> {
    server: HttpServer,
    address: SocketAddr,
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
        let address = server.address().unwrap_or(address);
        let endpoint = Arc::new(HttpEndpoint::new(backend));
        Ok(Self {
            server,
            address,
            endpoint,
        })
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the route to the backend.
    #[must_use]
    pub fn route(&self) -> HttpRoute {
        HttpRoute::from_endpoint(&self.endpoint)
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        let settings = self.endpoint.settings();
        format!("{}{}", origin(settings, self.address()), settings.path)
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

/// Error response of a request that is cut off by the shutdown of the server.
pub(super) fn cut_off_error() -> WireError {
    WireError {
        code: ErrorCode::InternalError.code(),
        message: String::from(
            "the server shut down before the request finished; hint: it may have taken effect, check before you retry",
        ),
        data: Some(
            ObjectWriter::new()
                .text("reason", ReasonCode::CutOff.as_str())
                .finish(),
        ),
        // With 503 a client may retry, although the request may have taken effect.
        http_status: 200,
    }
}

/// Validates a request, lets the backend serve it, and validates the result.
pub(super) async fn serve<B: Backend>(
    backend: Arc<B>,
    request: BackendRequest,
    session: Arc<Session<B::State>>,
    outbox: Outbox,
) -> Result<ByteString, WireError> {
    let validation = match &backend.settings().validation {
        Validation::Off => return backend.serve(request, session, outbox).await,
        validation => validation.clone(),
    };
    let dialect = Dialect {
        revision: request.pact.revision(),
        errors: backend.terms().policy.errors,
    };
    let method = request.name.clone();
    let params = Some(&**request.params);
    validation
        .params("client", dialect.revision, &method, params)
        .map_err(|error| {
            HandlerError::invalid_params(format!("`{method}` {error}")).on_wire(dialect)
        })?;
    let raw = backend.serve(request, session, outbox).await?;
    validation
        .result("server", dialect.revision, &method, &raw)
        .map_err(|error| {
            let text = format!("the result of `{method}` {error}");
            HandlerError::rpc(ErrorCode::InternalError.code(), text).on_wire(dialect)
        })?;
    Ok(raw)
}

/// Admitted request.
#[derive(Clone, Debug)]
pub struct BackendRequest {
    /// JSON-RPC id.
    pub id: Id,
    /// Method, if any revision defines it.
    pub method: Option<Method>,
    /// Method name as received.
    pub name: String,
    /// Raw parameters.
    pub params: RawParams,
    /// Raw progress token.
    pub progress_token: Option<String>,
    /// Log level requested by this request.
    pub log_level: Option<LogLevel>,
    /// Negotiated pact.
    pub pact: Arc<Pact>,
    /// Kind of response that the client accepts.
    pub response_mode: ResponseMode,
    /// Trace context of its `_meta`.
    pub trace: Option<Box<TraceContext>>,
}

impl BackendRequest {
    /// Copies a trace context of the headers into `_meta`, unless `_meta` has one.
    pub(super) fn traced(mut self, http_request: &HttpRequest) -> Self {
        let Some(parent) = http_request.header(headers::TRACE_PARENT) else {
            return self;
        };
        let params: &str = &self.params;
        // The message takes precedence over the headers.
        if let Some(trace) = TraceContext::new(parent, http_request.header(headers::TRACE_STATE))
            && !names_a_trace(params)
            && let Ok(params) = trace.apply(params)
        {
            self.params = params.into();
            self.trace = Some(Box::new(trace));
        }
        self
    }
}

pub(super) fn trace_of(meta: &Meta<'_>) -> Option<Box<TraceContext>> {
    meta.trace_parent?;
    TraceContext::of_meta(meta.raw?).map(Box::new)
}

fn names_a_trace(params: &str) -> bool {
    let params = Object::parse(params).unwrap_or_default();
    let meta = Object::parse(params.get("_meta").unwrap_or("{}")).unwrap_or_default();
    meta.get(TRACE_PARENT).is_some()
}

/// Kind of response that a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseMode {
    /// Messages and questions, then the response.
    #[default]
    Stream,
    /// Only the response: its `Accept` header excludes streams.
    Single,
}
