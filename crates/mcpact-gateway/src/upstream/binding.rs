//! A client, as the server knows it.

use crate::sync::lock;
use std::sync::{Arc, Mutex, OnceLock};

use mcpact::server::backend::BackendRequest;
use mcpact_config::Strategy;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, LogLevel, Method};

use crate::connection::IdleGuard;
use crate::connection::UpstreamConnection;
use crate::connection::ownership::ConnectionUser;
use crate::connection::pool::ConnectionPool;
use crate::connection::pool::Lease;
use crate::connection::slot::ConnectionSlot;
use crate::downstream::sink::ClientSink;
use crate::error::{UpstreamError, UpstreamErrorKind};
use crate::subscriptions::legacy_on_modern::EmulatedSubscriptions;
use crate::subscriptions::subscribers::Subscribers;
use crate::upstream::rebind::Rebind;

/// What is remembered about a client in its session.
#[derive(Debug)]
pub(crate) struct ServerBinding {
    /// The way to the server, on which lost connections are replaced.
    slot: Arc<ConnectionSlot>,
    /// The connections that the clients of its kind share.
    pool: Option<Arc<ConnectionPool>>,
    /// What a modern server is told about a legacy client with every request.
    pub(crate) stamp: Option<ClientDeclaration>,
    /// What it takes to introduce a client once more that stays.
    rebind: Option<Rebind>,
    level: Mutex<Option<LogLevel>>,
    emulated: OnceLock<Arc<EmulatedSubscriptions>>,
}

/// Raw documents for the `_meta` of requests.
#[derive(Debug)]
pub(crate) struct ClientDeclaration {
    /// What can be asked of it, or of who stands in for it.
    pub(crate) capabilities: String,
    /// What can be asked when there is no way to ask the client.
    pub(crate) out_of_reach: String,
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
            // AffinityKey: whoever looks at the subscribers may be the last who held the client.
            runtime.spawn(async move { subscribers.dismiss_gone().await });
        }
    }
}

impl ServerBinding {
    /// A client whose every request is welcomed anew.
    pub(crate) fn passing(slot: Arc<ConnectionSlot>, pool: Option<Arc<ConnectionPool>>) -> Self {
        Self::new(slot, pool, None, None)
    }

    /// A client that stays.
    pub(crate) fn staying(
        slot: Arc<ConnectionSlot>,
        pool: Option<Arc<ConnectionPool>>,
        stamp: Option<ClientDeclaration>,
        rebind: Rebind,
    ) -> Self {
        Self::new(slot, pool, stamp, Some(rebind))
    }

    fn new(
        slot: Arc<ConnectionSlot>,
        pool: Option<Arc<ConnectionPool>>,
        stamp: Option<ClientDeclaration>,
        rebind: Option<Rebind>,
    ) -> Self {
        Self {
            slot,
            pool,
            stamp,
            rebind,
            level: Mutex::default(),
            emulated: OnceLock::new(),
        }
    }

    /// The way to the server.
    pub(crate) const fn slot(&self) -> &Arc<ConnectionSlot> {
        &self.slot
    }

    /// On whose behalf connections are used.
    pub(crate) fn user(&self) -> ConnectionUser {
        match self.rebind().and_then(Rebind::who) {
            Some(who) => ConnectionUser::Client(who),
            None => ConnectionUser::Stranger,
        }
    }

    /// A connection, opened if there is none.
    pub(crate) async fn connection(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let user = self.user();
        match (self.connection_of(&user), &self.pool) {
            (Some(connection), _) => Ok(connection),
            (None, Some(pool)) => Box::pin(pool.connection(&user)).await,
            (None, None) => Box::pin(self.slot.connection(&user)).await,
        }
    }

    /// A connection to the server as it is: one that is over is opened again.
    pub(crate) async fn meet_anew(&self) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let closed = self.pool.as_ref().and_then(|pool| pool.closed());
        closed
            .as_ref()
            .unwrap_or(&self.slot)
            .connection(&self.user())
            .await
    }

    /// The connection for a call, with the right to make one.
    pub(crate) async fn acquire(&self) -> Result<Lease, UpstreamError> {
        match &self.pool {
            Some(pool) => pool.acquire(&self.user()).await,
            None => self.slot.acquire(&self.user()).await,
        }
    }

    /// As [`acquire`](Self::acquire), on the connection on which the client hears what belongs to no call.
    pub(crate) async fn acquire_home(&self) -> Result<Lease, UpstreamError> {
        self.slot.acquire(&self.user()).await
    }

    /// As [`acquire`](Self::acquire), where its turn is.
    pub(crate) async fn acquire_at(
        &self,
        slot: &Arc<ConnectionSlot>,
    ) -> Result<Lease, UpstreamError> {
        slot.acquire(&self.user()).await
    }

    /// What went wrong with its server.
    pub(crate) fn error(&self, trouble: UpstreamErrorKind) -> UpstreamError {
        self.slot.error(trouble)
    }

    /// The same for a call that was lost, which its trace tells the log.
    pub(crate) fn lost_call(&self, trouble: UpstreamErrorKind) -> UpstreamError {
        self.slot.lost_call(trouble)
    }

    /// Whether the server is told who asks.
    pub(crate) fn has_credentials(&self) -> bool {
        self.slot.has_credentials()
    }

    /// ClientRef hears what belongs to no call.
    pub(crate) fn subscribers(&self) -> &Arc<Subscribers> {
        self.slot.subscribers()
    }

    /// Whether the server shall be awake for those who listen to this.
    pub(crate) fn wants_awake(&self, filter: &ListenFilter) -> bool {
        match self.slot.strategy() {
            Strategy::Stateful => true,
            Strategy::Stateless | Strategy::Persistent | Strategy::Singleton => {
                !filter.uris.is_empty()
            }
        }
    }

    /// The connections that the clients of its kind share.
    pub(crate) const fn pool(&self) -> Option<&Arc<ConnectionPool>> {
        self.pool.as_ref()
    }

    /// The connection, if it is open.
    pub(crate) fn open_connection(&self) -> Option<Arc<UpstreamConnection>> {
        self.connection_of(&self.user())
    }

    fn connection_of(&self, user: &ConnectionUser) -> Option<Arc<UpstreamConnection>> {
        match &self.pool {
            Some(pool) => pool.open_connection_for(user),
            None => self.slot.live_for(user),
        }
    }

    /// Keeps the server awake that is, for as long as this is held.
    pub(crate) fn hold(&self) -> Option<IdleGuard> {
        Some(self.open_connection()?.hold())
    }

    pub(crate) const fn rebind(&self) -> Option<&Rebind> {
        self.rebind.as_ref()
    }

    /// Whether the server is awake for it.
    pub(crate) fn is_awake(&self) -> bool {
        self.open_connection().is_some()
    }

    /// What a legacy client wants to hear from a modern server.
    pub(crate) fn emulated(&self) -> Option<&Arc<EmulatedSubscriptions>> {
        self.emulated.get()
    }

    pub(crate) fn wish_on(&self, emulated: EmulatedSubscriptions) {
        // A session opens once.
        let _ = self.emulated.set(Arc::new(emulated));
    }

    /// The client tells something.
    pub(crate) fn observe(self: &Arc<Self>, method: Method, params: Option<&str>) {
        if let Some(next) = self.rebind().and_then(Rebind::next) {
            next.observe(method, params);
        }
        if method == Method::Initialized
            && let Some(emulated) = self.emulated()
        {
            emulated.begin(self);
        }
        let connection = self.open_connection();
        let Some(connection) =
            connection.filter(|connection| connection.revision().era() == Era::Legacy)
        else {
            return;
        };
        match method {
            Method::Initialized => connection.confirmed(),
            Method::RootsListChanged => {
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

    /// Which log messages a legacy client wants of a modern server.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        *lock(&self.level)
    }

    /// The same while the server sleeps: a legacy one is told when it wakes.
    pub(crate) fn wants_logs(&self, level: LogLevel, sink: &ClientSink, job: &BackendRequest) {
        self.set_level(level);
        let params = &job.params;
        self.subscribers()
            .granted(sink, Method::LoggingSetLevel, params);
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *lock(&self.level) = Some(level);
    }
}
