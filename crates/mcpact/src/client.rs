//! MCP clients for servers of every revision, over HTTP, stdio, sockets or memory.
//!
//! [`Client::connect`] detects the server's revision and negotiates a [`Pact`]; every call is checked against the
//! pact before anything is sent. The handlers of the [`ClientBuilder`] answer questions of the server, as requests
//! (legacy) or inside of results (modern).
//!
//! [`Client`] is a cheap handle of a [`connection`](crate::connection). Each request is driven by its caller; what the
//! server sends on its own goes to the handlers in the order of its arrival. The connection ends with the last handle.

mod calls;
mod changes;
mod client_builder;
mod client_error;
mod era_cache;
mod handlers;
mod incoming;
mod pending;
mod requests;
mod session;
mod shared;
mod tasks;

use std::fmt;
use std::sync::Arc;

use mcpact_spec::{Kind, Side};
use mcpact_wire::model::implementation::Implementation;

use self::requests::Outgoing;
use self::session::Sessions;
use self::shared::Shared;

pub use calls::{CallOptions, CancelToken};
pub use changes::{Change, Changes, Watch};
pub use client_builder::ClientBuilder;
pub use client_builder::Target;
pub use client_error::{AnswerError, ClientError, RpcError};
pub use era_cache::{EraCache, EraProbe};
pub use handlers::Notification;
pub use mcpact_engine::client::{EraMode, EraVerdict, Failure};
pub use mcpact_engine::pact::Pact;
pub use mcpact_engine::transcript::Transcript;
pub use mcpact_spec::{Era, Method, Revision};
pub use mcpact_transport::http::client::{HttpSettings, Proxy, ProxyMode};
pub use mcpact_transport::link::Link;
#[cfg(unix)]
pub use mcpact_transport::stdio::child::ChildCommand;
pub use tasks::{TaskCall, TaskOptions};

/// Connection to a server. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("target", &self.shared.target)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Connects with default settings and without handlers.
    ///
    /// # Errors
    /// The server is unreachable, requires credentials, or the negotiation fails.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, ClientError> {
        Self::builder("mcpact", env!("CARGO_PKG_VERSION"))
            .connect(target)
            .await
    }

    /// Creates a builder for a client with this name and version.
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// Returns the negotiated pact; after a lost legacy session, the pact of the new session.
    #[must_use]
    pub fn pact(&self) -> Arc<Pact> {
        Arc::clone(&self.sessions.current().connection.pact)
    }

    /// Returns name and version of the server.
    #[must_use]
    pub fn server_info(&self) -> Option<Arc<Implementation>> {
        self.pact().party(Side::Server).info.clone()
    }

    /// Returns the instructions of the server.
    #[must_use]
    pub fn instructions(&self) -> Option<String> {
        let session = self.sessions.current();
        let instructions = session.connection.introduction.instructions.as_deref();
        instructions.map(str::to_owned)
    }

    /// Returns the steps of the negotiation.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        self.sessions.current().transcript.clone()
    }

    /// Returns `true` if the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sessions.is_closed()
    }

    /// Returns `true` if the pact allows this client to send a request.
    #[must_use]
    pub fn may(&self, method: Method) -> bool {
        self.pact()
            .rule_on(Side::Client, Kind::Request, method)
            .is_open()
    }

    /// Waits for requests in flight, ends the session and waits until that is done.
    pub async fn close(self) {
        self.shared.pending.close();
        self.shared.pending.drained().await;
        self.sessions.close().await;
    }

    /// Sends a request and returns the raw result. Questions in a modern result are not answered.
    ///
    /// # Errors
    /// The pact does not allow it, or the request fails.
    pub async fn request(&self, method: &str, params: Option<&str>) -> Result<String, ClientError> {
        let params = params.map(str::to_owned);
        self.ask(method, params, &CallOptions::new()).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The pact does not allow it, or the connection is closed.
    pub async fn notify(&self, method: &str, params: Option<&str>) -> Result<(), ClientError> {
        self.send_notification(method, params).await
    }
}
