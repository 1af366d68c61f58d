//! Merged lists of all servers, with the routes of their items.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpact::connection::RawResult;
use mcpact_spec::{ErrorCode, Revision};
use mcpact_translate::lifecycle::Fingerprint;
use mcpact_wire::raw::Object;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::gateway_tools;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::{self, ListPart, MergedList, PageFormat, ServerItems};
use crate::aggregate::name_registry::{NameRegistry, Origin};
use crate::aggregate::name_table::NameTable;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::uri_table::UriTable;
use crate::downstream::client::DownstreamClient;
use crate::error::ServeError;
use crate::exchange::refuse;
use crate::lists::refresh;
use crate::lists::scope::Audience;
use crate::lists::server_list::ServerList;
use crate::subscriptions::list_changes;
use crate::sync::lock;
use crate::upstream::tool_filter;

/// Maximum number of cached merged lists.
const MAX_LISTS: usize = 64;

/// Maximum number of replacements of the servers during one request.
pub(crate) const MAX_REPLACEMENTS: usize = 32;

/// Lists of all servers, none for those without one.
pub(crate) type Sources = Vec<Option<Arc<ServerList>>>;

/// Key of a merged list: clients with the same key see the same list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MergedViewKey {
    server_set: u64,
    kind: ListKind,
    client: Revision,
    principal: Box<str>,
    fingerprint: Fingerprint,
}

/// Digests of the lists that a list was merged from.
type SourceDigests = Vec<Option<[u8; 32]>>;

/// Cached merged lists, public names and URIs.
#[derive(Debug, Default)]
pub(crate) struct MergeCache {
    lists: Mutex<HashMap<MergedViewKey, (SourceDigests, Arc<MergedList>)>>,
    names: Mutex<HashMap<ListKind, Arc<Routes<NameTable>>>>,
    uris: Mutex<Option<Arc<Routes<UriTable>>>>,
}

/// Table of names or URIs, and the servers at its positions.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    pub(crate) server_set: Arc<ServerSet>,
    pub(crate) table: T,
}

impl Routes<NameTable> {
    /// Returns the server of a public name, and the original name.
    pub(crate) fn lookup(&self, name: &str) -> Option<(Arc<ServerEntry>, Box<str>)> {
        let (server, name) = self.table.route(name)?;
        let entry = self.server_set.entries.get(server)?;
        Some((Arc::clone(entry), Box::from(name)))
    }
}

impl MergeCache {
    pub(crate) fn clear(&self) {
        lock(&self.lists).clear();
        lock(&self.names).clear();
        *lock(&self.uris) = None;
    }

    /// Returns the known public names.
    pub(crate) fn names(&self, kind: ListKind) -> Option<Arc<Routes<NameTable>>> {
        lock(&self.names).get(&kind).cloned()
    }

    /// Returns the known URIs.
    pub(crate) fn uris(&self) -> Option<Arc<Routes<UriTable>>> {
        lock(&self.uris).clone()
    }

    /// Returns the list merged from these sources.
    fn get(&self, key: &MergedViewKey, sources: &SourceDigests) -> Option<Arc<MergedList>> {
        let lists = lock(&self.lists);
        let (of, list) = lists.get(key)?;
        (of == sources).then(|| Arc::clone(list))
    }

    /// Caches a list unless the servers were replaced, in which case it returns false.
    fn insert(
        &self,
        key: MergedViewKey,
        sources: SourceDigests,
        list: &Arc<MergedList>,
        is_current: impl FnOnce() -> bool,
    ) -> bool {
        let mut lists = lock(&self.lists);
        if !is_current() {
            return false;
        }
        if lists.len() >= MAX_LISTS && !lists.contains_key(&key) {
            lists.clear();
        }
        lists.insert(key, (sources, Arc::clone(list)));
        true
    }
}

/// Merged lists of clients without own lists, and the public names of all items.
#[derive(Debug, Default)]
pub(crate) struct SharedMerges {
    pub(crate) shared: MergeCache,
    /// Locked while names are assigned, until they are visible to all clients.
    tools: Mutex<NameRegistry>,
    prompts: Mutex<NameRegistry>,
}

impl SharedMerges {
    /// Creates merges in which no tool of a server gets one of these public names.
    pub(crate) fn without(reserved: &[&str]) -> Self {
        Self {
            tools: Mutex::new(NameRegistry::without(reserved)),
            ..Self::default()
        }
    }

    /// Releases the names of all servers but these.
    pub(crate) fn keep_names(&self, origins: &[Origin]) {
        for registry in [&self.tools, &self.prompts] {
            lock(registry).keep_only(origins);
        }
    }

    const fn registry(&self, kind: ListKind) -> Option<&Mutex<NameRegistry>> {
        match kind {
            ListKind::Tools => Some(&self.tools),
            ListKind::Prompts => Some(&self.prompts),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => None,
        }
    }

    /// Returns true if the public name is assigned.
    pub(crate) fn is_taken(&self, kind: ListKind, public: &str) -> bool {
        let registry = self.registry(kind);
        registry.is_some_and(|registry| lock(registry).is_taken(public))
    }

    /// Returns true if the public name is, or could become, that of this item.
    pub(crate) fn may_be(&self, kind: ListKind, public: &str, origin: &Origin, name: &str) -> bool {
        let registry = self.registry(kind);
        registry.is_some_and(|registry| lock(registry).may_be(public, origin, name))
    }
}

/// Serves a list request of a client.
pub(crate) async fn page(
    aggregator: &Arc<Aggregator>,
    client: &Arc<DownstreamClient>,
    kind: ListKind,
    params: &str,
    revision: Revision,
) -> Result<RawResult, ServeError> {
    let list = merged_list(aggregator, client, kind, revision).await?;
    let list = gateway_tools::listed(&aggregator.settings.tools, kind, list);
    let params = Object::parse(params).unwrap_or_default();
    let cursor = params.get_str("cursor");
    // A cursor of another type is invalid; ignoring it would return the first page for ever.
    let is_none = params.get_present("cursor").is_none();
    let cursor = cursor.as_deref().or((!is_none).then_some(""));
    let page = list.page(cursor).ok_or_else(|| {
        let why =
            "the cursor is not known, or the list has changed since; begin again without a cursor";
        refuse(ErrorCode::InvalidParams, why, revision)
    })?;
    Ok(page.into())
}

/// Returns the merged list that a client sees.
pub(crate) async fn merged_list(
    aggregator: &Arc<Aggregator>,
    client: &Arc<DownstreamClient>,
    kind: ListKind,
    revision: Revision,
) -> Result<Arc<MergedList>, ServeError> {
    for _ in 0..MAX_REPLACEMENTS {
        let merge = Merge {
            aggregator,
            server_set: &aggregator.server_set(),
            client,
            kind,
            revision,
        };
        // A list of replaced servers is discarded.
        if let Some(list) = merge.run().await {
            return Ok(list);
        }
    }
    let why = "the config of the gateway changed too often during this request; try again";
    Err(refuse(ErrorCode::InternalError, why, revision))
}

/// Merge of the lists of one server set for one client.
struct Merge<'a> {
    aggregator: &'a Arc<Aggregator>,
    server_set: &'a Arc<ServerSet>,
    client: &'a Arc<DownstreamClient>,
    kind: ListKind,
    /// Revision of the client.
    revision: Revision,
}

impl<'a> Merge<'a> {
    /// Returns the merged list; none if the servers were replaced meanwhile.
    async fn run(self) -> Option<Arc<MergedList>> {
        let (server_set, client, kind) = (self.server_set, self.client, self.kind);
        let merges = &self.aggregator.merges;
        let (lists, audience) = self.lists().await;
        let (_, sources) = lists.first()?;
        let digests = digests(&lists);
        let key = MergedViewKey {
            server_set: server_set.version,
            kind,
            client: self.revision,
            principal: client.affinity().into(),
            fingerprint: client.fingerprint.clone(),
        };
        let own = client.own_lists.merges.get(&key, &digests);
        if let Some(list) = own.or_else(|| merges.shared.get(&key, &digests)) {
            return Some(list);
        }
        let cache = self.cache(audience);
        let known = items(sources, self.revision);
        let mut parts = parts(&known);
        server_set.retain(&mut parts, |entry, name| entry.serves(kind, name));
        let uris = self.register_uris(cache, &lists)?;
        let list = Arc::new(match merges.registry(kind) {
            Some(registry) => {
                let names = self.assign_names(registry, cache, sources, &parts)?;
                self.merge_named(&names.table, &uris, parts)
            }
            None => merge::merge(self.format(), &parts, &NameTable::default(), &uris),
        });
        let is_current = || self.aggregator.is_current(server_set);
        let is_inserted = cache.insert(key, digests, &list, is_current);
        is_inserted.then_some(list)
    }

    /// Returns the lists to merge, then those on which their URIs depend, and the audience of all.
    ///
    /// The server of a URI depends on all resources and templates, and that of a view also on the tools, so that it does
    /// not depend on the order in which a client requests the lists.
    async fn lists(&self) -> (Vec<(ListKind, Sources)>, Audience) {
        let fetch =
            |kind| refresh::server_lists(self.aggregator, self.server_set, self.client, kind);
        let (sources, mut audience) = fetch(self.kind).await;
        let mut lists = vec![(self.kind, sources)];
        let is_of_resources = !matches!(self.kind, ListKind::Tools | ListKind::Prompts);
        for other in [ListKind::Resources, ListKind::Templates, ListKind::Tools] {
            let is_related = is_of_resources && other != ListKind::Tools;
            if other != self.kind && (is_related || has_views(&lists)) {
                let (sources, other_audience) = fetch(other).await;
                audience = audience.or(other_audience);
                lists.push((other, sources));
            }
        }
        (lists, audience)
    }

    /// Returns the cache for merged lists: that of the client for lists that no other client sees.
    fn cache(&self, audience: Audience) -> &'a MergeCache {
        match audience {
            Audience::Owner => &self.client.own_lists.merges,
            Audience::All => &self.aggregator.merges.shared,
        }
    }

    /// Assigns public names to the items; none if the servers were replaced meanwhile.
    fn assign_names(
        &self,
        registry: &Mutex<NameRegistry>,
        cache: &MergeCache,
        sources: &Sources,
        parts: &[ListPart<'_>],
    ) -> Option<Arc<Routes<NameTable>>> {
        let (server_set, kind) = (self.server_set, self.kind);
        let mut registry = lock(registry);
        if !self.aggregator.is_current(server_set) {
            return None;
        }
        // Clients are notified of released names before these are assigned again.
        if registry.take_released() {
            list_changes::notify_now(self.aggregator, kind.changed());
        }
        // A public name has the same server for all clients, listed for them or not.
        let others = server_set.other_names(kind, sources);
        let (origins, format) = (server_set.origins(), &server_set.style);
        let table = merge::assign_names(parts, others, &origins, format, &mut registry);
        for conflict in &table.conflicts {
            let origin = origins.get(conflict.server);
            tracing::warn!(
                server = origin.map_or("", |origin| &*origin.name),
                name = &*conflict.name,
                instead = &*conflict.instead,
                "name conflict between servers; item renamed"
            );
        }
        let names = Arc::new(Routes {
            server_set: Arc::clone(server_set),
            table,
        });
        lock(&cache.names).insert(kind, Arc::clone(&names));
        Some(names)
    }

    /// Merges tools or prompts.
    fn merge_named(
        &self,
        names: &NameTable,
        uris: &UriTable,
        mut parts: Vec<ListPart<'_>>,
    ) -> MergedList {
        if self.kind == ListKind::Tools {
            let declared = self.client.declared.under(self.revision);
            self.server_set.retain(&mut parts, |entry, name| {
                tool_filter::lacking(&entry.server, name, declared).is_empty()
            });
        }
        merge::merge(self.format(), &parts, names, uris)
    }

    fn format(&self) -> PageFormat {
        PageFormat {
            kind: self.kind,
            era: self.revision.era(),
            size: self.aggregator.settings.front.page_size,
        }
    }

    /// Returns the URIs in these lists and in those of other clients, so that a URI has the same server for all clients.
    /// None if the servers were replaced meanwhile.
    fn register_uris(&self, cache: &MergeCache, lists: &[(ListKind, Sources)]) -> Option<UriTable> {
        let server_set = self.server_set;
        let mut uris = server_set.uris();
        // Lists that have no URIs do not replace the table.
        if self.kind == ListKind::Prompts || (self.kind == ListKind::Tools && lists.len() == 1) {
            return Some(uris);
        }
        let is_missing = |kind: &ListKind| lists.iter().all(|(of, _)| of != kind);
        let missing = [ListKind::Tools, ListKind::Skills]
            .into_iter()
            .filter(is_missing);
        let nothing: Sources = server_set.entries.iter().map(|_| None).collect();
        let missing: Vec<_> = missing.map(|kind| (kind, nothing.clone())).collect();
        for (kind, sources) in lists.iter().chain(&missing) {
            let mut known = items(sources, self.revision);
            let others = server_set.other_lists(*kind, sources);
            known.extend(others.map(|(server, _, list)| (server, list.items(self.revision))));
            merge::register_uris(*kind, &parts(&known), &mut uris);
        }
        let mut known = lock(&cache.uris);
        if !self.aggregator.is_current(server_set) {
            return None;
        }
        *known = Some(Arc::new(Routes {
            server_set: Arc::clone(server_set),
            table: uris.clone(),
        }));
        Some(uris)
    }
}

impl ServerSet {
    /// Returns the name and prefix of each server.
    pub(crate) fn origins(&self) -> Vec<Origin> {
        self.entries.iter().map(|entry| entry.origin()).collect()
    }

    /// Returns a table without URIs.
    pub(crate) fn uris(&self) -> UriTable {
        UriTable::new(self.entries.iter().map(|entry| &*entry.name))
    }

    /// Returns the names of items that only other clients were shown.
    fn other_names(&self, kind: ListKind, shown: &Sources) -> Vec<(usize, String)> {
        let mut others = Vec::new();
        for (server, entry, list) in self.other_lists(kind, shown) {
            let names = list.names().into_iter();
            let served = names.filter(|name| entry.serves(kind, name));
            others.extend(served.map(|name| (server, name)));
        }
        others
    }

    /// Returns the lists of each server that only other clients were shown.
    fn other_lists(
        &self,
        kind: ListKind,
        shown: &Sources,
    ) -> impl Iterator<Item = (usize, &ServerEntry, Arc<ServerList>)> {
        let all = self.entries.iter().zip(shown).enumerate();
        all.flat_map(move |(server, (entry, shown))| {
            let others = entry.lists.others(kind, shown.as_ref()).into_iter();
            others.map(move |list| (server, &**entry, list))
        })
    }

    /// Removes items by server and name.
    fn retain(&self, parts: &mut [ListPart<'_>], is_kept: impl Fn(&ServerEntry, &str) -> bool) {
        for part in parts {
            let Some(entry) = self.entries.get(part.server) else {
                continue;
            };
            let is_kept = |name| is_kept(entry, name);
            part.items
                .retain(|item| item.key.as_deref().is_none_or(is_kept));
        }
    }
}

fn digests(lists: &[(ListKind, Sources)]) -> SourceDigests {
    let all = lists.iter().flat_map(|(_, sources)| sources);
    all.map(|list| Some(list.as_ref()?.digest)).collect()
}

/// Returns true if one of the lists may name a view.
fn has_views(lists: &[(ListKind, Sources)]) -> bool {
    let mut known = lists.iter().flat_map(|(_, sources)| sources).flatten();
    known.any(|list| list.has_views)
}

/// Returns the items of each server with a list, and its position.
fn items(sources: &Sources, client: Revision) -> Vec<(usize, Arc<ServerItems>)> {
    let present = sources.iter().enumerate();
    present
        .filter_map(|(server, list)| Some((server, list.as_ref()?.items(client))))
        .collect()
}

fn parts(items: &[(usize, Arc<ServerItems>)]) -> Vec<ListPart<'_>> {
    let parts = items.iter().map(|(server, items)| items.part(*server));
    parts.collect()
}
