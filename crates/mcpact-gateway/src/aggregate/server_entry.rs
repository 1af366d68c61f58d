//! One server of an aggregator.

pub(crate) mod failure;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use mcpact_config::ToolFilter;
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Era, Feature, Gate, Method, Revision, Role, Side};
use mcpact_translate::lifecycle::server_capabilities;
use tokio::time::Instant;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::name_registry::Origin;
use crate::aggregate::server_entry::failure::ListGap;
use crate::cache::{Cache, ServerCacheFile, ServerMetadata, ServerProfile};
use crate::error::Explanation;
use crate::lists::cache::ListCache;
use crate::lists::scope::list_scope;
use crate::lists::{own, refresh};
use crate::subscriptions::list_changes;
use crate::supervisor::ServerState;
use crate::sync::lock;
use crate::target::digest;
use crate::upstream::UpstreamServer;
use crate::upstream::affinity::Evidence;
use crate::upstream::info::ChangeListener;
use crate::upstream::tool_filter;

/// A server with its name, and what the aggregators remember of it.
#[derive(Debug)]
pub struct ServerEntry {
    pub(crate) name: Box<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) server: Arc<UpstreamServer>,
    /// Distinguishes the server from an earlier one of the same name. A change of settings keeps it.
    pub(crate) number: u64,
    pub(crate) lists: ListCache,
    /// Time at which a client first waited for this server to become known.
    awaited: OnceLock<Instant>,
    /// True if the server was started since its lists were last refreshed.
    is_unverified: AtomicBool,
    /// Cause of unavailability, and its time.
    failure: Mutex<Option<(Explanation, Instant)>>,
    /// Missing parts of the lists.
    gaps: Mutex<BTreeMap<ListKind, ListGap>>,
    /// Number of changes of the failure and the gaps.
    health_changes: AtomicU64,
    aggregators: Mutex<Vec<Weak<Aggregator>>>,
}

/// Summary of a server.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// Configured name.
    pub name: String,
    /// Negotiated revision.
    pub revision: Option<Revision>,
    /// Name and version that the server reports.
    pub calls_itself: Option<String>,
    /// State; a server known from the cache sleeps until it is called.
    pub state: ServerState,
    /// Cause of unavailability.
    pub failure: Option<String>,
}

impl ServerEntry {
    /// Creates an entry for a server, with its name as the prefix of its tools and prompts.
    #[must_use]
    pub fn new(name: &str, server: Arc<UpstreamServer>) -> Arc<Self> {
        let (tools, nowhere) = (ToolFilter::default(), Cache::disabled());
        Self::with(name, name, Vec::new(), tools, server, &nowhere)
    }

    /// Creates an entry with a prefix, tags for selecting the server, and a filter for its tools. Cached metadata is
    /// used if it exists.
    #[must_use]
    pub fn with(
        name: &str,
        prefix: &str,
        tags: Vec<Box<str>>,
        tools: ToolFilter,
        server: Arc<UpstreamServer>,
        cache: &Cache,
    ) -> Arc<Self> {
        server.serve_tools(tools);
        let cache_file = fingerprint(&server).and_then(|of| cache.file(&of));
        let mut stored = cache_file.as_ref().and_then(ServerCacheFile::read);
        if let Some(stored) = &mut stored {
            let era = stored.profile.revision.era();
            let sharing = server.shared.sharing_policy();
            let scope = list_scope(sharing, Some(era), false);
            stored.lists.retain(|list| scope.is_of(&list.reader));
            restore(&server, stored);
        }
        let lists = stored.map_or_else(Vec::new, |stored| stored.lists);
        let entry = Arc::new(Self {
            lists: ListCache::new(cache_file, lists),
            awaited: OnceLock::new(),
            is_unverified: AtomicBool::new(false),
            name: Box::from(name),
            prefix: Box::from(prefix),
            tags,
            number: server.number,
            server,
            failure: Mutex::default(),
            gaps: Mutex::default(),
            health_changes: AtomicU64::new(0),
            aggregators: Mutex::default(),
        });
        let listener: Weak<Self> = Arc::downgrade(&entry);
        entry.server.shared.info_cache.set_listener(listener);
        entry
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name and prefix of the server.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            name: self.name.clone(),
            prefix: self.prefix.clone(),
        }
    }

    /// Returns the tags for selecting the server.
    #[must_use]
    pub fn tags(&self) -> &[Box<str>] {
        &self.tags
    }

    /// Returns the server.
    #[must_use]
    pub const fn server(&self) -> &Arc<UpstreamServer> {
        &self.server
    }

    /// Returns true unless the tool filter hides the item.
    pub(crate) fn serves(&self, kind: ListKind, name: &str) -> bool {
        tool_filter::serves(&self.server, kind, name)
    }

    /// Returns the number of tools that the filters leave, if the tools are known.
    pub(crate) fn served_tools(&self) -> Option<usize> {
        let names = self.lists.names(ListKind::Tools)?;
        let served = names.iter();
        Some(
            served
                .filter(|name| self.serves(ListKind::Tools, name))
                .count(),
        )
    }

    /// Adds the server to an aggregator.
    pub(crate) fn join(&self, aggregator: &Arc<Aggregator>) {
        let mut aggregators = lock(&self.aggregators);
        aggregators.retain(|other| other.strong_count() > 0);
        aggregators.push(Arc::downgrade(aggregator));
    }

    fn aggregators(&self) -> Vec<Arc<Aggregator>> {
        let aggregators = lock(&self.aggregators);
        aggregators.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the last known profile of the server.
    pub(crate) fn profile(&self) -> Option<Arc<ServerProfile>> {
        self.server.shared.info_cache.profile()
    }

    /// Connects to an unknown server to get its profile; returns false if it is unavailable.
    pub async fn meet(&self) -> bool {
        if self.profile().is_none() {
            let profile = self.server.introduce().await;
            self.note_outcome(profile.as_ref().err());
            return profile.is_ok();
        }
        // A server with a cached profile may need a new approval.
        match self.server.shared.check_approved().await {
            Ok(_) => true,
            Err(kind) => {
                let error = self.server.shared.error(kind).into();
                self.note_outcome(Some(&error));
                false
            }
        }
    }

    /// Approves the present tool definitions and shows hidden tools. Returns the tools with a changed definition.
    pub(crate) fn approve_tools(&self) -> Vec<String> {
        let has_hidden = !tool_filter::hidden_tools(&self.server).is_empty();
        let approved = tool_filter::approve_tools(&self.server);
        if has_hidden {
            for aggregator in self.aggregators() {
                aggregator.clear_merges();
            }
            self.announce(Method::ToolsListChanged);
        }
        approved
    }

    /// Returns the number of changes of the health of the server.
    pub(crate) fn health_changes(&self) -> u64 {
        // Both only grow.
        self.health_changes.load(Ordering::Acquire) + self.server.shared.supervisor.outage_changes()
    }

    /// Returns the state of the server.
    pub(crate) fn report(&self) -> ServerReport {
        let profile = self.profile();
        ServerReport {
            name: self.name.to_string(),
            revision: profile.as_ref().map(|profile| profile.revision),
            state: self.server.status().state,
            calls_itself: profile.and_then(|profile| profile.own_name()),
            failure: self.failure().map(String::from),
        }
    }

    /// Returns true if the server is known to declare the capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        let profile = self.profile();
        let declared = profile.map(|profile| profile.introduction.capabilities.declared());
        declared.is_some_and(|declared| declared.has(capability))
    }

    /// Returns true if the server declares an extension with methods that only its own endpoint can serve.
    pub(crate) fn has_unknown_extension(&self) -> bool {
        let profile = self.profile();
        profile.is_some_and(|profile| profile.introduction.capabilities.has_unknown_extension())
    }

    /// Returns the capabilities that a client is shown; none for an unknown server. Only clients that can be told apart
    /// get task lists.
    pub(crate) fn shown_to(&self, client: Revision, evidence: Evidence) -> Option<CapabilitySet> {
        let profile = self.profile()?;
        let emulation = self.server.emulation(evidence);
        let declared = &profile.introduction.capabilities;
        let shown = server_capabilities(declared, profile.revision, client, emulation);
        Some(shown)
    }

    /// Returns the capability that a method needs and the server does not declare.
    pub(crate) fn lacks(&self, method: Method) -> Option<Capability> {
        let profile = self.profile()?;
        // A method that the revision does not have is emulated.
        if method.role(profile.revision) == Role::Absent {
            return None;
        }
        let needed = method.gate(profile.revision).capability(Side::Client);
        let declared = profile.introduction.capabilities.declared();
        needed.filter(|needed| needed.owner() == Side::Server && !declared.has(*needed))
    }

    /// Returns true unless the method belongs to an extension, or to a setting of one, that the server does not declare.
    pub(crate) fn extends(&self, method: Method) -> bool {
        let Gate::OfServer(extension, setting) = method.gate(Revision::newest(Era::Modern)) else {
            return true;
        };
        self.profile().is_some_and(|profile| {
            let declared = &profile.introduction.capabilities;
            let settings = declared.extension(extension, profile.revision);
            settings.is_some_and(|all| setting.is_none_or(|key| all.get(key) == Some("true")))
        })
    }

    /// Returns true if the server reports changes of a list on its present connection.
    pub(crate) fn reports_changes_of(&self, kind: ListKind) -> bool {
        let capability = match kind {
            ListKind::Tools => Capability::ToolsListChanged,
            ListKind::Prompts => Capability::PromptsListChanged,
            ListKind::Resources | ListKind::Templates => Capability::ResourcesListChanged,
            ListKind::Skills => return false,
        };
        self.server.shared.info_cache.can_notify() && self.has(capability)
    }

    /// Returns the revision of the server; the newest for an unknown server.
    pub(crate) fn revision(&self) -> Revision {
        let profile = self.profile();
        profile.map_or(Revision::newest(Era::Modern), |profile| profile.revision)
    }

    /// Returns true for a modern server, which has the same lists for all clients.
    pub(crate) fn is_modern(&self) -> bool {
        let profile = self.profile();
        profile.is_some_and(|profile| profile.revision.era() == Era::Modern)
    }

    /// Returns the time at which a client first waited for this server to become known; now if none did.
    pub(crate) fn awaited(&self) -> Instant {
        *self.awaited.get_or_init(Instant::now)
    }

    /// Returns the time since which a client waits for a list of this server, or for the server to become known.
    pub(crate) fn waited_for_since(&self) -> Option<Instant> {
        let awaited = self.awaited.get().filter(|_| self.profile().is_none());
        let fetching = self.lists.fetching_since();
        fetching.into_iter().chain(awaited.copied()).min()
    }

    /// Returns true, once, if the server was started since its lists were last refreshed.
    pub(crate) fn is_to_be_verified(&self) -> bool {
        self.is_unverified.load(Ordering::Relaxed)
            && self.is_unverified.swap(false, Ordering::AcqRel)
    }

    /// Announces a changed list to the clients of every aggregator.
    pub(crate) fn announce(&self, method: Method) {
        for aggregator in self.aggregators() {
            list_changes::announce(&aggregator, method);
        }
    }

    /// Writes the profile and the lists to the cache file.
    pub(crate) fn save(&self) {
        if let Some(profile) = self.profile() {
            self.lists.save(&profile);
        }
    }
}

/// Restores cached metadata of a server.
fn restore(server: &UpstreamServer, stored: &ServerMetadata) {
    let has_tasks = stored.profile.revision.has(Feature::TasksCore);
    let tools = stored.lists.iter();
    let tools = tools.filter(|list| list.kind == ListKind::Tools);
    for page in tools.flat_map(|list| &list.pages) {
        server.shared.book.learn(page);
        // Hidden tools stay hidden.
        server.shared.pins.check(page);
        if has_tasks {
            server.shared.tool_tasks.learn(page);
        }
    }
    server.shared.info_cache.restore(stored.profile.clone());
}

/// Returns the key of the cache file; none for a server whose metadata is not cached.
fn fingerprint(server: &UpstreamServer) -> Option<String> {
    let target = server.shared.target.fingerprint()?;
    let mode = format!("{:?}", server.settings.mode);
    Some(digest([target.as_bytes(), mode.as_bytes()]))
}

impl ChangeListener for ServerEntry {
    fn changed(&self, method: Method) {
        if self.lists.changes.note(method) {
            // Outdated lists are removed from the cache file.
            self.save();
            self.announce(method);
        }
    }

    fn changed_for(&self, owner: u64, method: Method) {
        if ListKind::changed_by(method).is_some() {
            for aggregator in self.aggregators() {
                own::notify_owner(&aggregator, self, owner, method);
            }
        }
    }

    fn started(self: Arc<Self>) {
        self.lists.note_start();
        self.is_unverified.store(true, Ordering::Release);
        self.note_outcome(None);
        // The lists are shared by all aggregators; one of them refreshes them.
        if let Some(aggregator) = self.aggregators().first() {
            refresh::refresh_stale(aggregator, &self);
            refresh::fetch_missed(aggregator, &self);
        }
    }
}
