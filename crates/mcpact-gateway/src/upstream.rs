//! Upstream servers at run time.

pub(crate) mod accept;
pub(crate) mod affinity;
pub(crate) mod binding;
pub(crate) mod info;
pub(crate) mod rebind;
pub(crate) mod saved_client;
pub(crate) mod single_server;
pub(crate) mod tool_filter;

use crate::sync::lock;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
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
use crate::result_limit::KeptResults;
use crate::subscriptions::NotificationSinks;
use crate::supervisor::{ServerStatus, ShutdownMode, Starter, Supervisor, min_instances};
use crate::suspended::modern::ModernQuestions;
use crate::suspended::registry::SuspendedRegistry;
use crate::target::Target;
use crate::tasks::hosted::{self, Hosting};
use crate::tasks::mapped::Mapping;
use crate::tasks::waiting::ToolTasks;
use crate::upstream::affinity::AffinityGroups;
use crate::upstream::info::ServerInfoCache;
use mcpact::connection::ToolHeaders;

/// Settings of an upstream server.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Name in the log; by default the command or URL.
    pub name: Option<String>,
    /// Settings of the side that faces clients.
    pub front: Settings,
    /// Eras to try in the negotiation.
    pub mode: EraMode,
    /// Cached eras of servers.
    pub verdicts: EraCache,
    /// Limits of the input rounds of a modern server in a call of a legacy client.
    pub rounds: RoundLimits,
    /// Limits of suspended calls, which wait for input of modern clients.
    pub suspend_limits: SuspendLimits,
    /// Strategy, limits and timeouts of the server's instances.
    pub run: RunSettings,
    /// Metrics of the server.
    pub metrics: Arc<ServerMetrics>,
    /// History of events and output of the server.
    pub server_log: ServerLog,
    /// Secrets of the server, masked in all output.
    pub masks: Masks,
    /// Counts in-flight requests and refuses new ones at shutdown.
    pub drain_gate: DrainGate,
    /// Capabilities that the server must declare.
    pub require: Vec<String>,
    /// Declared client capabilities on a connection that all clients share.
    pub declare: CapabilitySet,
    /// Answers on behalf of clients that support no questions.
    pub default_answers: DefaultAnswers,
    /// Approval needed before the server is started.
    pub approval: Option<Approval>,
    /// Pins of the tool definitions.
    pub pins: PinSettings,
    /// True if results that the server marks as public may be cached for all clients.
    pub public_results: bool,
    /// Filters of requests and results.
    pub filters: Filters,
    /// Texts of cut results.
    pub kept_results: KeptResults,
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
            // A server on the command line is reviewed by its user each time.
            pins: PinSettings {
                default: ChangedTools::Serve,
                changed: None,
                file: None,
            },
            public_results: false,
            filters: Filters::default(),
            kept_results: KeptResults::default(),
        }
    }
}

/// Returns the settings for few clients: each has its own instance during its session, and limits are high.
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
            errors_fail: false,
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

/// Upstream server of any revision, for clients of any revision.
#[derive(Debug)]
pub struct UpstreamServer {
    pub(crate) settings: UpstreamSettings,
    /// Terms without a negotiated server.
    pub(crate) terms: Arc<ServerTerms>,
    pub(crate) shared: Arc<ServerShared>,
    /// Pool of a modern server, common to all clients.
    pub(crate) modern: Mutex<Option<Arc<ConnectionPool>>>,
    /// Pools of clients that share connections.
    pub(crate) groups: Mutex<AffinityGroups>,
    pub(crate) suspended: Arc<SuspendedRegistry>,
    /// Open questions of a modern server.
    pub(crate) questions: Arc<ModernQuestions>,
    /// Hosted tasks, created on demand or passed on by the predecessor.
    pub(crate) hosted: OnceLock<Arc<Hosting>>,
    pub(crate) clock: Clock,
    /// Filter for the served tools.
    pub(crate) tools: Mutex<Arc<ToolFilter>>,
    /// True if results that the server marks as public may be cached for all clients.
    pub(crate) is_public: AtomicBool,
    /// Clients at the server's own address, notified when the served tools change.
    pub(crate) direct_clients: NotificationSinks,
    /// Route for loop detection, if the server is reached over HTTP.
    pub(crate) route: Option<Arc<Route>>,
    /// Number that distinguishes servers of one name.
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

/// Interval of the check for expired calls and tasks.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Starts a background job that expires the entries of a store; it ends when the store is dropped.
pub(crate) fn expire_periodically<T: Send + Sync + 'static>(
    store: &Arc<T>,
    expire: impl Fn(&Arc<T>) + Send + 'static,
) {
    let store = Arc::downgrade(store);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EXPIRY_INTERVAL).await;
            match store.upgrade() {
                Some(store) => expire(&store),
                None => return,
            }
        }
    });
}

impl Clock {
    pub(crate) fn now(self) -> Moment {
        Moment::at(self.zero.elapsed())
    }
}

impl UpstreamServer {
    /// Replaces the filter for tools, and notifies clients at the server's own URL.
    pub fn serve_tools(&self, tools: ToolFilter) {
        let tools = Arc::new(tools);
        let before = std::mem::replace(&mut *lock(&self.tools), Arc::clone(&tools));
        if before != tools {
            self.direct_clients.notify(Method::ToolsListChanged);
        }
    }

    /// Returns a server, which is started for the first client.
    ///
    /// # Errors
    /// The operating system provides no random numbers.
    pub fn new(
        target: Target,
        settings: UpstreamSettings,
    ) -> Result<Arc<Self>, mcpact::error::Error> {
        Self::with_route(None, target, settings)
    }

    /// Like [`new`](Self::new), with a route for loop detection.
    pub(crate) fn with_route(
        route: Option<Arc<Route>>,
        target: Target,
        settings: UpstreamSettings,
    ) -> Result<Arc<Self>, mcpact::error::Error> {
        let info = Implementation::new("mcpact", env!("CARGO_PKG_VERSION"));
        let capabilities = CapabilitySet::empty(Side::Server);
        let terms = ServerTerms::new(info, capabilities, settings.front.policy.clone());
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
        expire_periodically(&shared.mapping, |mapping| mapping.expire());
        let suspended = Arc::new(SuspendedRegistry::new(
            settings.suspend_limits,
            clock,
            Sealer::new(&keys),
        ));
        let waits = Arc::downgrade(&shared);
        expire_periodically(&suspended, move |suspended| {
            suspended.expire();
            if let Some(shared) = waits.upgrade() {
                let grace = shared.run().input_grace;
                suspended.end_oldest_without_room(&shared.name, grace);
                if shared.supervisor.has_excess_waits() {
                    suspended.end_oldest_in_turn(&shared.name, grace);
                }
            }
        });
        let server = Arc::new(Self {
            terms: Arc::new(terms),
            shared,
            modern: Mutex::default(),
            groups: Mutex::default(),
            suspended,
            questions: Arc::new(ModernQuestions::new(settings.suspend_limits)),
            hosted: OnceLock::new(),
            is_public: AtomicBool::new(settings.public_results),
            settings,
            clock,
            tools: Mutex::default(),
            direct_clients: NotificationSinks::default(),
            route,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            succession: HandoverLinks::default(),
        });
        let starter: Weak<dyn Starter> = Arc::downgrade(&server) as Weak<dyn Starter>;
        server.shared.supervisor.set_starter(starter);
        saved_client::bind_on_connection(&server);
        Ok(server)
    }

    /// Returns the pool of a modern server if all clients share it.
    pub(crate) fn modern(&self) -> Option<Arc<ConnectionPool>> {
        if self.shared.keeps_apart() {
            return None;
        }
        lock(&self.modern).clone()
    }

    /// Serves one client on stdio or a socket until it disconnects.
    ///
    /// # Errors
    /// The link fails.
    pub async fn serve(self: Arc<Self>, link: Link) -> Result<(), mcpact::error::Error> {
        let ending = SessionEnd::after(self.settings.front.limits.drain);
        self.serve_until(link, ending).await
    }

    /// Like [`serve`](Self::serve), until the session is ended.
    ///
    /// # Errors
    /// The link fails.
    pub async fn serve_until(
        self: Arc<Self>,
        link: Link,
        ending: SessionEnd,
    ) -> Result<(), mcpact::error::Error> {
        serve_link(self, link, ending).await
    }

    /// Refuses new requests, ends suspended calls, and waits for in-flight requests up to a limit. Returns true if all
    /// of them finished.
    pub async fn drain(&self, limit: Duration) -> bool {
        let abandon = || self.suspended.abandon();
        let turn_away = || self.shared.supervisor.stop_admitting();
        let drain_gate = &self.settings.drain_gate;
        drain_gate.drain(limit, abandon, turn_away).await
    }

    /// Closes the connections to the server and waits for the end of its processes. In-flight calls may finish, unless
    /// requests were [drained](Self::drain) before.
    pub async fn close(self: Arc<Self>) {
        // All in-flight calls were counted by the gate.
        let mode = if self.settings.drain_gate.is_closed() {
            ShutdownMode::Immediate
        } else {
            hosted::keep_calls(&self);
            ShutdownMode::Graceful
        };
        self.shared.supervisor.close(mode).await;
        hosted::fail_remaining(&self);
    }

    /// Returns the status of the server and its instances.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        self.shared.supervisor.status()
    }

    /// Returns the configured minimum of ready instances.
    pub(crate) fn min_instances(&self) -> usize {
        min_instances(&self.shared.run())
    }

    /// Returns the backoff for list requests that failed.
    pub(crate) fn retry_backoff(&self) -> Backoff {
        let run = self.shared.run();
        Backoff {
            first: run.restarts.backoff,
            longest: run.restarts.backoff_max,
        }
    }

    /// Returns the number of suspended calls, which wait for input of modern clients.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.suspended.calls().len()
    }

    /// Applies the settings of a new configuration that need no restart.
    pub(crate) fn retune(&self, config: &ServerConfig) {
        self.shared.update_settings(&config.run);
        self.is_public
            .store(config.public_results, Ordering::Relaxed);
        if self.shared.pins.treat_changed(config.changed_tools) {
            self.direct_clients.notify(Method::ToolsListChanged);
        }
    }

    /// Forgets failures: the next call may start the server at once.
    pub fn forgive(&self) {
        self.shared.supervisor.reset_failures();
    }

    /// Listens on HTTP; the listener runs once [`HttpListener::run`] is awaited.
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
