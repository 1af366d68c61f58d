//! Asking servers of every revision, over HTTP, pipes, sockets or memory.
//!
//! [`Client::connect`] finds out what the server speaks and agrees on a [`Pact`]; every call asks the
//! pact before anything is sent. Questions that the server has in return are answered by the handlers
//! of the [`ClientBuilder`], whether they come as requests (legacy) or inside a result (modern).
//!
//! A task of its own owns the negotiation machine and the carrier; [`Client`] is a cheap handle to
//! it. When the last handle is gone, the connection ends.

mod builder;
mod calls;
mod core;
mod driver;
mod error;
mod handlers;
mod options;
mod rounds;
mod shared;
mod target;
mod tasks;
mod verdicts;
mod watch;

use std::fmt;
use std::sync::Arc;

use mcpact_engine::outstanding::RequestTimeout;
use mcpact_spec::tables::meta;
use mcpact_spec::{Kind, Side};
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::{Object, ObjectWriter};
use tokio::sync::{mpsc, oneshot};

use self::core::{Ask, Command};
use self::shared::{Agreement, Shared};
use self::watch::ChangeQueue;
use crate::model::Progress;

pub use builder::ClientBuilder;
pub use error::{AnswerError, ClientError, RpcError};
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
pub use verdicts::{Inquiry, Verdicts};
pub use watch::{Change, Changes, Watch};

/// A connection to a server. Copies are the same connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
    give_up: mpsc::UnboundedSender<u64>,
    /// There was an agreement before there was a client.
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
    /// Connects with the usual terms and without handlers.
    ///
    /// # Errors
    /// The server cannot be reached, wants credentials, or does not agree.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, ClientError> {
        Self::builder("mcpact", env!("CARGO_PKG_VERSION"))
            .connect(target)
            .await
    }

    /// A client with this name and version.
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    fn agreement(&self) -> Arc<Agreement> {
        let newest = self.shared.agreement();
        newest.unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// What was agreed. A legacy session that the server has forgotten is opened anew, and then this
    /// is the newer agreement.
    #[must_use]
    pub fn pact(&self) -> Arc<Pact> {
        Arc::clone(&self.agreement().pact)
    }

    /// Who the server says it is.
    #[must_use]
    pub fn server_info(&self) -> Option<Arc<Implementation>> {
        self.pact().party(Side::Server).info.clone()
    }

    /// What the server says about its use.
    #[must_use]
    pub fn instructions(&self) -> Option<String> {
        self.agreement().instructions.clone()
    }

    /// How the agreement came about, step by step.
    #[must_use]
    pub fn trail(&self) -> Transcript {
        self.agreement().trail.clone()
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Whether the pact lets this client send a request.
    #[must_use]
    pub fn may(&self, method: Method) -> bool {
        self.pact()
            .rule_on(Side::Client, Kind::Request, method)
            .is_open()
    }

    /// Lets what is in flight finish, ends the session and waits until that is done.
    pub async fn close(self) {
        let (done, is_done) = oneshot::channel();
        if self.commands.send(Command::Close(done)).await.is_ok() {
            // An error means that the driver has ended, which is what was wanted.
            let _ = is_done.await;
        }
    }

    /// Sends a request and gives the raw result, whatever it is. Questions in a modern result are
    /// not answered here.
    ///
    /// # Errors
    /// The pact does not allow it, or it fails.
    pub async fn request(&self, method: &str, params: Option<&str>) -> Result<String, ClientError> {
        let params = params.map(str::to_owned);
        self.ask(method, params, &CallOptions::new()).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The pact does not allow it, or the connection has ended.
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
        let patience = options.patience(self.shared.timeout);
        let asking = self.prepare(
            method.to_owned(),
            params,
            patience,
            options.progress.clone(),
        );
        self.settle(asking, options.cancel.as_ref()).await
    }

    /// A request with what this client adds to its `_meta`.
    fn prepare(
        &self,
        method: String,
        params: Option<String>,
        patience: RequestTimeout,
        progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> Asking {
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
            patience,
            reply,
            progress,
            changes: None,
            is_second: false,
        };
        Asking { ask, answer }
    }

    async fn settle(
        &self,
        asking: Asking,
        cancel: Option<&CancelToken>,
    ) -> Result<String, ClientError> {
        let Asking { ask, answer } = asking;
        let mut giving_up = GiveUp {
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
                giving_up.ticket = None;
                answer.map_err(|_| ClientError::Closed)?
            }
            () = cancelled => Err(ClientError::Cancelled),
        }
    }

    /// Sends a request whose answer nobody reads.
    fn ask_and_forget(&self, method: Method, params: String) {
        let patience = CallOptions::new().patience(self.shared.timeout);
        let asking = self.prepare(method.as_str().to_owned(), Some(params), patience, None);
        let this = self.clone();
        // Without a runtime there is no driver either, and nobody to tell.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { this.settle(asking, None).await });
        }
    }
}

/// A request that is ready to be sent.
struct Asking {
    ask: Ask,
    answer: oneshot::Receiver<Result<String, ClientError>>,
}

impl Asking {
    fn listening(mut self, queue: Arc<ChangeQueue>) -> Self {
        self.ask.changes = Some(queue);
        self
    }
}

/// Tells the driver when a caller goes away before its answer comes.
struct GiveUp<'a> {
    ticket: Option<u64>,
    give_up: &'a mpsc::UnboundedSender<u64>,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // The driver may have ended.
            let _ = self.give_up.send(ticket);
        }
    }
}

/// Parameters with these members in their `_meta`. What cannot be read is left for the machine to
/// refuse.
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
