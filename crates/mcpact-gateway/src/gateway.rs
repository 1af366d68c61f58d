//! Gateway: all configured servers behind one HTTP endpoint.
//!
//! A [`Gateway`] serves a [`Catalog`]: all servers as one at `/mcp`, each server at `/servers/NAME/mcp`, and servers with a
//! tag at `/tags/TAG/mcp`. A reload applies the difference to another catalog.

mod build;
pub(crate) mod bundle;
mod clients;
mod loop_check;
mod metrics_page;
mod readiness;
mod reload;
mod routing;
mod snapshot;
mod stable_strings;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Instant;

use futures_util::Stream;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use mcpact::client::EraCache;
use mcpact::server::Settings;
use mcpact::server::backend::SessionEnd;
use mcpact::server::router::{HttpRoute, RoutedServer};
use mcpact_config::{
    Approvals, Catalog, Change, Changes, ConfigDigest, GatewayConfig, NameStyle, ServerName,
    ToolMode,
};
use mcpact_transport::budget::MemoryBudget;
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::Guard;

use crate::aggregate::aggregator::{Aggregator, AggregatorSettings};
use crate::aggregate::server_entry::{ServerEntry, ServerReport};
use crate::cache::Cache;
use crate::control::{ApprovedTools, ControlFault, ReloadReport, Status};
use crate::drain::DrainGate;
use crate::event_history::{EventHistory, LogEntryKind};
use crate::filters::{FilterReport, Filters};
pub use crate::gateway::build::GatewayError;
pub use crate::gateway::reload::{ConfigFile, ReloadCause};
pub use crate::gateway::stable_strings::stable_strings;
use crate::handover;
use crate::loop_detection::LoopDetector;
use crate::loop_detection::start::ParentConfigs;
use crate::metrics::Metrics;
use crate::reason::{LogEvent, ReloadOutcome};
use crate::supervisor::InstanceStatus;
use crate::sync::lock;
use crate::target::Local;
use crate::upstream::UpstreamServer;

/// Environment of a gateway beside its catalog.
#[derive(Clone, Debug, Default)]
pub struct GatewayEnv {
    /// Built-in servers by name.
    pub builtins: BTreeMap<&'static str, Local>,
    /// Cached eras of servers.
    pub verdicts: EraCache,
    /// Cached metadata of servers.
    pub cache: Cache,
    /// Process that ends child processes if the gateway is killed.
    pub guard: Option<Guard>,
    /// Configs of the gateways that started this one, and its own.
    pub parents: ParentConfigs,
    /// Approved commands; none means that every configured command is approved.
    pub approvals: Option<Approvals>,
    /// Directory of tool pins.
    pub tools: Option<PathBuf>,
}

/// Gateway in front of the servers of a catalog.
#[derive(Debug)]
pub struct Gateway {
    env: GatewayEnv,
    /// Settings of the HTTP listener, which a reload does not change.
    settings: Settings,
    aggregator: Arc<Aggregator>,
    aggregator_settings: AggregatorSettings,
    route: HttpRoute,
    state: Mutex<State>,
    metrics: Arc<Metrics>,
    started: Instant,
    /// Gateway settings at startup; some of them need a restart to change.
    first: GatewayConfig,
    event_history: EventHistory,
    drain_gate: DrainGate,
    /// Cloned by each connected stdio client.
    stdio_client: Arc<()>,
    filters: Filters,
    /// Scheme, host and port of the endpoint.
    origin: OnceLock<String>,
    loops: Arc<LoopDetector>,
    /// Listen address.
    address: OnceLock<SocketAddr>,
    file: OnceLock<ConfigFile>,
    /// Held during a reload.
    reloading: tokio::sync::Mutex<()>,
}

/// Tags of the selected servers, none for all servers, and the listed tools.
type Selection = (Vec<String>, ToolMode);

/// State that a reload may change.
#[derive(Debug, Default)]
struct State {
    catalog: Catalog,
    servers: BTreeMap<ServerName, ServerRoute>,
    /// Servers by their tags and listed tools, and the HTTP routes to them.
    selections: HashMap<Selection, (Arc<Aggregator>, HttpRoute)>,
    last_reload: Option<ReloadReport>,
    /// Removed or replaced servers, which may still finish calls.
    draining: Vec<(ServerName, Weak<UpstreamServer>)>,
    /// Digest of the config as last read; none if it was unreadable.
    digest: Option<ConfigDigest>,
}

/// Server with the HTTP route of its own endpoint.
#[derive(Clone, Debug)]
struct ServerRoute {
    entry: Arc<ServerEntry>,
    route: HttpRoute,
}

impl Gateway {
    /// Creates a gateway for this catalog; servers are started on demand.
    ///
    /// # Errors
    /// The catalog names an unknown built-in server, or the settings of the gateway are invalid.
    pub fn new(catalog: Catalog, env: GatewayEnv) -> Result<Arc<Self>, GatewayError> {
        let metrics = Arc::<Metrics>::default();
        let settings = build::settings(&catalog.gateway, &metrics)?;
        let drain_gate = DrainGate::default();
        let event_history = EventHistory::default();
        let filters = Filters::new(
            &catalog.filters,
            env.guard.as_ref(),
            env.approvals.as_ref(),
            &event_history,
            &metrics,
        );
        let aggregator_settings = AggregatorSettings {
            filters: filters.clone(),
            metrics: Arc::clone(&metrics),
            front: settings.clone(),
            separator: catalog.gateway.separator.clone(),
            drain_gate: drain_gate.clone(),
            list_wait: catalog.gateway.list_wait,
            tools: catalog.gateway.tools.clone(),
            ..AggregatorSettings::default()
        };
        let aggregator = Aggregator::new(Vec::new(), aggregator_settings.clone());
        let aggregator = aggregator.map_err(GatewayError::UpstreamServer)?;
        let gateway = Arc::new(Self {
            env,
            settings,
            route: HttpRoute::to(Arc::clone(&aggregator)),
            aggregator,
            aggregator_settings,
            state: Mutex::default(),
            metrics,
            started: Instant::now(),
            first: catalog.gateway.clone(),
            event_history,
            drain_gate,
            stdio_client: Arc::default(),
            filters,
            origin: OnceLock::new(),
            loops: Arc::default(),
            address: OnceLock::new(),
            file: OnceLock::new(),
            reloading: tokio::sync::Mutex::default(),
        });
        gateway.apply(catalog)?;
        Ok(gateway)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Serves another catalog. Either all of it takes effect or nothing; unchanged servers are not disturbed.
    ///
    /// # Errors
    /// The catalog names an unknown built-in server, or a server cannot be set up.
    pub fn change(&self, catalog: Catalog) -> Result<Changes, GatewayError> {
        let changed = self.apply(catalog);
        self.metrics.reloaded(match changed {
            Ok(_) => ReloadOutcome::Applied,
            Err(_) => ReloadOutcome::Refused,
        });
        self.prune_metrics();
        changed
    }

    /// Removes the metrics of servers that are no longer served.
    fn prune_metrics(&self) {
        let state = self.state();
        let servers = &state.servers;
        self.metrics.keep_only(|name| servers.contains_key(name));
    }

    fn apply(&self, mut catalog: Catalog) -> Result<Changes, GatewayError> {
        loop_check::skip_own_url(self, &mut catalog);
        let mut state = self.state();
        let state = &mut *state;
        let changes = state.catalog.changes_to(&catalog);
        let servers = self.servers(state, &mut catalog, &changes)?;
        for (server, why) in &catalog.wrong {
            tracing::warn!(event = LogEvent::ConfigWrong.as_str(), %server, why, "server skipped: invalid config");
        }
        if state.catalog.gateway.memory != catalog.gateway.memory {
            MemoryBudget::process().set_limit(catalog.gateway.memory);
        }
        state.catalog = catalog;
        let previous = std::mem::replace(&mut state.servers, servers);
        // The logs of removed servers are kept until the next change.
        let names = previous.keys().chain(state.servers.keys());
        self.event_history
            .keep(&names.map(ServerName::as_str).collect());
        let draining = &mut state.draining;
        draining.retain(|(_, server)| server.strong_count() > 0);
        let mut replaced = Vec::new();
        for (name, served) in previous {
            let server = served.entry.server();
            match state.servers.get(&name).map(|next| next.entry.server()) {
                Some(next) if Arc::ptr_eq(next, server) => continue,
                Some(next) => handover::succeeded_by(server, next),
                None => {}
            }
            draining.push((name, Arc::downgrade(server)));
            replaced.push(served);
        }
        state.serve_at(&self.aggregator, &[]);
        for ((tags, _), (aggregator, _)) in &state.selections {
            state.serve_at(aggregator, tags);
        }
        for served in replaced {
            tokio::spawn(served.end());
        }
        Ok(changes)
    }

    /// Returns the servers of a catalog: created ones if they are new or have another launch, and those in use with their
    /// new settings. A lenient config skips invalid ones. An error has no effect on the servers in use.
    fn servers(
        &self,
        state: &State,
        catalog: &mut Catalog,
        changes: &Changes,
    ) -> Result<BTreeMap<ServerName, ServerRoute>, GatewayError> {
        let mut created = BTreeMap::new();
        let mut invalid = Vec::new();
        for (name, config) in catalog.served() {
            if state.kept(name, changes).is_some() {
                continue;
            }
            match build::server(name, config, self) {
                Ok(server) => {
                    created.insert(name.clone(), server);
                }
                Err(error) if catalog.gateway.lenient => {
                    invalid.push((name.clone(), error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        catalog.wrong.extend(invalid);
        // Nothing fails from here on.
        let mut servers = BTreeMap::new();
        for (name, config) in catalog.served() {
            let is_renamed =
                config.prefix.is_none() && state.catalog.gateway.names != catalog.gateway.names;
            let is_changed =
                is_renamed || changes.changed.contains_key(name) || changes.added.contains(name);
            let (server, route) = match (created.remove(name), state.kept(name, changes)) {
                (Some(server), _) => (Arc::clone(&server), HttpRoute::to(server)),
                (None, Some(kept)) if is_changed => {
                    // Instances and clients stay; only names and limits change.
                    let server = kept.entry.server();
                    server.retune(config);
                    (Arc::clone(server), kept.route.clone())
                }
                (None, Some(kept)) => {
                    servers.insert(name.clone(), kept.clone());
                    continue;
                }
                // Its config is invalid.
                (None, None) => continue,
            };
            let prefix = match (config.prefix.as_deref(), catalog.gateway.names) {
                (Some(prefix), _) => prefix,
                (None, NameStyle::Prefix) => name.as_str(),
                (None, NameStyle::Flat) => "",
            };
            let tags = config.tags.iter().map(|tag| Box::from(tag.as_str()));
            let (tags, tools) = (tags.collect(), config.tools.clone());
            let cache = &self.env.cache;
            let entry = ServerEntry::with(name.as_str(), prefix, tags, tools, server, cache);
            servers.insert(name.clone(), ServerRoute { entry, route });
        }
        Ok(servers)
    }

    /// Binds the configured HTTP address; requests are served while [`RoutedServer::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen(self: &Arc<Self>) -> Result<RoutedServer<Self>, mcpact::error::Error> {
        // The address at startup: a reload does not move the listener.
        let server = RoutedServer::bind(Arc::clone(self), self.first.listen.clone()).await?;
        let _ = self.origin.set(server.origin());
        if let Some(address) = server.address().tcp() {
            loop_check::set_address(self, address);
        }
        Ok(server)
    }

    /// Returns recent events and log lines.
    #[must_use]
    pub const fn event_history(&self) -> &EventHistory {
        &self.event_history
    }

    /// Refuses new requests, ends streams and waits for in-flight requests up to `drain_seconds`; returns true if all of
    /// them finished.
    pub async fn drain(&self) -> bool {
        self.drain_gate.close();
        let (limit, entries) = {
            let state = self.state();
            self.routes(&state).for_each(HttpRoute::drain);
            (state.catalog.gateway.drain, state.entries())
        };
        let servers = || entries.iter().map(|entry| entry.server());
        let abandon = || join_all(servers().map(|server| server.suspended.abandon()));
        let supervisors = || servers().map(|server| &server.shared.supervisor);
        let turn_away = || supervisors().map(|one| one.stop_admitting()).sum();
        self.drain_gate.drain(limit, abandon, turn_away).await
    }

    fn routes<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a HttpRoute> {
        let servers = state.servers.values().map(|served| &served.route);
        let selections = state.selections.values().map(|(_, route)| route);
        servers.chain(selections).chain([&self.route])
    }

    /// Serves one client on stdio until it disconnects and its requests are answered, or until `stopping` is true.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub async fn serve(
        &self,
        link: Link,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Result<(), mcpact::error::Error> {
        let drain = self.state().catalog.gateway.drain;
        let end = SessionEnd::new(drain, stopping);
        let _counted = Arc::clone(&self.stdio_client);
        Arc::clone(&self.aggregator).serve_until(link, end).await
    }

    /// Returns the number of connected stdio clients.
    fn stdio_clients(&self) -> usize {
        Arc::strong_count(&self.stdio_client) - 1
    }

    /// Connects to every server without cached metadata; yields the report of each server once it is known or failed.
    pub fn connect_all(&self) -> impl Stream<Item = ServerReport> + Send + use<> {
        let entries = self.state().entries().into_iter();
        let connecting = entries.map(|entry| async move {
            entry.meet().await;
            entry.report()
        });
        connecting.collect::<FuturesUnordered<_>>()
    }

    /// Returns the filters that are skipped because they are not approved.
    pub async fn unapproved_filters(&self) -> Vec<FilterReport> {
        self.filters.unapproved().await
    }

    /// Returns the reports of all servers.
    #[must_use]
    pub fn reports(&self) -> Vec<ServerReport> {
        let entries = self.state().entries();
        entries.iter().map(|entry| entry.report()).collect()
    }

    /// Returns the servers that are skipped because their config is invalid, with the reason.
    #[must_use]
    pub fn invalid_servers(&self) -> BTreeMap<String, String> {
        let state = self.state();
        let wrong = state.catalog.wrong.iter();
        wrong
            .map(|(name, why)| (name.to_string(), why.clone()))
            .collect()
    }

    /// Returns the status of the gateway and of one server, or of all servers.
    ///
    /// # Errors
    /// The server is unknown.
    pub fn status(&self, server: Option<&str>) -> Result<Status, ControlFault> {
        self.check_server(server)?;
        Ok(snapshot::status(self, server))
    }

    /// Checks the name of a server; none is valid.
    ///
    /// # Errors
    /// The server is unknown.
    pub(crate) fn check_server(&self, server: Option<&str>) -> Result<(), ControlFault> {
        let state = self.state();
        match server {
            Some(name) if !state.names().any(|of| of.as_str() == name) => {
                let filters = self.filters.configs();
                Err(ControlFault::NoServer {
                    name: name.to_owned(),
                    servers: state.names().map(ToString::to_string).collect(),
                    filters: filters.map(|filter| filter.name.to_string()).collect(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes an event of the gateway itself to the event history.
    fn record(&self, time: String, event: LogEvent, text: &str) {
        let log = self.event_history.gateway_log();
        log.write(time, None, LogEntryKind::Event(event.as_str()), text);
    }

    /// Approves the current tools of these servers, or of all if none are named; returns the approved changes by server.
    #[must_use]
    pub fn approve_tools(&self, servers: &[String]) -> Vec<ApprovedTools> {
        let mut entries = self.state().entries();
        let is_named = |entry: &Arc<ServerEntry>| servers.iter().any(|name| name == entry.name());
        entries.retain(|entry| servers.is_empty() || is_named(entry));
        let approved = entries.iter().map(|entry| {
            let tools = entry.approve_tools();
            let server = entry.name().to_owned();
            let event = LogEvent::ToolsAgreed.as_str();
            tracing::info!(event, server, ?tools, "changed tools approved");
            ApprovedTools { server, tools }
        });
        approved.collect()
    }

    /// Closes all connections and waits for child processes to exit.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut self.state().servers);
        self.aggregator.replace(Vec::new(), "");
        join_all(servers.into_values().map(ServerRoute::end)).await;
    }

    /// Returns the route of a selection if it has one.
    fn known_route<'a>(&'a self, state: &'a State, selection: &Selection) -> Option<&'a HttpRoute> {
        if selection.0.is_empty() && selection.1 == self.first.tools.mode {
            return Some(&self.route);
        }
        state.selections.get(selection).map(|(_, route)| route)
    }

    /// Returns the route of a selection; none if no server has these tags or too many selections are in use.
    fn selection(&self, state: &mut State, selection: Selection) -> Option<HttpRoute> {
        /// Maximum number of selections; each has its own sessions.
        const MAX_SELECTIONS: usize = 256;
        let (tags, mode) = &selection;
        let is_known = tags.is_empty() || state.tagged(tags).next().is_some();
        if let Some(route) = self.known_route(state, &selection).filter(|_| is_known) {
            return Some(route.clone());
        }
        if !is_known || (!tags.is_empty() && state.selections.len() >= MAX_SELECTIONS) {
            return None;
        }
        let mut settings = AggregatorSettings {
            separator: state.catalog.gateway.separator.clone(),
            list_wait: state.catalog.gateway.list_wait,
            ..self.aggregator_settings.clone()
        };
        settings.tools.mode = *mode;
        let aggregator = Aggregator::new(Vec::new(), settings).ok()?;
        state.serve_at(&aggregator, tags);
        let route = HttpRoute::to(Arc::clone(&aggregator));
        state
            .selections
            .insert(selection, (aggregator, route.clone()));
        Some(route)
    }
}

impl ServerRoute {
    /// Drains the server and stops its processes.
    async fn end(self) {
        self.route.drain();
        let server = self.entry.server();
        Arc::clone(server).close().await;
        // Calls that moved to the successor are still answered on this route.
        if !handover::is_succeeded(server) {
            self.route.close();
        }
    }
}

impl State {
    /// Returns every enabled server, valid or not.
    fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys().chain(self.catalog.wrong.keys())
    }

    /// Returns the server of this name if the changes do not replace it.
    fn kept(&self, name: &ServerName, changes: &Changes) -> Option<&ServerRoute> {
        let is_replaced = changes.changed.get(name) == Some(&Change::Relaunch);
        self.servers.get(name).filter(|_| !is_replaced)
    }

    /// Returns the removed and replaced servers that still exist.
    fn draining(&self) -> impl Iterator<Item = (&ServerName, Arc<UpstreamServer>)> {
        let all = self.draining.iter();
        all.filter_map(|(name, server)| Some((name, server.upgrade()?)))
    }

    /// Returns the instances of replaced servers of this name.
    fn draining_instances(&self, name: &ServerName) -> Vec<InstanceStatus> {
        let replaced = self.draining().filter(|(of, _)| *of == name);
        let instances = replaced.flat_map(|(_, server)| server.status().instances);
        instances.collect()
    }

    /// Returns the removed servers that still have instances.
    fn removed(&self) -> Vec<(&ServerName, Arc<UpstreamServer>)> {
        let mut removed: Vec<_> = self
            .draining()
            .filter(|(name, _)| !self.names().any(|of| of == *name))
            .filter(|(_, server)| !server.status().instances.is_empty())
            .collect();
        removed.dedup_by_key(|(name, _)| *name);
        removed
    }

    /// Serves the servers with these tags at an aggregator.
    fn serve_at(&self, aggregator: &Arc<Aggregator>, tags: &[String]) {
        if tags.is_empty() {
            aggregator.set_absent(self.catalog.wrong.keys().map(ServerName::as_str));
        }
        let entries = self.tagged(tags).cloned().collect();
        aggregator.replace(entries, &self.catalog.gateway.separator);
    }

    fn entries(&self) -> Vec<Arc<ServerEntry>> {
        let servers = self.servers.values();
        servers.map(|served| Arc::clone(&served.entry)).collect()
    }

    /// Returns the servers that have all of these tags.
    fn tagged(&self, tags: &[String]) -> impl Iterator<Item = &Arc<ServerEntry>> {
        let entries = self.servers.values().map(|served| &served.entry);
        entries.filter(|entry| {
            let has = |tag: &String| entry.tags().iter().any(|of| **of == **tag);
            tags.iter().all(has)
        })
    }
}
