//! One server for any client.

pub(crate) mod accept;
pub(crate) mod affinity;
pub(crate) mod binding;
pub(crate) mod info;
pub(crate) mod pending;
pub(crate) mod rebind;
pub(crate) mod tool_filter;

use crate::sync::lock;
use crate::tasks::hosted;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use mcpact::client::EraCache;
use mcpact::server::backend::{HttpListener, Sealer, SessionEnd, serve_link};
use mcpact::server::{SealKeys, Settings};
use mcpact_config::{
    Approval, ChangedTools, Health, Probe, Restarts, RunSettings, ServerConfig, Strategy,
    ToolFilter,
};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::EraMode;
use mcpact_engine::server::ServerTerms;
use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Side};
use mcpact_translate::input::{Backoff, DefaultAnswers, RoundLimits, SuspendLimits};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::Masks;
use mcpact_wire::model::implementation::Implementation;
use tokio::time::Instant;

use crate::connection::pool::ConnectionPool;
use crate::connection::slot::ServerShared;
use crate::drain::DrainGate;
use crate::event_history::ServerLog;
use crate::filters::Filters;
use crate::handover::HandoverLinks;
use crate::loop_detection::Route;
use crate::metrics::ServerMetrics;
use crate::pins::{PinSettings, Pins};
use crate::subscriptions::direct_clients::DirectClients;
use crate::supervisor::{
    ServerFailure, ServerStatus, ShutdownMode, Starter, Supervisor, min_instances,
};
use crate::suspended::modern::ModernQuestions;
use crate::suspended::registry::SuspendedRegistry;
use crate::target::Target;
use crate::tasks::hosted::Hosting;
use crate::tasks::mapped::Mapping;
use crate::tasks::tool_support::ToolTasks;
use crate::upstream::affinity::AffinityGroups;
use crate::upstream::info::ServerInfoCache;
use mcpact::connection::ToolHeaders;

/// What can be set about a server.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// What the log calls the server, if that is not how it is reached.
    pub name: Option<String>,
    /// How its fronts are set.
    pub front: Settings,
    /// Which eras are tried with the server.
    pub mode: EraMode,
    /// What was learned about servers earlier.
    pub verdicts: EraCache,
    /// How far a modern server may go before it answers a legacy client.
    pub rounds: RoundLimits,
    /// How many calls of modern clients may wait for input, and how long.
    pub suspend_limits: SuspendLimits,
    /// How its connections to the server are kept.
    pub run: RunSettings,
    /// Where it counts.
    pub metrics: Arc<ServerMetrics>,
    /// Where it is written down what becomes of them.
    pub server_log: ServerLog,
    /// What the server was given and nobody else is told, even if the server repeats it.
    pub masks: Masks,
    /// Where its requests are counted.
    pub drain_gate: DrainGate,
    /// Capabilities without which the server is not used.
    pub require: Vec<String>,
    /// What a server that serves everybody by one connection is told that clients can.
    pub declare: CapabilitySet,
    /// ClientRef answers for clients that cannot be asked.
    pub default_answers: DefaultAnswers,
    /// What must be approved before the server is started.
    pub approval: Option<Approval>,
    /// How the server's tools are remembered.
    pub pins: PinSettings,
    /// Whether caches may keep for everybody what the server calls public.
    pub public_results: bool,
    /// What looks at its requests and results.
    pub filters: Filters,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            name: None,
            front: Settings::default(),
            mode: EraMode::Auto,
            verdicts: EraCache::new(),
            rounds: RoundLimits::default(),
            suspend_limits: SuspendLimits::default(),
            run: run_settings(),
            metrics: Arc::default(),
            server_log: ServerLog::default(),
            masks: Masks::default(),
            drain_gate: DrainGate::default(),
            require: Vec::new(),
            declare: CapabilitySet::empty(Side::Client),
            default_answers: DefaultAnswers::default(),
            approval: None,
            // Whoever names a server on the command line looks at it anew.
            pins: PinSettings {
                changed: ChangedTools::Serve,
                file: None,
            },
            public_results: false,
            filters: Filters::default(),
        }
    }
}

/// A server serves one server to few clients: each has an instance of its own for as long as it stays, and
/// limits are out of the way.
pub(crate) fn run_settings() -> RunSettings {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    RunSettings {
        strategy: Strategy::Stateful,
        session: DAY,
        max_concurrent: 10_000,
        max_instances: 1_000,
        queue: 10_000,
        recovers: false,
        spreads: true,
        health: Health {
            probe: Probe::Off,
            interval: DAY,
            failures: 1,
        },
        restarts: Restarts {
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            failures: 10,
            window: Duration::from_secs(120),
            suspend: Duration::from_secs(10),
        },
        ..RunSettings::default()
    }
}

/// Stands between clients of any revision and one server of any revision.
#[derive(Debug)]
pub struct UpstreamServer {
    pub(crate) settings: UpstreamSettings,
    /// The terms for whoever has not said anything yet.
    pub(crate) terms: Arc<ServerTerms>,
    pub(crate) shared: Arc<ServerShared>,
    /// The ways to a modern server, which everybody shares.
    pub(crate) modern: RwLock<Option<Arc<ConnectionPool>>>,
    pub(crate) guests: Mutex<AffinityGroups>,
    pub(crate) suspended: Arc<SuspendedRegistry>,
    /// What a modern server has asked.
    pub(crate) questions: Arc<ModernQuestions>,
    /// Made when it is first needed, unless it comes from the server before this one.
    pub(crate) hosted: OnceLock<Arc<Hosting>>,
    pub(crate) clock: Clock,
    /// Which tools of the server are served.
    pub(crate) tools: Mutex<Arc<ToolFilter>>,
    /// Whether caches may keep for everybody what the server calls public.
    pub(crate) is_public: AtomicBool,
    /// Clients at the server's own address, notified when the served tools change.
    pub(crate) direct_clients: DirectClients,
    /// Route for loop detection, if the server is reached over HTTP.
    pub(crate) route: Option<Arc<Route>>,
    /// Number that no earlier server of the same name had.
    pub(crate) number: u64,
    /// The server that replaced this one after a reload, and the one it replaced.
    pub(crate) succession: HandoverLinks,
}

/// Source of the numbers that distinguish servers of one name.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Clock that starts with the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) zero: Instant,
}

impl Clock {
    pub(crate) fn now(self) -> Moment {
        Moment::at(self.zero.elapsed())
    }
}

impl UpstreamServer {
    /// Replaces the filter for tools, and notifies clients at the server's own address.
    pub fn serve_tools(&self, tools: ToolFilter) {
        let mut served = lock(&self.tools);
        let is_other = **served != tools;
        *served = Arc::new(tools);
        drop(served);
        if is_other {
            self.direct_clients.tell(Method::ToolsListChanged);
        }
    }

    /// A server to a server, which is reached or started when the first client comes.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn new(
        target: Target,
        settings: UpstreamSettings,
    ) -> Result<Arc<Self>, mcpact::error::Error> {
        Self::by(None, target, settings)
    }

    /// The same with a route for loop detection.
    pub(crate) fn by(
        route: Option<Arc<Route>>,
        target: Target,
        settings: UpstreamSettings,
    ) -> Result<Arc<Self>, mcpact::error::Error> {
        let info = Implementation::new("mcpact", env!("CARGO_PKG_VERSION"));
        let nothing = CapabilitySet::empty(Side::Server);
        let terms = ServerTerms::new(info.clone(), nothing, settings.front.policy.clone());
        let clock = Clock {
            zero: Instant::now(),
        };
        let title = target.display_name(settings.name.as_deref());
        let name = settings.name.clone();
        let name: Arc<str> = name.unwrap_or_else(|| target.to_string()).into();
        let metrics = Arc::clone(&settings.metrics);
        let pins = Pins::new(name.to_string(), settings.pins.clone());
        let supervisor = Supervisor::new(
            Arc::clone(&name),
            settings.run.clone(),
            Arc::clone(&metrics),
            settings.server_log.clone(),
            settings.masks.clone(),
        );
        let shared = Arc::new(ServerShared {
            name,
            title,
            metrics,
            supervisor,
            run: RwLock::new(settings.run.clone()),
            target,
            masks: settings.masks.clone(),
            mode: settings.mode,
            require: settings.require.iter().cloned().map(Cow::Owned).collect(),
            default_answers: settings.default_answers.clone(),
            approval: settings.approval.clone(),
            pins: Arc::new(pins),
            verdicts: settings.verdicts.clone(),
            book: Arc::new(ToolHeaders::default()),
            info_cache: ServerInfoCache::default(),
            tool_tasks: Arc::new(ToolTasks::default()),
            mapping: Arc::new(Mapping::new(clock)),
        });
        let keys = match &settings.front.seal_keys {
            Some(keys) => keys.clone(),
            None => SealKeys::random()?,
        };
        crate::tasks::watch(&shared.mapping);
        let suspended = Arc::new(SuspendedRegistry::new(
            settings.suspend_limits,
            clock,
            Sealer::new(&keys),
        ));
        suspended.watch();
        let server = Arc::new(Self {
            terms: Arc::new(terms),
            shared,
            modern: RwLock::default(),
            guests: Mutex::default(),
            suspended,
            questions: Arc::new(ModernQuestions::new(settings.suspend_limits)),
            hosted: OnceLock::new(),
            is_public: AtomicBool::new(settings.public_results),
            settings,
            clock,
            tools: Mutex::default(),
            direct_clients: DirectClients::default(),
            route,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            succession: HandoverLinks::default(),
        });
        let starter: Weak<dyn Starter> = Arc::downgrade(&server) as Weak<dyn Starter>;
        server.shared.supervisor.set_starter(starter);
        pending::introduce_latecomers(&server);
        Ok(server)
    }

    /// Tells it from one to a server that had the same name before.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Route for loop detection, if the server is reached over HTTP.
    pub(crate) const fn route(&self) -> Option<&Arc<Route>> {
        self.route.as_ref()
    }

    pub(crate) fn guests(&self) -> MutexGuard<'_, AffinityGroups> {
        lock(&self.guests)
    }

    /// The ways to a modern server that everybody shares, where everybody does.
    pub(crate) fn modern(&self) -> Option<Arc<ConnectionPool>> {
        if self.shared.keeps_apart() {
            return None;
        }
        let modern = self.modern.read().unwrap_or_else(PoisonError::into_inner);
        modern.clone()
    }

    /// Serves one client on a carrier of lines, until it goes away.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve(self: Arc<Self>, link: Link) -> Result<(), mcpact::error::Error> {
        let ending = SessionEnd::after(self.settings.front.limits.drain);
        self.serve_until(link, ending).await
    }

    /// As [`serve`](Self::serve), with an ending of its own.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve_until(
        self: Arc<Self>,
        link: Link,
        ending: SessionEnd,
    ) -> Result<(), mcpact::error::Error> {
        serve_link(self, link, ending).await
    }

    /// Takes no more requests, gives up questions that nobody could come back to, and lets the requests that
    /// run finish for so long. Whether all of them have.
    pub async fn drain(&self, limit: Duration) -> bool {
        let drain_gate = &self.settings.drain_gate;
        let (abandon, turn_away) = (|| self.abandon(), || self.turn_away());
        drain_gate.drain(limit, abandon, turn_away).await
    }

    /// Refuses the calls that still wait for the server, which has not seen them; how many those are.
    pub(crate) fn turn_away(&self) -> usize {
        self.shared.supervisor.stop_admitting()
    }

    /// Gives up the calls whose clients were sent away to think.
    pub(crate) async fn abandon(&self) {
        self.suspended.abandon().await;
    }

    /// Ends the connections to the server, and waits a while for the programs behind them to go. Calls that
    /// run are given their time, unless they had it when requests were [drained](Self::drain).
    pub async fn close(self: Arc<Self>) {
        // Whoever waits for something has come in by the drain_gate.
        let shutdown_mode = match self.settings.drain_gate.is_closed() {
            true => ShutdownMode::Immediate,
            false => ShutdownMode::Graceful,
        };
        if shutdown_mode == ShutdownMode::Graceful {
            hosted::outlast_hosted(&self);
        }
        self.shared.supervisor.close(shutdown_mode).await;
        hosted::lose_hosted(&self);
    }

    /// How the server and its instances are.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        self.shared.supervisor.status()
    }

    /// What it leads to.
    pub(crate) fn target(&self) -> &Target {
        &self.shared.target
    }

    /// What keeps the server from being used, until a call or a check succeeds.
    pub(crate) fn outage(&self) -> Option<ServerFailure> {
        self.shared.supervisor.outage()
    }

    /// How often that has changed.
    pub(crate) fn turns(&self) -> u64 {
        self.shared.supervisor.outage_changes()
    }

    /// Where it counts.
    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.shared.metrics
    }

    /// How many instances must always be ready.
    pub(crate) fn min_instances(&self) -> usize {
        min_instances(&self.shared.run())
    }

    /// The pauses between tries of what did not succeed.
    pub(crate) fn pauses(&self) -> Backoff {
        let run = self.shared.run();
        Backoff {
            first: run.restarts.backoff,
            longest: run.restarts.backoff_max,
        }
    }

    /// How many calls of modern clients wait for their input.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.suspended.parked()
    }

    /// Keeps its connections and shows its results in another way from here on; what runs goes on.
    pub(crate) fn retune(&self, config: &ServerConfig) {
        self.shared.update_settings(&config.run);
        let is_public = config.public_results;
        self.is_public.store(is_public, Ordering::Relaxed);
        tool_filter::treat_changed(self, config.changed_tools);
    }

    /// What it says, for others than whoever has asked it: what it was given is covered.
    pub(crate) fn covered(&self, text: String) -> String {
        self.shared.masks.cover(text)
    }

    /// Somebody has to do without it who does not ask again.
    pub(crate) fn did_without(&self) {
        self.shared.supervisor.left_out();
    }

    /// Whether it failed, and is left alone for now.
    pub(crate) fn is_resting(&self) -> bool {
        self.status().state.wait().is_some()
    }

    /// Forgets what failed: a server that is suspended is tried again at the next call.
    pub fn forgive(&self) {
        self.shared.supervisor.reset_failures();
    }

    /// ListenStreams on HTTP; the server runs once [`HttpListener::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen(
        self: Arc<Self>,
        address: SocketAddr,
    ) -> Result<HttpListener<Self>, mcpact::error::Error> {
        HttpListener::bind(self, address).await
    }
}
