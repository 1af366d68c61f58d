//! Binding of one client to one server.

use crate::sync::lock;
use std::sync::{Arc, Mutex, OnceLock};

use mcpact::server::backend::BackendRequest;
use mcpact_config::Strategy;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, LogLevel, Method};

use crate::connection::ownership::ConnectionUser;
use crate::connection::pool::{ConnectionPool, Lease};
use crate::connection::slot::ConnectionSlot;
use crate::connection::{IdleGuard, UpstreamConnection};
use crate::downstream::sink::ClientSink;
use crate::error::{UpstreamError, UpstreamErrorKind};
use crate::subscriptions::legacy_on_modern::EmulatedSubscriptions;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::StartCause;
use crate::upstream::rebind::Rebind;

/// One client at one server.
#[derive(Debug)]
pub(crate) struct ServerBinding {
    /// Slot of the connection that delivers the client's notifications.
    pub(crate) slot: Arc<ConnectionSlot>,
    /// Connections that the client shares with others.
    pool: Option<Arc<ConnectionPool>>,
    /// Declaration of a legacy client for the requests to a modern server.
    pub(crate) stamp: Option<ClientDeclaration>,
    /// Data of a legacy client for a changed server.
    rebind: Option<Rebind>,
    /// Log level of a legacy client at a modern server.
    level: Mutex<Option<LogLevel>>,
    /// Subscriptions of a legacy client at a modern server.
    emulated: OnceLock<Arc<EmulatedSubscriptions>>,
}

/// Declaration of a client, as raw JSON for the `_meta` of requests.
#[derive(Debug)]
pub(crate) struct ClientDeclaration {
    /// Capabilities of the client and of its default answers. The second set is for requests without a stream, during
    /// which the client cannot be asked.
    pub(crate) capabilities: [String; 2],
    /// Both with the tasks extension, if the server has it.
    pub(crate) with_tasks: Option<[String; 2]>,
    pub(crate) info: String,
}

impl Drop for ServerBinding {
    fn drop(&mut self) {
        // An instance for one client ends with it.
        let is_shared = self.rebind.is_some() && self.slot.strategy() != Strategy::Stateful;
        if is_shared && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let subscribers = Arc::clone(self.subscribers());
            // In the background, because unsubscribing sends requests.
            runtime.spawn(async move { subscribers.remove_disconnected().await });
        }
    }
}

impl ServerBinding {
    /// Returns a binding of a modern client, or of the gateway itself, to the connections of a pool.
    pub(crate) fn of_pool(pool: Arc<ConnectionPool>) -> Arc<Self> {
        Self::new(pool.first(), Some(pool), None, None)
    }

    /// Returns a binding. Only that of a legacy client has data to bind it again.
    pub(crate) fn new(
        slot: Arc<ConnectionSlot>,
        pool: Option<Arc<ConnectionPool>>,
        stamp: Option<ClientDeclaration>,
        rebind: Option<Rebind>,
    ) -> Arc<Self> {
        Arc::new(Self {
            slot,
            pool,
            stamp,
            rebind,
            level: Mutex::default(),
            emulated: OnceLock::new(),
        })
    }

    /// Returns the user of the binding's connections.
    pub(crate) fn user(&self) -> ConnectionUser {
        let sink = self.rebind().and_then(|rebind| rebind.client.sink.get());
        match sink {
            Some(sink) => ConnectionUser::Client(sink.client_ref()),
            None => ConnectionUser::Stranger,
        }
    }

    /// Returns a connection, opened if necessary.
    pub(crate) async fn connection(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let (user, cause) = (self.user(), StartCause::Request);
        match (self.connection_of(&user), &self.pool) {
            (Some(connection), _) => Ok(connection),
            (None, Some(pool)) => Box::pin(pool.connection_for(&user, cause)).await,
            (None, None) => Box::pin(self.slot.connection_for(&user, cause)).await,
        }
    }

    /// Returns a connection; replaces a closed one, even if the pool has others.
    pub(crate) async fn renegotiate(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let closed = self.pool.as_ref().and_then(|pool| pool.closed());
        let slot = closed.as_ref().unwrap_or(&self.slot);
        slot.connection_for(&self.user(), StartCause::Request).await
    }

    /// Returns a connection with capacity for a call.
    pub(crate) async fn acquire(&self) -> Result<Lease, UpstreamError> {
        match &self.pool {
            Some(pool) => pool.acquire(&self.user()).await,
            None => self.slot.acquire(&self.user()).await,
        }
    }

    /// Returns and logs an error of the server.
    pub(crate) fn error(&self, kind: UpstreamErrorKind) -> UpstreamError {
        self.slot.error(kind)
    }

    /// Returns the error for a lost call, which is logged at the end of its trace.
    pub(crate) fn lost_call(&self, kind: UpstreamErrorKind) -> UpstreamError {
        self.slot.shared.error(kind)
    }

    pub(crate) fn subscribers(&self) -> &Arc<Subscribers> {
        self.slot.subscribers()
    }

    /// Returns true if a stream with this filter keeps the server running.
    pub(crate) fn wants_awake(&self, filter: &ListenFilter) -> bool {
        self.slot.strategy() == Strategy::Stateful || !filter.uris.is_empty()
    }

    /// Returns the pool of shared connections.
    pub(crate) const fn pool(&self) -> Option<&Arc<ConnectionPool>> {
        self.pool.as_ref()
    }

    /// Returns an open connection.
    pub(crate) fn open_connection(&self) -> Option<Arc<UpstreamConnection>> {
        self.connection_of(&self.user())
    }

    fn connection_of(&self, user: &ConnectionUser) -> Option<Arc<UpstreamConnection>> {
        match &self.pool {
            Some(pool) => pool.open_connection_for(user),
            None => self.slot.live_for(user),
        }
    }

    /// Prevents idle shutdown of a running server while the guard is held.
    pub(crate) fn hold(&self) -> Option<IdleGuard> {
        Some(self.open_connection()?.hold())
    }

    pub(crate) const fn rebind(&self) -> Option<&Rebind> {
        self.rebind.as_ref()
    }

    pub(crate) fn emulated(&self) -> Option<&Arc<EmulatedSubscriptions>> {
        self.emulated.get()
    }

    pub(crate) fn set_emulated(&self, emulated: EmulatedSubscriptions) {
        // A session opens once.
        let _ = self.emulated.set(Arc::new(emulated));
    }

    /// Processes a notification of the client.
    pub(crate) fn observe(self: &Arc<Self>, method: Method, params: Option<&str>) {
        if let Some(rebind) = self.rebind() {
            rebind.client.observe(method, params);
        }
        if method == Method::Initialized
            && let Some(emulated) = self.emulated()
        {
            emulated.start(self);
        }
        let connection = self.open_connection();
        let connection = connection.filter(|connection| connection.revision().era() == Era::Legacy);
        match (method, connection) {
            (Method::Initialized, Some(connection)) => connection.confirmed(),
            (Method::RootsListChanged, Some(connection)) => {
                let params = params.map(str::to_owned);
                tokio::spawn(async move {
                    connection
                        .upstream
                        .notify(method.as_str(), params.as_deref())
                        .await
                });
            }
            _ => {}
        }
    }

    pub(crate) fn level(&self) -> Option<LogLevel> {
        *lock(&self.level)
    }

    /// Saves a log level while the server is idle. A legacy server gets it with the next connection.
    pub(crate) fn save_level(&self, level: LogLevel, sink: &ClientSink, request: &BackendRequest) {
        self.set_level(level);
        self.subscribers()
            .record(sink, Method::LoggingSetLevel, &request.params);
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *lock(&self.level) = Some(level);
    }
}
