//! Routing of HTTP requests to several backends at one address.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcpact_transport::address::ListenAddress;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};

#[cfg(unix)]
use super::backend::bind_unix;
use super::backend::{Backend, bind, origin, unix_origin};
use super::builder::Settings;
use super::http::HttpEndpoint;
use crate::error::Error;

/// Route to one backend, with its sessions and streams.
#[derive(Clone, Debug)]
pub struct HttpRoute(Arc<dyn ErasedEndpoint>);

pub(super) trait ErasedEndpoint: Debug + Send + Sync {
    fn respond(self: Arc<Self>, request: Box<HttpRequest>) -> BoxFuture<'static, HttpResponse>;

    fn session_count(&self) -> usize;

    fn has_session(&self, id: &str) -> bool;

    fn drain(&self);

    fn close_streams(&self);

    fn close(&self);
}

impl HttpRoute {
    /// Creates a route to this backend. Requires a tokio runtime, which ends idle sessions.
    #[must_use]
    pub fn to<B: Backend>(backend: Arc<B>) -> Self {
        let endpoint = Arc::new(HttpEndpoint::new(backend));
        endpoint.spawn_idle_reaper();
        Self(endpoint)
    }

    pub(super) fn from_endpoint<B: Backend>(endpoint: &Arc<HttpEndpoint<B>>) -> Self {
        let endpoint: Arc<HttpEndpoint<B>> = Arc::clone(endpoint);
        Self(endpoint)
    }

    /// Returns the number of sessions and long-lived connections.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.0.session_count()
    }

    /// Returns true if a session has this id.
    #[must_use]
    pub fn has_session(&self, id: &str) -> bool {
        self.0.has_session(id)
    }

    /// Ends standalone streams, abandoned calls, and each WebSocket and HTTP+SSE stream without requests in flight;
    /// others continue.
    pub fn drain(&self) {
        self.0.drain();
    }

    /// As [`drain`](Self::drain), when no request is in flight: WebSockets and HTTP+SSE streams end, too.
    pub fn close_streams(&self) {
        self.0.close_streams();
    }

    /// Ends every session and stream.
    pub fn close(&self) {
        self.0.close();
    }
}

/// Decision about a request.
#[derive(Debug)]
pub enum RouteDecision {
    /// Forwards it to this route.
    To(HttpRoute),
    /// Responds immediately.
    Respond(HttpResponse),
}

/// Routes requests to backends.
pub trait HttpRouter: Debug + Send + Sync + 'static {
    /// Returns the settings of the listener.
    fn settings(&self) -> &Settings;

    /// Routes a request. It may change the path that the backend sees.
    fn route(&self, request: &mut HttpRequest) -> RouteDecision;

    /// Ends streams that have no end of their own.
    fn stop(&self);

    /// Ends everything.
    fn cut_off(&self);
}

/// HTTP server with several backends, bound to one address.
#[derive(Debug)]
pub struct RoutedServer<R> {
    server: HttpServer,
    address: ListenAddress,
    router: Arc<R>,
}

/// Passes requests to the routes that the router chooses.
struct RouterEndpoint<R>(Arc<R>);

impl<R: HttpRouter> Endpoint for RouterEndpoint<R> {
    async fn handle(&self, mut request: Box<HttpRequest>) -> HttpResponse {
        match self.0.route(&mut request) {
            RouteDecision::To(route) => route.0.respond(request).await,
            RouteDecision::Respond(response) => response,
        }
    }

    fn cut_off(&self) {
        self.0.cut_off();
    }
}

impl<R: HttpRouter> RoutedServer<R> {
    /// Binds this address. A Unix socket is private to its user, root and [`Settings::allow_users`].
    ///
    /// # Errors
    /// The address is reachable from other machines without a token and the settings do not allow that, or it cannot
    /// be bound.
    pub async fn bind(router: Arc<R>, address: ListenAddress) -> Result<Self, Error> {
        let settings = router.settings();
        let (server, address) = match address {
            ListenAddress::Tcp(address) => {
                let server = bind(settings, address).await?;
                let address = server.address().unwrap_or(address);
                (server, ListenAddress::Tcp(address))
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                (bind_unix(settings, &path).await?, ListenAddress::Unix(path))
            }
            #[cfg(not(unix))]
            ListenAddress::Unix(_) => return Err(Error::NoUnixSockets),
        };
        Ok(Self {
            server,
            address,
            router,
        })
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Returns the URL for clients, without path; of a Unix socket, the form `unix:PATH:`.
    #[must_use]
    pub fn origin(&self) -> String {
        match &self.address {
            ListenAddress::Tcp(address) => origin(self.router.settings(), *address),
            ListenAddress::Unix(path) => unix_origin(path),
        }
    }

    /// Serves until `stop` resolves.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let router = Arc::clone(&self.router);
        let stop = async move {
            stop.await;
            router.stop();
        };
        let endpoint = Arc::new(RouterEndpoint(self.router));
        Ok(self.server.serve(endpoint, stop).await?)
    }
}
