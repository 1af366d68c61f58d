//! MCP clients for servers of every revision, over HTTP, stdio, sockets or memory.
//!
//! [`Client::connect`] detects the server's revision and negotiates a [`Pact`]; every call is checked against the
//! pact before anything is sent. The handlers of the [`ClientBuilder`] answer questions of the server, as requests
//! (legacy) or inside of results (modern).
//!
//! A background job owns the state machine and the transport; [`Client`] is a cheap handle. The connection ends with
//! the last handle.

mod calls;
mod changes;
mod client_builder;
mod client_error;
mod core;
mod driver;
mod era_cache;
mod handlers;
mod options;
mod rounds;
mod shared;
mod target;
mod tasks;

use std::fmt;
use std::sync::Arc;

use mcpact_engine::outstanding::RequestTimeout;
use mcpact_spec::tables::meta;
use mcpact_spec::{Kind, Side};
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::{Object, ObjectWriter};
use tokio::sync::{mpsc, oneshot};

use self::changes::ChangeQueue;
use self::core::{Ask, Command};
use self::shared::{Agreement, Shared};
use crate::model::Progress;

pub use changes::{Change, Changes, Watch};
pub use client_builder::ClientBuilder;
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
pub use options::{CallOptions, CancelToken};
pub use target::Target;
pub use tasks::{TaskCall, TaskOptions};

/// Connection to a server. Clones share the connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    give_up: mpsc::UnboundedSender<u64>,
    /// The negotiation precedes the client.
    first: Arc<Agreement>,
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

    fn agreement(&self) -> Arc<Agreement> {
        let newest = self.shared.agreement();
        newest.unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// Returns the negotiated pact; after a lost legacy session, the pact of the new session.
    #[must_use]
    pub fn pact(&self) -> Arc<Pact> {
        Arc::clone(&self.agreement().pact)
    }

    /// Returns name and version of the server.
    #[must_use]
    pub fn server_info(&self) -> Option<Arc<Implementation>> {
        self.pact().party(Side::Server).info.clone()
    }

    /// Returns the instructions of the server.
    #[must_use]
    pub fn instructions(&self) -> Option<String> {
        self.agreement().instructions.clone()
    }

    /// Returns the steps of the negotiation.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        self.agreement().transcript.clone()
    }

    /// Returns `true` if the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
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
        let (done, is_done) = oneshot::channel();
        if self.commands.send(Command::Close(done)).await.is_ok() {
            // An error means that the driver has ended already.
            let _ = is_done.await;
        }
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
        let (reply, outcome) = oneshot::channel();
        let command = Command::Notify {
            method: method.to_owned(),
            params: params.map(str::to_owned),
            reply,
        };
        let sent = self.commands.send(command).await;
        sent.map_err(|_| ClientError::Closed)?;
        outcome.await.map_err(|_| ClientError::Closed)?
    }

    async fn ask(
        &self,
        method: &str,
        params: Option<String>,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let timeout = options.request_timeout(self.shared.timeout);
        let prepared = self.prepare(method.to_owned(), params, timeout, options.progress.clone());
        self.send(prepared, options.cancel.as_ref()).await
    }

    /// Prepares a request, with the client's `_meta` members.
    fn prepare(
        &self,
        method: String,
        params: Option<String>,
        timeout: RequestTimeout,
        progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> PreparedRequest {
        let ticket = self.shared.ticket();
        let is_modern = self.pact().era() == Era::Modern;
        let level = self.shared.log_level().filter(|_| is_modern);
        let mut added = Vec::new();
        if progress.is_some() {
            added.push((meta::PROGRESS_TOKEN, ticket.to_string()));
        }
        if let Some(level) = level {
            added.push((meta::LOG_LEVEL, format!("\"{}\"", level.as_str())));
        }
        let params = match added.as_slice() {
            [] => params,
            added => Some(with_meta(params, added)),
        };
        let (reply, answer) = oneshot::channel();
        let ask = Ask {
            ticket,
            method,
            params,
            patience: timeout,
            reply,
            progress,
            changes: None,
            is_second: false,
        };
        PreparedRequest { ask, answer }
    }

    async fn send(
        &self,
        prepared: PreparedRequest,
        cancel: Option<&CancelToken>,
    ) -> Result<String, ClientError> {
        let PreparedRequest { ask, answer } = prepared;
        let mut guard = CancelOnDrop {
            ticket: Some(ask.ticket),
            give_up: &self.give_up,
        };
        let sent = self.commands.send(Command::Ask(ask)).await;
        sent.map_err(|_| ClientError::Closed)?;
        let cancelled = async {
            match cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = answer => {
                guard.ticket = None;
                answer.map_err(|_| ClientError::Closed)?
            }
            () = cancelled => Err(ClientError::Cancelled),
        }
    }

    /// Sends a request and ignores the response.
    fn send_detached(&self, method: Method, params: String) {
        let timeout = CallOptions::new().request_timeout(self.shared.timeout);
        let prepared = self.prepare(method.as_str().to_owned(), Some(params), timeout, None);
        let this = self.clone();
        // Without a runtime the driver is gone, too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { this.send(prepared, None).await });
        }
    }
}

/// Request ready to be sent.
struct PreparedRequest {
    ask: Ask,
    answer: oneshot::Receiver<Result<String, ClientError>>,
}

impl PreparedRequest {
    fn with_changes(mut self, queue: Arc<ChangeQueue>) -> Self {
        self.ask.changes = Some(queue);
        self
    }
}

/// Cancels a request when its caller drops it before the response.
struct CancelOnDrop<'a> {
    ticket: Option<u64>,
    give_up: &'a mpsc::UnboundedSender<u64>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // The driver may have ended.
            let _ = self.give_up.send(ticket);
        }
    }
}

/// Adds members to `_meta` of the parameters. Unreadable parameters are left for the engine to refuse.
fn with_meta(params: Option<String>, added: &[(&str, String)]) -> String {
    let raw = params.as_deref().unwrap_or("{}");
    let Ok(body) = Object::parse(raw) else {
        return raw.to_owned();
    };
    let existing = Object::parse(body.get("_meta").unwrap_or("{}")).unwrap_or_default();
    let mut inner = ObjectWriter::new();
    for (key, value) in existing.iter() {
        if !added.iter().any(|(name, _)| *name == key) {
            inner = inner.raw(key, value);
        }
    }
    for (key, value) in added {
        inner = inner.raw(key, value);
    }
    let mut out = ObjectWriter::new();
    for (key, value) in body.iter().filter(|(key, _)| *key != "_meta") {
        out = out.raw(key, value);
    }
    out.raw("_meta", &inner.finish()).finish()
}
