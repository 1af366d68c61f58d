//! A client, as the bridge knows it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcpact::server::backend::BackendRequest;
use mcpact_config::Strategy;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, LogLevel, Method};

use super::audience::Audience;
use super::claim::User;
use super::ear::Ear;
use super::lane::{Hold, Lane};
use super::pool::Pool;
use super::port::{Boarded, Port};
use super::renewal::Renewal;
use super::wishes::Wishing;
use crate::error::{UpstreamError, UpstreamErrorKind};

/// What is remembered about a client in its session.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The way to the server, on which lost connections are replaced.
    port: Arc<Port>,
    /// The connections that the clients of its kind share.
    pool: Option<Arc<Pool>>,
    /// What a modern server is told about a legacy client with every request.
    pub(super) stamp: Option<Introduced>,
    /// What it takes to introduce a client once more that stays.
    renewal: Option<Renewal>,
    level: Mutex<Option<LogLevel>>,
    wishing: OnceLock<Arc<Wishing>>,
}

/// Raw documents for the `_meta` of requests.
#[derive(Debug)]
pub(super) struct Introduced {
    /// What can be asked of it, or of who stands in for it.
    pub(super) capabilities: String,
    /// What can be asked when there is no way to ask the client.
    pub(super) out_of_reach: String,
    /// Both with the tasks extension, if the server has it.
    pub(super) with_tasks: Option<[String; 2]>,
    pub(super) info: String,
}

impl Drop for Caller {
    fn drop(&mut self) {
        // An instance for one client ends with it.
        let is_shared = self.renewal.is_some() && self.port.strategy() != Strategy::Stateful;
        if is_shared && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let audience = Arc::clone(self.audience());
            // Apart: whoever looks at the audience may be the last who held the client.
            runtime.spawn(async move { audience.dismiss_gone().await });
        }
    }
}

impl Caller {
    /// A client whose every request is welcomed anew.
    pub(super) fn passing(port: Arc<Port>, pool: Option<Arc<Pool>>) -> Self {
        Self::new(port, pool, None, None)
    }

    /// A client that stays.
    pub(super) fn staying(
        port: Arc<Port>,
        pool: Option<Arc<Pool>>,
        stamp: Option<Introduced>,
        renewal: Renewal,
    ) -> Self {
        Self::new(port, pool, stamp, Some(renewal))
    }

    fn new(
        port: Arc<Port>,
        pool: Option<Arc<Pool>>,
        stamp: Option<Introduced>,
        renewal: Option<Renewal>,
    ) -> Self {
        Self {
            port,
            pool,
            stamp,
            renewal,
            level: Mutex::default(),
            wishing: OnceLock::new(),
        }
    }

    /// The way to the server.
    pub(super) const fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// On whose behalf connections are used.
    pub(super) fn user(&self) -> User {
        match self.renewal().and_then(Renewal::who) {
            Some(who) => User::Client(who),
            None => User::Stranger,
        }
    }

    /// A connection, opened if there is none.
    pub(super) async fn lane(&self) -> Result<Arc<Lane>, UpstreamError> {
        let user = self.user();
        match (self.lane_of(&user), &self.pool) {
            (Some(lane), _) => Ok(lane),
            (None, Some(pool)) => Box::pin(pool.lane(&user)).await,
            (None, None) => Box::pin(self.port.lane(&user)).await,
        }
    }

    /// A connection to the server as it is: one that is over is opened again.
    pub(super) async fn meet_anew(&self) -> Result<Arc<Lane>, UpstreamError> {
        let closed = self.pool.as_ref().and_then(|pool| pool.closed());
        closed
            .as_ref()
            .unwrap_or(&self.port)
            .lane(&self.user())
            .await
    }

    /// The connection for a call, with the right to make one.
    pub(super) async fn board(&self) -> Result<Boarded, UpstreamError> {
        match &self.pool {
            Some(pool) => pool.board(&self.user()).await,
            None => self.port.board(&self.user()).await,
        }
    }

    /// As [`board`](Self::board), on the connection on which the client hears what belongs to no call.
    pub(super) async fn board_at_home(&self) -> Result<Boarded, UpstreamError> {
        self.port.board(&self.user()).await
    }

    /// As [`board`](Self::board), where its turn is.
    pub(super) async fn board_at(&self, port: &Arc<Port>) -> Result<Boarded, UpstreamError> {
        port.board(&self.user()).await
    }

    /// What went wrong with its server.
    pub(super) fn error(&self, trouble: UpstreamErrorKind) -> UpstreamError {
        self.port.error(trouble)
    }

    /// The same for a call that was lost, which its journey tells the log.
    pub(super) fn lost_call(&self, trouble: UpstreamErrorKind) -> UpstreamError {
        self.port.lost_call(trouble)
    }

    /// Whether the server is told who asks.
    pub(super) fn has_credentials(&self) -> bool {
        self.port.has_credentials()
    }

    /// Who hears what belongs to no call.
    pub(super) fn audience(&self) -> &Arc<Audience> {
        self.port.audience()
    }

    /// Whether the server shall be awake for those who listen to this.
    pub(super) fn wants_awake(&self, filter: &ListenFilter) -> bool {
        match self.port.strategy() {
            Strategy::Stateful => true,
            Strategy::Stateless | Strategy::Persistent | Strategy::Singleton => {
                !filter.uris.is_empty()
            }
        }
    }

    /// The connections that the clients of its kind share.
    pub(super) const fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// The connection, if it is open.
    pub(super) fn open_lane(&self) -> Option<Arc<Lane>> {
        self.lane_of(&self.user())
    }

    fn lane_of(&self, user: &User) -> Option<Arc<Lane>> {
        match &self.pool {
            Some(pool) => pool.open_lane_for(user),
            None => self.port.live_for(user),
        }
    }

    /// Keeps the server awake that is, for as long as this is held.
    pub(crate) fn hold(&self) -> Option<Hold> {
        Some(self.open_lane()?.hold())
    }

    pub(super) const fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_ref()
    }

    /// Whether the server is awake for it.
    pub(crate) fn is_awake(&self) -> bool {
        self.open_lane().is_some()
    }

    /// What a legacy client wants to hear from a modern server.
    pub(super) fn wishing(&self) -> Option<&Arc<Wishing>> {
        self.wishing.get()
    }

    pub(super) fn wish_on(&self, wishing: Wishing) {
        // A session opens once.
        let _ = self.wishing.set(Arc::new(wishing));
    }

    /// The client tells something.
    pub(crate) fn observe(self: &Arc<Self>, method: Method, params: Option<&str>) {
        if let Some(next) = self.renewal().and_then(Renewal::next) {
            next.observe(method, params);
        }
        if method == Method::Initialized
            && let Some(wishing) = self.wishing()
        {
            wishing.begin(self);
        }
        let lane = self.open_lane();
        let Some(lane) = lane.filter(|lane| lane.revision().era() == Era::Legacy) else {
            return;
        };
        match method {
            Method::Initialized => lane.confirmed(),
            Method::RootsListChanged => {
                let params = params.map(str::to_owned);
                tokio::spawn(async move {
                    lane.upstream
                        .notify(method.as_str(), params.as_deref())
                        .await
                });
            }
            _ => {}
        }
    }

    /// Which log messages a legacy client wants of a modern server.
    pub(super) fn level(&self) -> Option<LogLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same while the server sleeps: a legacy one is told when it wakes.
    pub(super) fn wants_logs(&self, level: LogLevel, ear: &Ear, job: &BackendRequest) {
        self.set_level(level);
        let params = &job.params;
        self.audience()
            .granted(ear, Method::LoggingSetLevel, params);
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }
}
