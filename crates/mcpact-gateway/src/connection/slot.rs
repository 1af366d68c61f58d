//! Slot for one connection to a server: connects on demand, and again after the connection was lost.

use crate::sync::lock;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use mcpact::client::EraCache;
use mcpact::log::event;
use mcpact_config::{Approval, RunSettings, Strategy};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::EraMode;
use mcpact_spec::{Era, Method, Side};
use mcpact_translate::input::DefaultAnswers;
use mcpact_transport::stdio::child::{Masks, StartCheck};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::approval::{check, check_started};
use crate::connect::connect;
use crate::connection::UpstreamConnection;
use crate::connection::ownership::ConnectionUser;
use crate::connection::pool::{Lease, lease};
use crate::error::{UpstreamError, UpstreamErrorKind};
use crate::lists::own::OwnListChanges;
use crate::lists::scope::{Audience, change_audience};
use crate::metrics::ServerMetrics;
use crate::pins::Pins;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{
    Few, InstanceGuard, InstanceSharing, ManagedConnection, PermitState, PoolFacts, Purpose,
    SharingPolicy, SlotFacts, StartCause, Supervisor, sharing_policy,
};
use crate::target::Target;
use crate::tasks::mapped::Mapping;
use crate::tasks::waiting::ToolTasks;
use crate::upstream::info::ServerInfoCache;
use mcpact::connection::{Connected, FailureText, Offer, ToolHeaders};

/// Maximum time to restore the subscriptions of a lost session in a new one.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of reconnects in a row for listening clients.
pub(crate) const MAX_RECONNECTS: u32 = 12;

/// State that all connections to a server share.
#[derive(Debug)]
pub(crate) struct ServerShared {
    /// Name in logs.
    pub(crate) name: Arc<str>,
    /// Name in errors for clients.
    pub(crate) title: String,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) target: Target,
    /// Secrets of the server, masked in texts.
    pub(crate) masks: Masks,
    pub(crate) mode: EraMode,
    /// Capabilities that the server must have.
    pub(crate) require: Vec<Cow<'static, str>>,
    /// Answers to questions that a client cannot answer.
    pub(crate) default_answers: DefaultAnswers,
    /// Approval that a start needs.
    pub(crate) approval: Option<Approval>,
    /// Recorded digests of the server's tools.
    pub(crate) pins: Arc<Pins>,
    pub(crate) verdicts: EraCache,
    pub(crate) book: Arc<ToolHeaders>,
    pub(crate) info_cache: ServerInfoCache,
    pub(crate) tool_tasks: Arc<ToolTasks>,
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) run: RwLock<RunSettings>,
    pub(crate) supervisor: Arc<Supervisor>,
}

impl ServerShared {
    /// Returns an error of this server.
    pub(crate) fn error(&self, kind: UpstreamErrorKind) -> UpstreamError {
        UpstreamError {
            target: self.title.clone(),
            kind,
            masks: self.masks.clone(),
        }
    }

    /// Returns the settings for instances.
    pub(crate) fn run(&self) -> RwLockReadGuard<'_, RunSettings> {
        self.run.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sharing policy of the current strategy.
    pub(crate) fn sharing_policy(&self) -> SharingPolicy {
        sharing_policy(self.run().strategy)
    }

    /// Returns true if every client has its own instance even if the server is modern: a process may keep state that
    /// the revision does not know. Without a session, requests to a URL have no instance.
    pub(crate) fn keeps_apart(&self) -> bool {
        let run = self.run();
        let is_exclusive = sharing_policy(run.strategy) == SharingPolicy::Exclusive;
        is_exclusive && !run.spreads && !matches!(self.target, Target::Url { .. })
    }

    /// Checks the approval of the server. A missing approval may be granted at any time, so it is no failure of the
    /// server. Returns the check of a start.
    pub(crate) async fn check_approved(&self) -> Result<Option<StartCheck>, UpstreamErrorKind> {
        let Some(approval) = &self.approval else {
            return Ok(None);
        };
        let checked = check(approval).await;
        checked.inspect_err(|error| self.supervisor.start_not_allowed(error))
    }

    /// Replaces the settings for instances.
    pub(crate) fn update_settings(&self, run: &RunSettings) {
        run.clone_into(&mut self.run.write().unwrap_or_else(PoisonError::into_inner));
        self.supervisor.update_settings(run);
    }
}

/// Slot for one connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) shared: Arc<ServerShared>,
    offer: Offer,
    sharing: InstanceSharing,
    current: Mutex<Option<Arc<UpstreamConnection>>>,
    subscribers: Arc<Subscribers>,
    /// Permit for the one call that may cause questions.
    permit: Mutex<PermitState>,
    /// Held while connecting. Holds the failure of the last attempt, which callers that waited for it share.
    opening: Arc<AsyncMutex<Option<Arc<UpstreamErrorKind>>>>,
    /// Number of attempts to connect.
    attempts: AtomicU64,
    /// Cause of the loss of the client's state, until it is reported.
    unreported_loss: Mutex<Option<FailureText>>,
    /// Changes of the lists of an instance that one client uses.
    pub(crate) own_changes: Arc<OwnListChanges>,
}

impl ConnectionSlot {
    pub(crate) fn new(
        shared: Arc<ServerShared>,
        offer: Offer,
        sharing: InstanceSharing,
        subscribers: Subscribers,
    ) -> Self {
        Self {
            shared,
            offer,
            sharing,
            own_changes: Arc::default(),
            current: Mutex::default(),
            subscribers: Arc::new(subscribers),
            permit: Mutex::new(PermitState::Free),
            opening: Arc::default(),
            attempts: AtomicU64::new(0),
            unreported_loss: Mutex::default(),
        }
    }

    /// Creates another slot for the same clients.
    pub(crate) fn another(&self) -> Arc<Self> {
        let (shared, offer) = (Arc::clone(&self.shared), self.offer.clone());
        let slot = Self::new(
            shared,
            offer,
            InstanceSharing::Shared,
            Subscribers::of_many(),
        );
        Arc::new(Self {
            own_changes: Arc::clone(&self.own_changes),
            ..slot
        })
    }

    pub(crate) fn current(&self) -> MutexGuard<'_, Option<Arc<UpstreamConnection>>> {
        lock(&self.current)
    }

    pub(crate) fn live(&self) -> Option<Arc<UpstreamConnection>> {
        let connection = self.current().clone();
        connection.filter(|connection| connection.is_open())
    }

    /// Returns the open connection if this user may use it.
    pub(crate) fn live_for(&self, user: &ConnectionUser) -> Option<Arc<UpstreamConnection>> {
        self.live()
            .filter(|connection| connection.ownership.admits(user))
    }

    /// Releases the connection of another client. Calls in flight keep it open.
    pub(crate) fn release_foreign(&self, user: &ConnectionUser) {
        let mut current = self.current();
        let foreign = current.take_if(|connection| !connection.ownership.admits(user));
        // The lock is released before the connection is dropped.
        drop(current);
        drop(foreign);
    }

    /// Returns true if another connection has replaced this one.
    pub(crate) fn has_replaced(&self, before: &Arc<UpstreamConnection>) -> bool {
        let current = self.current();
        current
            .as_ref()
            .is_some_and(|connection| !Arc::ptr_eq(connection, before))
    }

    /// Returns the cause of the loss of the client's state, unless it was reported before.
    pub(crate) fn report_loss(&self) -> Option<FailureText> {
        if !self.is_own() {
            return None;
        }
        let current = self.current().clone();
        let connection = current.filter(|connection| !connection.is_open());
        let before = lock(&self.unreported_loss).take();
        before.or_else(|| self.report_loss_of(&*connection?))
    }

    /// Returns true if the server may hold state of one client on this connection.
    pub(crate) fn has_state_on(&self, connection: &UpstreamConnection) -> bool {
        self.is_own()
            && self.sharing_at(connection.era()) == InstanceSharing::Exclusive
            && connection.stateful_use.is_any()
    }

    /// Returns the cause of the loss of the client's state on a connection, unless it was reported before.
    pub(crate) fn report_loss_of(&self, connection: &UpstreamConnection) -> Option<FailureText> {
        let why = self
            .has_state_on(connection)
            .then(|| connection.unexpected_end())??;
        connection.stateful_use.report().then_some(why)
    }

    /// Returns true if all calls of one client use this slot, and no others.
    pub(crate) fn is_own(&self) -> bool {
        self.sharing == InstanceSharing::Exclusive && !self.shared.run().spreads
    }

    /// Returns the sharing of an instance of this era.
    fn sharing_at(&self, era: Era) -> InstanceSharing {
        match era {
            Era::Modern if !self.shared.keeps_apart() => InstanceSharing::Shared,
            Era::Modern | Era::Legacy => self.sharing,
        }
    }

    /// Returns the receivers of messages that belong to no call.
    pub(crate) const fn subscribers(&self) -> &Arc<Subscribers> {
        &self.subscribers
    }

    /// Returns the facts for a decision about a lease of this user, and the open connection.
    pub(crate) fn view(
        &self,
        user: &ConnectionUser,
    ) -> (SlotFacts, Option<Arc<UpstreamConnection>>) {
        let live = self.live();
        let open = live
            .as_ref()
            .map(|connection| (connection.running.id, connection.ownership.relation(user)));
        let is_other = open.is_some_and(|(_, relation)| !relation.is_admitted());
        let facts = SlotFacts {
            open,
            has_tasks: is_other && live.as_ref().is_some_and(|live| live.tasks.are_running()),
            permit: *lock(&self.permit),
        };
        (facts, live)
    }

    /// Takes the permit for a call that may cause questions, if it is free.
    pub(crate) fn take_permit(&self) -> bool {
        let mut permit = lock(&self.permit);
        let is_free = *permit == PermitState::Free;
        if is_free {
            *permit = PermitState::Taken;
        }
        is_free
    }

    /// Sets the state of the permit and notifies the calls that wait for it.
    pub(crate) fn set_permit(&self, state: PermitState) {
        *lock(&self.permit) = state;
        self.shared.supervisor.call_ended();
    }

    /// Leases the connection of this slot for a call.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        user: &ConnectionUser,
    ) -> Result<Lease, UpstreamError> {
        let view = || {
            let (slot, connection) = self.view(user);
            let facts = PoolFacts {
                slots: Few::from_iter([slot]),
                sharing: self.sharing,
                max_slots: 1,
            };
            (facts, Few::from_iter([connection]))
        };
        let slot = |_| Arc::clone(self);
        lease(&self.shared, Purpose::Home, user, view, slot).await
    }

    pub(crate) fn strategy(&self) -> Strategy {
        self.shared.run().strategy
    }

    /// Returns the connection, opened for this cause if there is none that the user may use. The gateway may use that of
    /// any client.
    pub(crate) async fn connection_for(
        self: &Arc<Self>,
        user: &ConnectionUser,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        if let Some(connection) = self.live_for(user) {
            return Ok(connection);
        }
        let attempts = self.attempts.load(Ordering::SeqCst);
        let opening = Arc::clone(&self.opening).lock_owned();
        let queued = self.shared.supervisor.wait_in_queue(opening);
        let last_failure = queued.await.map_err(|kind| self.error(kind))?;
        if let Some(connection) = self.live_for(user) {
            return Ok(connection);
        }
        if self.attempts.load(Ordering::SeqCst) > attempts
            && let Some(same) = &*last_failure
        {
            let same = UpstreamErrorKind::Shared(Arc::clone(same));
            return Err(self.shared.error(same));
        }
        // The first caller may leave while others wait for the same start.
        let opening = tokio::spawn(Arc::clone(self).open(cause, last_failure));
        let opened = match opening.await {
            Ok(opened) => opened.map_err(UpstreamErrorKind::Shared),
            Err(_) => Err(UpstreamErrorKind::Retired),
        };
        // The attempt has logged its failure.
        opened.map_err(|kind| self.shared.error(kind))
    }

    async fn open(
        self: Arc<Self>,
        cause: StartCause,
        mut last_failure: OwnedMutexGuard<Option<Arc<UpstreamErrorKind>>>,
    ) -> Result<Arc<UpstreamConnection>, Arc<UpstreamErrorKind>> {
        let before = self.current().take();
        if let Some(why) = before
            .as_deref()
            .and_then(|connection| self.report_loss_of(connection))
        {
            *lock(&self.unreported_loss) = Some(why);
        }
        drop(before);
        let was_asleep = !self.shared.supervisor.has_open_instance();
        let opened = self.start(cause).await.map_err(Arc::new);
        last_failure.clone_from(&opened.as_ref().err().cloned());
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let connection = opened?;
        *self.current() = Some(Arc::clone(&connection));
        self.shared.info_cache.update(&connection);
        if self.shared.info_cache.has_listener() {
            crate::lists::watch::watch(&connection, &self.shared);
        }
        self.shared.info_cache.connected();
        if was_asleep {
            self.shared.info_cache.notify_started();
        }
        let restoring = self.subscribers.move_to(&connection);
        if tokio::time::timeout(RESTORE_TIMEOUT, restoring)
            .await
            .is_err()
        {
            tracing::warn!("restoring the state of a lost session takes long");
        }
        Ok(connection)
    }

    async fn start(
        self: &Arc<Self>,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamErrorKind> {
        let refused = |kind: &UpstreamErrorKind| {
            // An attempt to recover is repeated until it succeeds.
            if cause != StartCause::Recovery {
                self.log_unavailable(kind);
            }
        };
        let start_check = self.shared.check_approved().await.inspect_err(refused)?;
        let supervisor = &self.shared.supervisor;
        let admitted = supervisor.admit(self.sharing, cause).await;
        let start = admitted.inspect_err(refused)?;
        let limit = self.shared.run().start_timeout;
        let connected = tokio::select! {
            connected = tokio::time::timeout(limit, self.negotiate(&start.guard, start_check)) => {
                connected.unwrap_or(Err(UpstreamErrorKind::StartTimeout { limit }))
            }
            // No client waits for it.
            () = supervisor.closed() => return Err(UpstreamErrorKind::Retired),
        };
        let connected = match connected {
            Ok(connected) => connected,
            Err(error) => {
                start.failed(&error);
                return Err(error);
            }
        };
        let revision = connected.connection.revision();
        let running = start.ready(revision, self.sharing_at(revision.era()));
        let declared = match self.sharing {
            InstanceSharing::Exclusive | InstanceSharing::Shared => {
                self.offer.capabilities.declared()
            }
            InstanceSharing::Internal => CapabilitySet::empty(Side::Client).declared(),
        };
        let connection = Arc::new(UpstreamConnection::new(
            connected.connection,
            declared,
            &self.shared,
            Arc::clone(&self.subscribers),
            running,
        ));
        let managed = Arc::downgrade(&connection) as Weak<dyn ManagedConnection>;
        connection.running.attach(managed);
        connection.serve_unsolicited(connected.unsolicited, Arc::downgrade(self));
        Ok(connection)
    }

    /// Replaces a lost connection if a client listens, with a limited number of attempts.
    pub(crate) async fn reconnect_for_listeners(self: &Arc<Self>) {
        self.subscribers.listens.session_lost();
        // Another process may have other tools.
        self.shared.tool_tasks.forget();
        let mut failures = 0;
        while self.subscribers.are_listening() {
            let (user, cause) = (&ConnectionUser::Gateway, StartCause::Listener);
            let Err(error) = self.connection_for(user, cause).await else {
                return;
            };
            match error.kind.next_start() {
                Some(wait) => tokio::time::sleep(wait).await,
                None if failures < MAX_RECONNECTS => failures += 1,
                None => return self.subscribers.listens.end(),
            }
        }
    }

    /// Notifies of a changed list: the owner if the lists of the instance may differ per client, otherwise all clients.
    pub(crate) fn notify_list_change(&self, method: Method, era: Era) {
        let info_cache = &self.shared.info_cache;
        match change_audience(self.shared.sharing_policy(), era, self.sharing) {
            Audience::All => info_cache.notify(method),
            Audience::Owner => {
                self.own_changes.note(method);
                info_cache.notify_owner(self.own_changes.number(), method);
            }
        }
    }

    /// Returns true if requests to the server have credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        self.shared.target.has_credentials()
    }

    /// Returns an error of this server, and logs it.
    pub(crate) fn error(&self, kind: UpstreamErrorKind) -> UpstreamError {
        self.log_unavailable(&kind);
        self.shared.error(kind)
    }

    fn log_unavailable(&self, kind: &UpstreamErrorKind) {
        let masks = &self.shared.masks;
        tracing::warn!(
            event = event::ROUTE_ERROR,
            server = %self.shared.name,
            state = self.shared.supervisor.status().state.as_str(),
            error = %kind.text(masks),
            advice = kind.advised(masks),
            "server unavailable"
        );
    }

    async fn negotiate(
        &self,
        guard: &InstanceGuard,
        start_check: Option<StartCheck>,
    ) -> Result<Connected, UpstreamErrorKind> {
        let key = self.shared.target.key();
        let (prior, mut lookup) = self.shared.verdicts.lookup(&key).await;
        let offer = Offer {
            capabilities: self
                .shared
                .default_answers
                .added_to(&self.offer.capabilities),
            mode: self.shared.mode,
            require: self.shared.require.clone(),
            prior,
            ..self.offer.clone()
        };
        let target = &self.shared.target.with_start_check(start_check.clone());
        let mut connected = connect(target, &offer, guard).await;
        if prior.is_some()
            && let Err(error) = &connected
            && error.is_negotiation_failure()
        {
            // The cached verdict may be wrong.
            lookup.forget();
            let offer = Offer {
                prior: None,
                ..offer
            };
            connected = connect(target, &offer, guard).await;
        }
        let connected = connected?;
        check_started(start_check, &self.shared.name).await?;
        if let Some(verdict) = connected.verdict {
            lookup.learn(verdict);
        }
        Ok(connected)
    }
}
