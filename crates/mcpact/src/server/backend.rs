//! What stands behind the fronts: the seam at which a gateway puts itself in the place of handlers.
//!
//! A front (lines, HTTP, HTTP+SSE) moves bytes, keeps sessions and streams, and lets the engine judge
//! every message. What was admitted goes to a [`Backend`]. A [`Server`](super::Server) with its
//! handlers is one.

use std::any::Any;
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

use super::builder::Settings;
use super::http::HttpEndpoint;
use super::principal::nobody;
use super::site::Door;
use crate::error::Error;

pub use super::date::now as date;
pub use super::ending::Ending;
pub use super::job::{Job, Reach};
pub use super::outbox::{Gone, Outbox};
pub use super::raw_params::RawParams;
pub use super::seal::Sealer;
pub use super::session::{Heard, OpenQuestion, Session};
pub use super::visitor::{Mark, Visitor};

/// Whatever serves the requests that a front has admitted.
pub trait Backend: Debug + Send + Sync + 'static {
    /// How the fronts are set.
    fn settings(&self) -> &Settings;

    /// The terms for whoever has not said anything yet.
    fn terms(&self) -> &Arc<ServerTerms>;

    /// The terms for a client that opens a conversation or sends a request that stands alone.
    fn welcome(
        &self,
        opening: Opening<'_>,
        visitor: &Visitor,
    ) -> impl Future<Output = Result<Welcome, WireError>> + Send;

    /// Serves one request. The future may be dropped at any time, which is how it is cancelled.
    fn serve(
        self: Arc<Self>,
        job: Job,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> impl Future<Output = Result<ByteString, WireError>> + Send;

    /// A legacy conversation has begun; `outbox` is for what belongs to no request.
    fn opened(&self, session: &Arc<Session>, outbox: Outbox);

    /// The client tells something.
    fn observe(&self, session: &Arc<Session>, method: Method, params: Option<&str>);

    /// A client that has a connection for itself says nothing any more; what it waits for it may still hear.
    fn fell_silent(&self, visitor: &Visitor);

    /// A client that had a connection for itself has gone.
    fn left(&self, visitor: &Visitor);

    /// The parameters of a tool that have headers of their own.
    fn mirrored(&self, tool: &str) -> Option<Arc<[Annotation]>>;

    /// Ends what would not end by itself.
    fn stop(&self);
}

/// How a client begins.
#[derive(Clone, Copy, Debug)]
pub enum Opening<'a> {
    /// With `initialize`.
    Handshake(&'a Params<'a>),
    /// With a request that says everything itself.
    Request(&'a Params<'a>),
}

impl<'a> Opening<'a> {
    /// What a message opens, if it opens anything.
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

/// On which terms a client is served.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// What the engine needs to know.
    pub terms: Arc<ServerTerms>,
    /// What the backend wants to find again in [`Session::state`].
    pub state: Option<Arc<dyn Any + Send + Sync>>,
}

impl Welcome {
    /// These terms and nothing to remember.
    pub(super) fn on(terms: &Arc<ServerTerms>) -> Self {
        Self {
            terms: Arc::clone(terms),
            state: None,
        }
    }
}

/// Serves one client on a carrier of lines, until it goes away or this ends.
///
/// # Errors
/// The carrier fails.
pub async fn serve_link<B: Backend>(
    backend: Arc<B>,
    link: Link,
    ending: Ending,
) -> Result<(), Error> {
    super::lines::run_apart(backend, link, nobody(), "lines", ending).await
}

/// Where clients of this machine reach what listens there: every address is none that they could name.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Listens at an address as the settings say.
pub(super) async fn bound(settings: &Settings, address: SocketAddr) -> Result<HttpServer, Error> {
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

/// A backend that is bound to an address.
#[derive(Debug)]
pub struct HttpFront<B> {
    server: HttpServer,
    endpoint: Arc<HttpEndpoint<B>>,
}

impl<B: Backend> HttpFront<B> {
    /// Listens at this address, and answers to it and to the names that the guard lists.
    ///
    /// # Errors
    /// Others could reach the address without a token and the settings do not allow that, or it cannot
    /// be bound.
    pub async fn bind(backend: Arc<B>, address: SocketAddr) -> Result<Self, Error> {
        let server = bound(backend.settings(), address).await?;
        let endpoint = Arc::new(HttpEndpoint::new(backend));
        Ok(Self { server, endpoint })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The way to the backend that clients at this address take.
    #[must_use]
    pub fn door(&self) -> Door {
        Door::through(&self.endpoint)
    }

    /// The address that clients use.
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
        self.endpoint.watch();
        let endpoint = Arc::clone(&self.endpoint);
        let stop = async move {
            stop.await;
            endpoint.stop();
        };
        Ok(self.server.serve(self.endpoint, stop).await?)
    }
}
