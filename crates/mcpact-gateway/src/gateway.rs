//! Everything that a person has configured, behind one address.
//!
//! A [`Gateway`] turns a [`Catalog`] into members, shows all of them as one at `/mcp`, each alone at
//! `/servers/NAME/mcp` and those with a tag at `/tags/TAG/mcp`, and turns another catalog into the changes
//! that it takes to get there.

mod build;
mod bundle;
mod circle;
mod itself;
mod leaving;
mod metrics;
mod paths;
mod print;
mod readiness;
mod reception;
mod reload;
mod report;
mod snapshot;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use futures_util::future::join_all;
use mcpact::client::Verdicts;
use mcpact::server::Settings;
use mcpact::server::backend::Ending;
use mcpact::server::site::{Door, Site};
use mcpact_config::{Approvals, Catalog, Change, Changes, GatewayConfig, NameStyle, ServerName};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::Guard;

pub use self::build::GatewayError;
use self::leaving::Leaving;
pub use self::reload::{ConfigFile, ReloadCause};
pub use self::report::ServerReport;
use crate::cache::Cache;
use crate::chronicle::Chronicle;
use crate::circle::Mark;
use crate::control::{AgreedTools, ReloadReport};
use crate::figures::Figures;
use crate::filters::Filters;
use crate::hub::{Hub, Member};
use crate::lineage::Lineage;
use crate::stable::{LogEvent, ReloadOutcome};
use crate::target::Local;
use crate::turnstile::Turnstile;

/// What a gateway needs beside its catalog.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The servers that are part of the program, by name.
    pub builtins: BTreeMap<&'static str, Local>,
    /// What was learned about servers earlier.
    pub verdicts: Verdicts,
    /// What servers said about themselves earlier.
    pub cache: Cache,
    /// What ends programs when the gateway is killed.
    pub guard: Option<Guard>,
    /// The gateways that have led to this one, and itself.
    pub lineage: Lineage,
    /// The commands that may be started; without it all may that the config names.
    pub approvals: Option<Approvals>,
    /// The folder in which the tools of servers are remembered from one run to the next.
    pub tools: Option<PathBuf>,
}

/// Many servers behind one address.
#[derive(Debug)]
pub struct Gateway {
    surroundings: Surroundings,
    /// How the address is guarded; it stays as long as the gateway listens.
    settings: Settings,
    hub: Arc<Hub>,
    door: Door,
    state: Mutex<State>,
    figures: Arc<Figures>,
    started: Instant,
    /// The gateway's own settings when it was started; some of them stay.
    first: GatewayConfig,
    chronicle: Chronicle,
    turnstile: Turnstile,
    /// How many clients are served on carriers of lines.
    on_lines: AtomicUsize,
    /// What looks at requests and results, from the start on.
    filters: Filters,
    /// Where clients come to, up to the path.
    origin: OnceLock<String>,
    /// What other gateways know it by.
    mark: Option<Mark>,
    /// Where it listens.
    address: OnceLock<SocketAddr>,
    file: OnceLock<ConfigFile>,
    /// Held by whoever reads the config anew.
    reloading: tokio::sync::Mutex<()>,
}

/// What another catalog may change.
#[derive(Debug, Default)]
struct State {
    catalog: Catalog,
    servers: BTreeMap<ServerName, Served>,
    /// Servers that are chosen by their tags.
    selections: HashMap<Vec<String>, Selection>,
    last_reload: Option<ReloadReport>,
    leaving: Leaving,
    /// What the config said when it was read last; none if it could not be read.
    print: Option<print::Print>,
}

/// A client on a carrier of lines, for as long as this is held.
struct Guest<'g>(&'g AtomicUsize);

impl<'g> Guest<'g> {
    fn new(count: &'g AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One server, and the way to it alone.
#[derive(Clone, Debug)]
struct Served {
    member: Arc<Member>,
    door: Door,
}

#[derive(Debug)]
struct Selection {
    hub: Arc<Hub>,
    door: Door,
}

impl Gateway {
    /// A gateway for this catalog; servers are reached or started when they are needed.
    ///
    /// # Errors
    /// The catalog names something that there is not, or the gateway's own settings cannot be used.
    pub fn new(catalog: Catalog, surroundings: Surroundings) -> Result<Arc<Self>, GatewayError> {
        let figures = Arc::<Figures>::default();
        let settings = build::settings(&catalog.gateway, &figures)?;
        let turnstile = Turnstile::default();
        let chronicle = Chronicle::default();
        let filters = Filters::new(
            &catalog.filters,
            surroundings.guard.as_ref(),
            surroundings.approvals.as_ref(),
            &chronicle,
            &figures,
        );
        let hub_settings =
            build::hub_settings(&catalog.gateway, &settings, &figures, &turnstile, &filters);
        let hub = Hub::new(Vec::new(), hub_settings);
        let hub = hub.map_err(GatewayError::Bridge)?;
        let gateway = Arc::new(Self {
            surroundings,
            settings,
            door: Door::to(Arc::clone(&hub)),
            hub,
            state: Mutex::default(),
            figures,
            started: Instant::now(),
            first: catalog.gateway.clone(),
            chronicle,
            turnstile,
            on_lines: AtomicUsize::new(0),
            filters,
            origin: OnceLock::new(),
            mark: Mark::of_gateway(),
            address: OnceLock::new(),
            file: OnceLock::new(),
            reloading: tokio::sync::Mutex::default(),
        });
        gateway.apply(catalog)?;
        Ok(gateway)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves another catalog from here on; all of it, or nothing changes. Servers that are configured as
    /// before go on undisturbed.
    ///
    /// # Errors
    /// The catalog names something that there is not.
    pub fn change(&self, catalog: Catalog) -> Result<Changes, GatewayError> {
        let changed = self.apply(catalog);
        self.figures.reloaded(match changed {
            Ok(_) => ReloadOutcome::Applied,
            Err(_) => ReloadOutcome::Refused,
        });
        self.forget_figures();
        changed
    }

    /// Those of servers that are gone.
    fn forget_figures(&self) {
        let state = self.state();
        let is_served = |name: &str| state.servers.contains_key(name);
        self.figures.keep_only(is_served);
    }

    fn apply(&self, mut catalog: Catalog) -> Result<Changes, GatewayError> {
        self.leave_out_itself(&mut catalog);
        let mut state = self.state();
        let mut unfit = Vec::new();
        let changes = state.catalog.changes_to(&catalog);
        let mut servers = BTreeMap::new();
        for (name, config) in catalog.served() {
            // Names that are prefixed no longer, or from now on, are other names.
            let is_renamed =
                config.prefix.is_none() && state.catalog.gateway.names != catalog.gateway.names;
            let is_same =
                !is_renamed && !changes.changed.contains_key(name) && !changes.added.contains(name);
            let served = match state.servers.get(name).filter(|_| is_same) {
                Some(served) => served.clone(),
                None => {
                    let before = state.servers.get(name);
                    match self.make(name, config, catalog.gateway.names, before, &changes) {
                        Ok(served) => served,
                        Err(error) if catalog.gateway.lenient => {
                            unfit.push((name.clone(), error.to_string()));
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            servers.insert(name.clone(), served);
        }
        let gone: Vec<(ServerName, Served)> = state
            .servers
            .iter()
            .filter(|(name, served)| {
                let next = servers.get(*name).map(|next: &Served| next.member.bridge());
                next.is_none_or(|next| !Arc::ptr_eq(next, served.member.bridge()))
            })
            .map(|(name, served)| (name.clone(), served.clone()))
            .collect();
        for (name, served) in &gone {
            if let Some(next) = servers.get(name) {
                served.member.bridge().succeeded_by(next.member.bridge());
            }
        }
        state
            .leaving
            .add(gone.iter().map(|(name, served)| (name, served)));
        // What was there until now is worth reading a while longer.
        let kept: BTreeSet<&str> = state
            .servers
            .keys()
            .chain(servers.keys())
            .map(ServerName::as_str)
            .collect();
        self.chronicle.keep(&kept);
        drop(kept);
        catalog.wrong.extend(unfit);
        for (server, why) in &catalog.wrong {
            tracing::warn!(event = LogEvent::ConfigWrong.as_str(), %server, why, "server skipped: invalid config");
        }
        state.servers = servers;
        state.catalog = catalog;
        let separator = &state.catalog.gateway.separator;
        self.hub
            .tell_absent(state.catalog.wrong.keys().map(ServerName::as_str));
        self.hub.replace(state.members(), separator);
        for (tags, selection) in &state.selections {
            let members = state.tagged(tags).cloned().collect();
            selection.hub.replace(members, separator);
        }
        drop(state);
        for (_, served) in gone {
            tokio::spawn(served.end());
        }
        Ok(changes)
    }

    /// A server that is new, or another one than before.
    fn make(
        &self,
        name: &ServerName,
        config: &mcpact_config::ServerConfig,
        names: NameStyle,
        before: Option<&Served>,
        changes: &Changes,
    ) -> Result<Served, GatewayError> {
        let (bridge, door) = match before {
            // What runs goes on under other names and limits, and so do its clients.
            Some(before) if changes.changed.get(name) != Some(&Change::Relaunch) => {
                before.member.bridge().retune(config);
                (Arc::clone(before.member.bridge()), before.door.clone())
            }
            Some(_) | None => {
                let bridge = build::bridge(name, config, self)?;
                (Arc::clone(&bridge), Door::to(bridge))
            }
        };
        let prefix = config.prefix.as_deref().unwrap_or(match names {
            NameStyle::Prefix => name.as_str(),
            NameStyle::Flat => "",
        });
        let tags = config.tags.iter().map(|tag| Box::from(tag.as_str()));
        let tools = config.tools.clone();
        let cache = &self.surroundings.cache;
        let member = Member::with(name.as_str(), prefix, tags.collect(), tools, bridge, cache);
        Ok(Served { member, door })
    }

    /// Listens on HTTP at the configured address; the gateway runs once [`Site::run`] is awaited.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn listen(self: &Arc<Self>) -> Result<Site<Self>, mcpact::error::Error> {
        // Not what was read since: nobody was asked about that.
        let address = self.first.listen;
        let site = Site::bind(Arc::clone(self), address).await?;
        // It listens once.
        let _ = self.origin.set(site.origin());
        self.listens_on(site.address());
        Ok(site)
    }

    /// What happened lately.
    #[must_use]
    pub const fn chronicle(&self) -> &Chronicle {
        &self.chronicle
    }

    /// Takes no more requests, ends what would not end by itself, and lets those that run finish for as long
    /// as the config says. Whether all of them have.
    pub async fn drain(&self) -> bool {
        self.turnstile.close();
        let (limit, members) = {
            let state = self.state();
            self.doors(&state).for_each(Door::rest);
            (state.catalog.gateway.drain, state.members())
        };
        let abandon = || join_all(members.iter().map(|member| member.bridge().abandon()));
        let turn_away = || {
            members
                .iter()
                .map(|member| member.bridge().turn_away())
                .sum()
        };
        self.turnstile.drain(limit, abandon, turn_away).await
    }

    fn doors<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a Door> {
        let servers = state.servers.values().map(|served| &served.door);
        let selections = state.selections.values().map(|selection| &selection.door);
        servers.chain(selections).chain([&self.door])
    }

    /// Serves one client on a carrier of lines, until it goes away and what it asked for is answered, or
    /// `stopping` says so.
    ///
    /// # Errors
    /// The carrier fails.
    pub async fn serve(
        &self,
        link: Link,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Result<(), mcpact::error::Error> {
        let drain = self.state().catalog.gateway.drain;
        let ending = Ending::new(drain, stopping);
        let _guest = Guest::new(&self.on_lines);
        Arc::clone(&self.hub).serve_until(link, ending).await
    }

    /// Agrees to what servers say about their tools now: these, or all if none are named. What was agreed to, of
    /// each of them that is served.
    #[must_use]
    pub fn agree_to_tools(&self, servers: &[String]) -> Vec<AgreedTools> {
        let mut members = self.state().members();
        let is_named = |member: &Arc<Member>| servers.iter().any(|name| name == member.name());
        members.retain(|member| servers.is_empty() || is_named(member));
        let agreed = members.iter().map(|member| {
            let tools = member.agree_to_tools();
            let server = member.name().to_owned();
            tracing::info!(
                event = LogEvent::ToolsAgreed.as_str(),
                server,
                ?tools,
                "changed tools approved"
            );
            AgreedTools { server, tools }
        });
        agreed.collect()
    }

    /// Ends every connection, and waits a while for the programs behind them to go.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut self.state().servers);
        self.hub.replace(Vec::new(), "");
        join_all(servers.into_values().map(Served::end)).await;
    }
}

impl Served {
    /// Serves nobody any more; calls that run are given their time, and nothing is left of its programs.
    async fn end(self) {
        self.door.rest();
        let bridge = self.member.bridge();
        Arc::clone(bridge).close().await;
        // Those who went on elsewhere are answered by this door, which is left when nobody waits there any more.
        if !bridge.is_succeeded() {
            self.door.close();
        }
    }
}

impl State {
    /// Every server that is switched on, whether it is served or wrong.
    fn names(&self) -> impl Iterator<Item = &ServerName> {
        self.servers.keys().chain(self.catalog.wrong.keys())
    }

    fn members(&self) -> Vec<Arc<Member>> {
        let servers = self.servers.values();
        servers.map(|served| Arc::clone(&served.member)).collect()
    }

    /// The servers that have all of these tags.
    fn tagged(&self, tags: &[String]) -> impl Iterator<Item = &Arc<Member>> {
        let members = self.servers.values().map(|served| &served.member);
        members.filter(|member| {
            let has = |tag: &String| member.tags().iter().any(|of| **of == **tag);
            tags.iter().all(has)
        })
    }
}

impl Gateway {
    /// How those are shown that are chosen by their tags; none if there are none, whoever chose so before.
    fn selection(&self, state: &mut State, tags: Vec<String>) -> Option<Door> {
        /// How many choices are kept; each has its own sessions.
        const SELECTIONS: usize = 256;
        state.tagged(&tags).next()?;
        if let Some(selection) = state.selections.get(&tags) {
            return Some(selection.door.clone());
        }
        if state.selections.len() >= SELECTIONS {
            return None;
        }
        let members = state.tagged(&tags).cloned().collect();
        let settings = build::hub_settings(
            &state.catalog.gateway,
            &self.settings,
            &self.figures,
            &self.turnstile,
            &self.filters,
        );
        let hub = Hub::new(members, settings).ok()?;
        let door = Door::to(Arc::clone(&hub));
        let selection = Selection {
            hub,
            door: door.clone(),
        };
        state.selections.insert(tags, selection);
        Some(door)
    }
}
