//! A way to the server that outlives its connections.

use crate::sync::lock;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use mcpact::client::EraCache;
use mcpact::log::event;
use mcpact_config::{Approval, RunSettings, Strategy};
use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::client::EraMode;
use mcpact_spec::{Era, Method, Side};
use mcpact_translate::input::DefaultAnswers;
use mcpact_transport::stdio::child::Masks;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};

use crate::approval::check;
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
use crate::tasks::tool_support::ToolTasks;
use crate::upstream::info::ServerInfoCache;
use mcpact::connection::FailureText;
use mcpact::connection::{Connected, Offer, ToolHeaders};

/// How long a new session may take to get to where the lost one was.
const CATCH_UP: Duration = Duration::from_secs(10);

/// How often in a row a connection is tried for those who listen.
pub(crate) const TRIES: u32 = 12;

/// What all ways to the server share.
#[derive(Debug)]
pub(crate) struct ServerShared {
    /// What the log calls the server.
    pub(crate) name: Arc<str>,
    /// What clients are told that it is called.
    pub(crate) title: String,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) target: Target,
    /// What the server was given and nobody else is told.
    pub(crate) masks: Masks,
    pub(crate) mode: EraMode,
    /// Capabilities without which the server is not used.
    pub(crate) require: Vec<Cow<'static, str>>,
    /// ClientRef answers for clients that cannot be asked.
    pub(crate) default_answers: DefaultAnswers,
    /// What must be approved before the server is started.
    pub(crate) approval: Option<Approval>,
    /// What the server's tools were.
    pub(crate) pins: Arc<Pins>,
    pub(crate) verdicts: EraCache,
    pub(crate) book: Arc<ToolHeaders>,
    pub(crate) info_cache: ServerInfoCache,
    pub(crate) tool_tasks: Arc<ToolTasks>,
    pub(crate) mapping: Arc<Mapping>,
    pub(crate) run: RwLock<RunSettings>,
    /// ClientRef starts, limits and stops connections.
    pub(crate) supervisor: Arc<Supervisor>,
}

impl ServerShared {
    /// Something that went wrong with this server.
    pub(crate) fn error(&self, kind: UpstreamErrorKind) -> UpstreamError {
        UpstreamError {
            target: self.title.clone(),
            kind,
            masks: self.masks.clone(),
        }
    }

    /// How connections are kept.
    pub(crate) fn run(&self) -> RwLockReadGuard<'_, RunSettings> {
        self.run.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a client has an instance for itself whatever the server speaks: a program may keep something
    /// between requests that its revision knows nothing of. At an address, only a session leads to the same instance.
    pub(crate) fn keeps_apart(&self) -> bool {
        let run = self.run();
        let is_wanted = sharing_policy(run.strategy) == SharingPolicy::Exclusive && !run.spreads;
        is_wanted && !matches!(self.target, Target::Url { .. })
    }

    /// Whether it may be started. Whoever was refused can be let in at any time, so that is no failure of the
    /// server.
    pub(crate) async fn check_approved(&self) -> Result<(), UpstreamErrorKind> {
        let Some(approval) = &self.approval else {
            return Ok(());
        };
        let checked = check(approval).await;
        if let Err(trouble) = &checked {
            self.supervisor.start_not_allowed(trouble);
        }
        checked
    }

    /// Keeps connections in another way from here on.
    pub(crate) fn retune(&self, run: &RunSettings) {
        run.clone_into(&mut self.run.write().unwrap_or_else(PoisonError::into_inner));
        self.supervisor.update_settings(run);
    }
}

/// Connects when somebody needs it, and again when the connection was lost.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    shared: Arc<ServerShared>,
    offer: Offer,
    sharing: InstanceSharing,
    current: Mutex<Option<Arc<UpstreamConnection>>>,
    subscribers: Arc<Subscribers>,
    /// Permit for the one call that may cause questions.
    permit: Mutex<PermitState>,
    /// Whoever holds it connects; the others wait for the outcome, which is here if it is a failure.
    opening: Arc<AsyncMutex<Option<Arc<UpstreamErrorKind>>>>,
    /// How many times it was tried.
    tries: AtomicU64,
    /// Why what its client had is lost, until that is told.
    lost: Mutex<Option<FailureText>>,
    /// What the server says of its lists to whoever has it for itself.
    own_changes: Arc<OwnListChanges>,
}

impl ConnectionSlot {
    pub(crate) fn new(
        shared: Arc<ServerShared>,
        offer: Offer,
        sharing: InstanceSharing,
        subscribers: Subscribers,
    ) -> Arc<Self> {
        Self::with(shared, offer, sharing, subscribers, Arc::default())
    }

    fn with(
        shared: Arc<ServerShared>,
        offer: Offer,
        sharing: InstanceSharing,
        subscribers: Subscribers,
        own_changes: Arc<OwnListChanges>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            offer,
            sharing,
            own_changes,
            current: Mutex::default(),
            subscribers: Arc::new(subscribers),
            permit: Mutex::new(PermitState::Free),
            opening: Arc::default(),
            tries: AtomicU64::new(0),
            lost: Mutex::default(),
        })
    }

    /// Another way to the same server as the same, for whoever comes.
    pub(crate) fn alike(&self) -> Arc<Self> {
        let (shared, offer) = (Arc::clone(&self.shared), self.offer.clone());
        let own_changes = Arc::clone(&self.own_changes);
        let (sharing, subscribers) = (InstanceSharing::Shared, Subscribers::of_many());
        Self::with(shared, offer, sharing, subscribers, own_changes)
    }

    pub(crate) fn current(&self) -> MutexGuard<'_, Option<Arc<UpstreamConnection>>> {
        lock(&self.current)
    }

    pub(crate) fn live(&self) -> Option<Arc<UpstreamConnection>> {
        let connection = self.current().clone();
        connection.filter(|connection| connection.is_open())
    }

    /// Whether another connection has taken the place of this one.
    pub(crate) fn has_moved_on(&self, from: &Arc<UpstreamConnection>) -> bool {
        let current = self.current();
        current
            .as_ref()
            .is_some_and(|connection| !Arc::ptr_eq(connection, from))
    }

    fn untold(&self) -> MutexGuard<'_, Option<FailureText>> {
        lock(&self.lost)
    }

    /// Why what the client had is lost, if it is and nobody has told it.
    pub(crate) fn loss(&self) -> Option<FailureText> {
        if !self.is_own() {
            return None;
        }
        let connection = self
            .current()
            .clone()
            .filter(|connection| !connection.is_open());
        let before = self.untold().take();
        before.or_else(|| self.bereaved(&*connection?))
    }

    /// Whether all calls of one client go here, and no others.
    pub(crate) fn is_own(&self) -> bool {
        self.sharing == InstanceSharing::Exclusive && !self.shared.run().spreads
    }

    /// ClientRef may use an instance that speaks so.
    fn tenant_at(&self, era: Era) -> InstanceSharing {
        match era {
            Era::Modern if !self.shared.keeps_apart() => InstanceSharing::Shared,
            Era::Modern | Era::Legacy => self.sharing,
        }
    }

    /// Whether a server that speaks so may keep something of one client, whose calls all go here.
    pub(crate) fn keeps_at(&self, era: Era) -> bool {
        self.is_own() && self.tenant_at(era) == InstanceSharing::Exclusive
    }

    /// ClientRef hears what belongs to no call.
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
            .map(|connection| (connection.running.id(), connection.ownership.relation(user)));
        let is_other = open.is_some_and(|(_, relation)| !relation.is_admitted());
        let facts = SlotFacts {
            open,
            has_tasks: is_other && live.as_ref().is_some_and(|live| live.kept.are_running()),
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

    /// How the server is kept.
    pub(crate) fn strategy(&self) -> Strategy {
        self.shared.run().strategy
    }

    /// The connection, opened if there is none.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        user: &ConnectionUser,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        self.connection_for(user, StartCause::Request).await
    }

    /// As [`connection`](Self::connection), for another reason than somebody who calls.
    pub(crate) async fn connection_because(
        self: &Arc<Self>,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        self.connection_for(&ConnectionUser::Gateway, cause).await
    }

    async fn connection_for(
        self: &Arc<Self>,
        user: &ConnectionUser,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        if let Some(connection) = self.live_for(user) {
            return Ok(connection);
        }
        let tries = self.tries.load(Ordering::SeqCst);
        let line = Arc::clone(&self.opening);
        let in_line = self.shared.supervisor.wait_in_queue(line.lock_owned());
        let last = in_line.await.map_err(|kind| self.error_of(cause, kind))?;
        if let Some(connection) = self.live_for(user) {
            return Ok(connection);
        }
        if self.tries.load(Ordering::SeqCst) > tries
            && let Some(same) = &*last
        {
            return Err(self.error_of(cause, UpstreamErrorKind::Shared(Arc::clone(same))));
        }
        // Whoever asked first may go away while others wait for the same start.
        let opening = tokio::spawn(Arc::clone(self).open(cause, last));
        match opening.await {
            Ok(opened) => {
                opened.map_err(|same| self.error_of(cause, UpstreamErrorKind::Shared(same)))
            }
            Err(_) => Err(self.error_of(cause, UpstreamErrorKind::Retired)),
        }
    }

    async fn open(
        self: Arc<Self>,
        cause: StartCause,
        mut last: OwnedMutexGuard<Option<Arc<UpstreamErrorKind>>>,
    ) -> Result<Arc<UpstreamConnection>, Arc<UpstreamErrorKind>> {
        let before = self.current().take();
        if let Some(why) = before
            .as_deref()
            .and_then(|connection| self.bereaved(connection))
        {
            *self.untold() = Some(why);
        }
        drop(before);
        let was_asleep = !self.shared.supervisor.has_open_instance();
        let opened = self.start(cause).await.map_err(Arc::new);
        last.clone_from(&opened.as_ref().err().cloned());
        self.tries.fetch_add(1, Ordering::SeqCst);
        let connection = opened?;
        *self.current() = Some(Arc::clone(&connection));
        self.shared.info_cache.meet(&connection);
        if self.shared.info_cache.has_herald() {
            crate::lists::watch::watch(&connection, &self.shared);
        }
        self.shared.info_cache.connected();
        if was_asleep {
            self.shared.info_cache.wake();
        }
        let moving = self.subscribers.move_to(&connection);
        if tokio::time::timeout(CATCH_UP, moving).await.is_err() {
            tracing::warn!("a new session takes long to get to where the lost one was");
        }
        Ok(connection)
    }

    async fn start(
        self: &Arc<Self>,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamErrorKind> {
        self.shared.check_approved().await?;
        let supervisor = &self.shared.supervisor;
        let start = supervisor.admit(self.sharing, cause).await?;
        let limit = self.shared.run().start_timeout;
        let profile = tokio::select! {
            profile = tokio::time::timeout(limit, self.meet(start.guard())) => {
                profile.unwrap_or(Err(UpstreamErrorKind::StartTimeout { limit }))
            }
            // Nobody waits for it any more.
            () = supervisor.closed() => return Err(UpstreamErrorKind::Retired),
        };
        let profile = match profile {
            Ok(profile) => profile,
            Err(trouble) => {
                start.failed(&trouble);
                return Err(trouble);
            }
        };
        let revision = profile.connection.revision();
        let running = start.ready(revision, self.tenant_at(revision.era()));
        let subscribers = Arc::clone(&self.subscribers);
        let connection = Arc::new(UpstreamConnection::new(
            profile,
            self.askable(),
            &self.shared,
            subscribers,
            running,
        ));
        let managed: Weak<dyn ManagedConnection> =
            Arc::downgrade(&connection) as Weak<dyn ManagedConnection>;
        connection.running.attach(managed);
        connection.serve_unsolicited(Arc::downgrade(self));
        Ok(connection)
    }

    /// What those can be asked who use the connection.
    fn askable(&self) -> CapabilityBits {
        match self.sharing {
            InstanceSharing::Exclusive | InstanceSharing::Shared => {
                self.offer.capabilities.declared()
            }
            InstanceSharing::Internal => CapabilitySet::empty(Side::Client).declared(),
        }
    }

    /// The connection is lost. If somebody listens it is replaced, ever more slowly and not for ever.
    pub(crate) async fn lost(self: &Arc<Self>) {
        self.subscribers.listens.lost();
        // Another process may have other tools.
        self.shared.tool_tasks.forget();
        let mut failures = 0;
        while self.subscribers.is_waiting() {
            let Err(error) = self.connection_because(StartCause::Listener).await else {
                return;
            };
            match error.kind.next_start() {
                Some(wait) => tokio::time::sleep(wait).await,
                None if failures < TRIES => failures += 1,
                None => return self.subscribers.listens.end(),
            }
        }
    }

    /// Tells whoever wants to know that something has changed: what an instance says that clients are told apart by is
    /// for those who have it.
    pub(crate) fn tell(&self, method: Method, era: Era) {
        let info_cache = &self.shared.info_cache;
        match change_audience(sharing_policy(self.strategy()), era, self.sharing) {
            Audience::All => info_cache.tell(method),
            Audience::Owner => {
                self.own_changes.note(method);
                info_cache.tell_owner(self.own_changes.number(), method);
            }
        }
    }

    /// What the server says of its lists to whoever has it for itself.
    pub(crate) const fn own_changes(&self) -> &Arc<OwnListChanges> {
        &self.own_changes
    }

    /// ListChanges whenever there is another connection to the server.
    pub(crate) fn connections(&self) -> watch::Receiver<u64> {
        self.shared.info_cache.connections()
    }

    /// Whether the server is told who asks.
    pub(crate) fn has_credentials(&self) -> bool {
        self.shared.target.has_credentials()
    }

    /// A call that was lost.
    pub(crate) fn lost_call(&self, kind: UpstreamErrorKind) -> UpstreamError {
        self.shared.error(kind)
    }

    /// What went wrong with a start; whoever has not asked for it is not told more than the supervisor tells.
    fn error_of(&self, cause: StartCause, kind: UpstreamErrorKind) -> UpstreamError {
        match cause {
            StartCause::Recovery => self.shared.error(kind),
            StartCause::Request
            | StartCause::Introduction
            | StartCause::MinReady
            | StartCause::Persistent
            | StartCause::Listener => self.error(kind),
        }
    }

    pub(crate) fn error(&self, kind: UpstreamErrorKind) -> UpstreamError {
        let error = self.shared.error(kind);
        tracing::warn!(
            event = event::ROUTE_ERROR,
            server = %self.shared.name,
            state = self.shared.supervisor.status().state.as_str(),
            error = %error.kind.text(&error.masks),
            advice = error.kind.advised(&error.masks),
            "the server cannot be used"
        );
        error
    }

    async fn meet(&self, guard: &InstanceGuard) -> Result<Connected, UpstreamErrorKind> {
        let key = self.shared.target.key();
        let (prior, mut asking) = self.shared.verdicts.lookup(&key).await;
        let offer = Offer {
            // Nothing is promised without somebody who keeps it.
            capabilities: self
                .shared
                .default_answers
                .added_to(&self.offer.capabilities),
            mode: self.shared.mode,
            require: self.shared.require.clone(),
            prior,
            ..self.offer.clone()
        };
        let target = &self.shared.target;
        let mut profile = connect(target, &offer, guard).await;
        if prior.is_some()
            && profile
                .as_ref()
                .is_err_and(UpstreamErrorKind::is_negotiation_failure)
        {
            // What was believed about the server may be what is wrong.
            asking.forget();
            let offer = Offer {
                prior: None,
                ..offer
            };
            profile = connect(target, &offer, guard).await;
        }
        let profile = profile?;
        if let Some(verdict) = profile.verdict {
            asking.learn(verdict);
        }
        Ok(profile)
    }
}
