//! One server of a aggregator.

pub(crate) mod failure;

use crate::lists::own;
use crate::lists::refresh;
use crate::lists::server_list;
use crate::subscriptions::list_changes;
use crate::upstream::tool_filter;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use mcpact_config::ToolFilter;
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Era, Method, Revision, Role, Side};
use mcpact_translate::lifecycle::server_capabilities;
use tokio::time::Instant;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::name_registry::Origin;
use crate::aggregate::server_entry::failure::ListGap;
use crate::cache::{Cache, CachedList, ServerCacheFile, ServerMetadata};
use crate::control::ListCounts;
use crate::error::Explanation;
use crate::gateway::ServerReport;
use crate::lists::cache::{CacheEntry, FetchOutcome, ListKey, ListVersion};
use crate::lists::scope::list_scope;
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::upstream::UpstreamServer;
use crate::upstream::info::ChangeListener;
use crate::upstream::info::ServerProfile;

/// How many lists are kept of one server; clients that declare the same share them.
const LISTS: usize = 64;

/// A server, its name, and what is remembered of it.
#[derive(Debug)]
pub struct ServerEntry {
    pub(crate) name: Box<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) tags: Vec<Box<str>>,
    pub(crate) server: Arc<UpstreamServer>,
    /// Tells this server from one that had its name before; one that runs on under other settings keeps it.
    pub(crate) number: u64,
    lists: Mutex<HashMap<ListKey, Arc<CacheEntry>>>,
    /// Lists of an earlier run that were not requested yet.
    recalled: Mutex<Vec<CachedList>>,
    /// Where they are kept for a later run.
    cache_file: Option<ServerCacheFile>,
    /// How often each list has changed.
    changes: [AtomicU64; ListKind::ALL.len()],
    /// How often it has woken up.
    wakes: AtomicU64,
    /// Time at which a client first waited for this server to become known.
    awaited: OnceLock<Instant>,
    /// Whether it has woken up since its lists were last looked at.
    is_unverified: AtomicBool,
    /// Why it cannot be used, and since when.
    failure: Mutex<Option<(Explanation, Instant)>>,
    /// What its lists lack.
    lacking: Mutex<BTreeMap<ListKind, ListGap>>,
    /// How often any of that has changed.
    judgements: AtomicU64,
    hubs: Mutex<Vec<Weak<Aggregator>>>,
}

impl ServerEntry {
    /// A server under this name, which its things are prefixed with.
    #[must_use]
    pub fn new(name: &str, server: Arc<UpstreamServer>) -> Arc<Self> {
        let (tools, nowhere) = (ToolFilter::default(), Cache::disabled());
        Self::with(name, name, Vec::new(), tools, server, &nowhere)
    }

    /// A server with another prefix than its name, tags by which it can be selected, and only some of its
    /// tools; what it said in an earlier run is known if it was kept.
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
        let cache_file = server_list::fingerprint(&server).and_then(|of| cache.file(&of));
        let mut kept = cache_file.as_ref().and_then(ServerCacheFile::read);
        if let Some(kept) = &mut kept {
            let era = kept.profile.revision.era();
            let sharing = server.shared.sharing_policy();
            let scope = list_scope(sharing, Some(era), false);
            kept.lists.retain(|list| scope.is_of(&list.reader));
        }
        if let Some(kept) = &kept {
            server_list::recall(&server, kept);
        }
        let recalled = kept.map_or_else(Vec::new, |kept| kept.lists);
        let entry = Arc::new(Self {
            recalled: Mutex::new(recalled),
            cache_file,
            wakes: AtomicU64::new(0),
            awaited: OnceLock::new(),
            is_unverified: AtomicBool::new(false),
            name: Box::from(name),
            prefix: Box::from(prefix),
            tags,
            number: server.number(),
            server,
            lists: Mutex::default(),
            changes: [const { AtomicU64::new(0) }; ListKind::ALL.len()],
            failure: Mutex::default(),
            lacking: Mutex::default(),
            judgements: AtomicU64::new(0),
            hubs: Mutex::default(),
        });
        let listener: Weak<Self> = Arc::downgrade(&entry);
        server_list::set_listener(&entry.server, listener);
        entry
    }

    /// Its name.
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

    /// By what it can be selected.
    #[must_use]
    pub fn tags(&self) -> &[Box<str>] {
        &self.tags
    }

    /// The way to it alone.
    #[must_use]
    pub const fn server(&self) -> &Arc<UpstreamServer> {
        &self.server
    }

    /// Whether a thing of it is served.
    pub(crate) fn serves(&self, kind: ListKind, name: &str) -> bool {
        tool_filter::serves(&self.server, kind, name)
    }

    pub(crate) fn belong_to(&self, aggregator: &Arc<Aggregator>) {
        let mut hubs = lock(&self.hubs);
        hubs.retain(|other| other.strong_count() > 0);
        hubs.push(Arc::downgrade(aggregator));
    }

    /// What it last said about itself.
    pub(crate) fn known(&self) -> Option<Arc<ServerProfile>> {
        server_list::profile(&self.server)
    }

    /// Reaches the server, so that something is known about it.
    pub async fn meet(&self) -> bool {
        if self.known().is_some() {
            // What is known from an earlier run may have to be approved since.
            let refused = server_list::unapproved(&self.server).await;
            if let Some(error) = &refused {
                self.judge(Some(error));
            }
            return refused.is_none();
        }
        let profile = self.server.meet().await;
        self.judge(profile.as_ref().err());
        profile.is_ok()
    }

    /// Agrees to what it says about its tools now, and shows those that were kept back. The tools that are not
    /// what they were.
    pub(crate) fn approve_tools(&self) -> Vec<String> {
        let has_hidden = !tool_filter::hidden_tools(&self.server).is_empty();
        let agreed = tool_filter::approve_tools(&self.server);
        if has_hidden {
            for aggregator in self.hubs() {
                aggregator.forget_merged();
            }
            self.announce(Method::ToolsListChanged);
        }
        agreed
    }

    /// Tells whether anything was learned about what is missing.
    pub(crate) fn judgements(&self) -> u64 {
        // Both only grow.
        self.judgements.load(Ordering::Acquire) + self.server.turns()
    }

    /// What is known about it.
    pub(crate) fn report(&self) -> ServerReport {
        let profile = self.known();
        ServerReport {
            name: self.name.to_string(),
            revision: profile.as_ref().map(|profile| profile.revision),
            state: self.server.status().state,
            calls_itself: profile.and_then(|profile| profile.calls_itself()),
            failure: self.failure().map(String::from),
        }
    }

    /// How many things it has, as far as anybody has listed them.
    pub(crate) fn lists(&self) -> ListCounts {
        let count = |kind: ListKind| {
            let lists = lock(&self.lists);
            let listings = lists.iter().filter(|(key, _)| key.kind == kind);
            listings.filter_map(|(_, slot)| slot.count()).max()
        };
        ListCounts {
            tools: count(ListKind::Tools),
            prompts: count(ListKind::Prompts),
            resources: count(ListKind::Resources),
            templates: count(ListKind::Templates),
        }
    }

    /// Returns true if the server is known to declare the capability.
    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.known()
            .is_some_and(|profile| profile.introduction.capabilities.declared().has(capability))
    }

    /// Returns the capabilities that a client is shown; none for an unknown server. Only identified clients get task
    /// lists.
    pub(crate) fn shown_to(&self, client: Revision, is_named: bool) -> Option<CapabilitySet> {
        let profile = self.known()?;
        let emulation = self.server.emulation(is_named);
        let declared = &profile.introduction.capabilities;
        Some(server_capabilities(
            declared,
            profile.revision,
            client,
            emulation,
        ))
    }

    /// What it would have to declare for this to be asked of it, and did not.
    pub(crate) fn lacks(&self, method: Method) -> Option<Capability> {
        let profile = self.known()?;
        // What its revision does not have is made of something else that it has.
        if method.role(profile.revision) == Role::Absent {
            return None;
        }
        let needed = method.gate(profile.revision).capability(Side::Client);
        let declared = profile.introduction.capabilities.declared();
        needed.filter(|needed| needed.owner() == Side::Server && !declared.has(*needed))
    }

    /// Whether it tells when a list changes, as it is connected at the moment.
    pub(crate) fn tells_of(&self, kind: ListKind) -> bool {
        server_list::can_tell(&self.server)
            && self.has(match kind {
                ListKind::Tools => Capability::ToolsListChanged,
                ListKind::Prompts => Capability::PromptsListChanged,
                ListKind::Resources | ListKind::Templates => Capability::ResourcesListChanged,
            })
    }

    /// Returns the revision of the server; the newest for an unknown server.
    pub(crate) fn revision(&self) -> Revision {
        self.known()
            .map_or(Revision::newest(Era::Modern), |profile| profile.revision)
    }

    /// Whether its lists are the same for all clients.
    pub(crate) fn is_modern(&self) -> bool {
        self.known()
            .is_some_and(|profile| profile.revision.era() == Era::Modern)
    }

    pub(crate) fn slot(&self, key: ListKey) -> Arc<CacheEntry> {
        let mut lists = lock(&self.lists);
        if let Some(slot) = lists.get(&key) {
            return Arc::clone(slot);
        }
        if lists.len() >= LISTS {
            lists.clear();
        }
        let slot = Arc::new(self.recalled_slot(&key).unwrap_or_default());
        lists.insert(key, Arc::clone(&slot));
        slot
    }

    fn recalled_slot(&self, key: &ListKey) -> Option<CacheEntry> {
        let mut recalled = lock(&self.recalled);
        if recalled.is_empty() {
            return None;
        }
        let reader = key.reader();
        let is_it = |list: &CachedList| list.kind == key.kind && list.reader == reader;
        let kept = recalled.iter().position(is_it)?;
        let listing = ServerList::recalled(&recalled.swap_remove(kept));
        self.look_over(key.kind, &listing);
        Some(CacheEntry::recalled(Arc::new(listing), 0))
    }

    /// Returns the time at which a client first waited for this server to become known; now if none did.
    pub(crate) fn awaited(&self) -> Instant {
        *self.awaited.get_or_init(Instant::now)
    }

    /// Returns the time since which a client waits for a list of this server, or for the server to become known.
    pub(crate) fn waited_for_since(&self) -> Option<Instant> {
        let slots = self.slots();
        let fetching = slots.iter().filter_map(|(_, slot)| slot.fetching_since());
        let awaited = self.awaited.get().filter(|_| self.known().is_none());
        fetching.chain(awaited.copied()).min()
    }

    /// Returns all requested lists.
    pub(crate) fn slots(&self) -> Vec<(ListKind, Arc<CacheEntry>)> {
        let lists = lock(&self.lists);
        let slots = lists.iter().map(|(key, slot)| (key.kind, Arc::clone(slot)));
        slots.collect()
    }

    /// Returns a list of another client with the same principal, as a fallback while the server does not answer.
    pub(crate) fn shown_to_others(&self, key: &ListKey) -> Option<Arc<ServerList>> {
        let lists = lock(&self.lists);
        let mut others = lists.iter().filter(|(other, _)| {
            (other.kind, other.scope) == (key.kind, key.scope) && other.principal == key.principal
        });
        others.find_map(|(_, slot)| slot.listing())
    }

    /// Returns the other lists of this kind, of any client.
    pub(crate) fn lists_besides(
        &self,
        kind: ListKind,
        listing: Option<&Arc<ServerList>>,
    ) -> Vec<Arc<ServerList>> {
        let slots = self.slots().into_iter().filter(|(of, _)| *of == kind);
        let others = slots.filter_map(|(_, slot)| slot.listing());
        let is_other = |other: &Arc<ServerList>| listing.is_none_or(|one| !one.is_same(other));
        others.filter(is_other).collect()
    }

    fn changes_of(&self, kind: ListKind) -> u64 {
        self.changes[kind as usize].load(Ordering::Acquire)
    }

    /// What a list rests on that is fetched now.
    pub(crate) fn basis(&self, kind: ListKind) -> ListVersion {
        ListVersion {
            changes: self.changes_of(kind),
            wakes: self.wakes.load(Ordering::Acquire),
            when: Some(Instant::now()),
        }
    }

    /// Returns true, once, if the server was started since its lists were last refreshed.
    pub(crate) fn is_to_be_verified(&self) -> bool {
        self.is_unverified.load(Ordering::Relaxed)
            && self.is_unverified.swap(false, Ordering::AcqRel)
    }

    /// Tells the clients of every aggregator that it is part of.
    pub(crate) fn announce(&self, method: Method) {
        for aggregator in self.hubs() {
            list_changes::announce(&aggregator, method);
        }
    }

    fn hubs(&self) -> Vec<Arc<Aggregator>> {
        lock(&self.hubs).iter().filter_map(Weak::upgrade).collect()
    }

    /// Hands on what a fetch has brought.
    pub(crate) fn spread(&self, kind: ListKind, news: FetchOutcome) {
        match news {
            FetchOutcome::Nothing => {}
            FetchOutcome::Learned => self.keep(),
            FetchOutcome::Changed => {
                self.keep();
                self.announce(kind.changed());
            }
        }
    }

    /// Writes down what is known, for a later run.
    fn keep(&self) {
        let (Some(cache_file), Some(profile)) = (self.cache_file.clone(), self.known()) else {
            return;
        };
        let ticket = cache_file.ticket();
        let asked = lock(&self.lists).clone();
        let asked = asked.into_iter().filter_map(|(key, slot)| {
            let listing = slot.unchanged(self.changes_of(key.kind))?;
            Some(listing.kept(key.reader()))
        });
        let mut lists: Vec<_> = asked.collect();
        let recalled = lock(&self.recalled);
        let untouched = |list: &&CachedList| self.changes_of(list.kind) == 0;
        lists.extend(recalled.iter().filter(untouched).cloned());
        drop(recalled);
        lists.sort_unstable_by(|one, other| {
            (one.kind, &one.reader).cmp(&(other.kind, &other.reader))
        });
        lists.truncate(LISTS);
        let record = ServerMetadata {
            profile: ServerProfile::clone(&profile),
            lists,
        };
        tokio::task::spawn_blocking(move || cache_file.write(ticket, &record));
    }
}

impl ChangeListener for ServerEntry {
    fn changed(&self, method: Method) {
        let mut is_list = false;
        for kind in ListKind::ALL {
            if kind.changed() == method {
                is_list = true;
                self.changes[kind as usize].fetch_add(1, Ordering::AcqRel);
            }
        }
        if is_list {
            // Outdated lists are removed from the cache file.
            self.keep();
            self.announce(method);
        }
    }

    fn changed_for(&self, owner: u64, method: Method) {
        if ListKind::changed_by(method).is_some() {
            for aggregator in self.hubs() {
                own::tell_owner(&aggregator, self, owner, method);
            }
        }
    }

    fn woke(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::AcqRel);
        self.is_unverified.store(true, Ordering::Release);
        self.judge(None);
        // Lists belong to the server, whichever aggregator looks at them.
        if let Some(aggregator) = self.hubs().first() {
            refresh::look_again(aggregator, &self);
            refresh::try_again(aggregator, &self);
        }
    }
}
