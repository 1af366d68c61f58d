//! Lists of the own instances of a client.
//!
//! A client without an instance is shown the list of an internal instance, which no client uses. When it gets its own
//! instance and that has another list, the client is notified.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpact::server::backend::ClientIdentity;
use mcpact_spec::{Era, Method};

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::lists::cache::ChangeCounters;
use crate::lists::cache_entry::{CacheEntry, ListVersion};
use crate::lists::merged::MergeCache;
use crate::lists::request::ListRequest;
use crate::lists::scope::{ListScope, list_scope};
use crate::lists::server_list::ServerList;
use crate::subscriptions::list_changes;
use crate::sync::lock;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;

/// Lists of one client.
#[derive(Debug, Default)]
pub(crate) struct OwnLists {
    lists: Mutex<HashMap<(u64, ListKind), OwnListEntry>>,
    /// Connection to each server on which the lists were refreshed last.
    refreshed: Mutex<HashMap<u64, u64>>,
    /// Merged lists that contain a list of an own instance.
    pub(crate) merges: MergeCache,
}

#[derive(Debug, Default)]
struct OwnListEntry {
    cached: Arc<CacheEntry>,
    /// Digest of the list that the client was shown last; none after a change notification.
    shown: Option<[u8; 32]>,
}

impl OwnLists {
    pub(crate) fn entry(&self, server: u64, kind: ListKind) -> Arc<CacheEntry> {
        let mut lists = lock(&self.lists);
        Arc::clone(&lists.entry((server, kind)).or_default().cached)
    }

    /// Records that the client is shown this list, of any scope.
    pub(crate) fn note_shown(&self, server: u64, kind: ListKind, list: &ServerList) {
        let mut lists = lock(&self.lists);
        lists.entry((server, kind)).or_default().shown = Some(list.digest);
    }

    /// Returns true, once, if the client was shown another list and must be notified.
    pub(crate) fn must_notify(&self, server: u64, kind: ListKind, list: &ServerList) -> bool {
        let mut lists = lock(&self.lists);
        let own = lists.get_mut(&(server, kind));
        own.is_some_and(|own| {
            let is_other = |shown: &mut [u8; 32]| *shown != list.digest;
            own.shown.take_if(is_other).is_some()
        })
    }

    /// Records that the client is notified of changed lists.
    fn note_notified(&self, server: u64, method: Method) {
        let mut lists = lock(&self.lists);
        for ((of, kind), own) in lists.iter_mut() {
            if *of == server && kind.changed() == method {
                own.shown = None;
            }
        }
    }

    /// Returns the lists of a server that the client was shown.
    fn kinds(&self, server: u64) -> Vec<ListKind> {
        let lists = lock(&self.lists);
        let of_server = lists.keys().filter(|(of, _)| *of == server);
        of_server.map(|(_, kind)| *kind).collect()
    }

    /// Returns true once for each connection.
    fn begin_refresh(&self, server: u64, session: u64) -> bool {
        lock(&self.refreshed).insert(server, session) != Some(session)
    }

    /// Removes the lists of removed servers.
    pub(crate) fn retain(&self, is_present: impl Fn(u64) -> bool) {
        lock(&self.lists).retain(|(server, _), _| is_present(*server));
        lock(&self.refreshed).retain(|server, _| is_present(*server));
    }
}

impl DownstreamClient {
    /// Returns the list of the client's own instance, if the client is shown that.
    pub(crate) fn own_list(&self, entry: &ServerEntry, kind: ListKind) -> Option<Arc<CacheEntry>> {
        if entry.list_scope(true) != ListScope::Own {
            return None;
        }
        let instance = self.own_instance(entry)?;
        let cached = self.own_lists.entry(entry.number, kind);
        let changes = self.own_version(entry, kind).changes;
        let is_known = || cached.unchanged(changes).is_some();
        (instance.session.is_some() || is_known()).then_some(cached)
    }

    /// Returns the version of a list that is fetched from the client's own instance now.
    pub(crate) fn own_version(&self, entry: &ServerEntry, kind: ListKind) -> ListVersion {
        let instance = self.own_instance(entry);
        let session = instance.as_ref().and_then(|instance| instance.session);
        let own = instance.map_or(0, |instance| instance.changes.counters.get(kind));
        let shared = entry.lists.version(kind);
        ListVersion {
            // Both only grow, and a new version of the server changes the lists of all clients.
            changes: own + shared.changes,
            starts: session.unwrap_or_default(),
            ..shared
        }
    }
}

impl ServerEntry {
    /// Returns the scope of the list that a client is shown.
    pub(crate) fn list_scope(&self, has_instance: bool) -> ListScope {
        let era = self.profile().map(|profile| profile.revision.era());
        let sharing = self.server.shared.sharing_policy();
        list_scope(sharing, era, has_instance)
    }
}

/// Refreshes the lists that a client was shown as soon as it has its own instance, which may have others.
pub(crate) fn refresh_on_new_instance(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    client: &Arc<DownstreamClient>,
) {
    if entry.list_scope(true) != ListScope::Own {
        return;
    }
    let session = client.own_instance(entry).and_then(|own| own.session);
    if session.is_some_and(|session| client.own_lists.begin_refresh(entry.number, session)) {
        refresh(aggregator, entry, client);
    }
}

/// Refreshes the own lists of a client that may be outdated, if its instance is running.
pub(crate) fn refresh(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    client: &Arc<DownstreamClient>,
) {
    for kind in client.own_lists.kinds(entry.number) {
        let request = ListRequest::new(aggregator, entry, client, kind);
        if request.scope == ListScope::Own {
            request.refresh();
        }
    }
}

/// Notifies the clients of an instance of a changed list.
pub(crate) fn notify_owner(
    aggregator: &Aggregator,
    entry: &ServerEntry,
    owner: u64,
    method: Method,
) {
    let is_owner = |instance: OwnInstance| instance.changes.number == owner;
    let mut owners = clients(aggregator);
    owners.retain(|client| client.own_instance(entry).is_some_and(is_owner));
    for client in &owners {
        client.own_lists.note_notified(entry.number, method);
    }
    owners.dedup_by(|one, other| one.is(other));
    for client in owners {
        list_changes::notify_client(aggregator, &client, method);
    }
}

/// Returns all known clients.
pub(crate) fn clients(aggregator: &Aggregator) -> Vec<Arc<DownstreamClient>> {
    let legacy = aggregator.changes.legacy_clients();
    let mut clients: Vec<_> = legacy
        .iter()
        .filter_map(|sink| sink.state()?.aggregate().cloned())
        .collect();
    clients.extend(lock(&aggregator.modern_clients).all());
    // A client with a stream may have been evicted from the modern clients.
    for listener in aggregator.changes.listening() {
        if !clients.iter().any(|client| Arc::ptr_eq(client, &listener)) {
            clients.push(listener);
        }
    }
    clients
}

/// Next number of an owner.
static OWNERS: AtomicU64 = AtomicU64::new(1);

/// List changes that an instance reported to its owner.
#[derive(Debug)]
pub(crate) struct OwnListChanges {
    number: u64,
    counters: ChangeCounters,
}

impl Default for OwnListChanges {
    fn default() -> Self {
        Self {
            number: OWNERS.fetch_add(1, Ordering::Relaxed),
            counters: ChangeCounters::default(),
        }
    }
}

impl OwnListChanges {
    /// Returns the number of the owner.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Records a notification of the instance.
    pub(crate) fn note(&self, method: Method) {
        self.counters.note(method);
    }
}

/// Instance of a client in its present state.
#[derive(Clone, Debug)]
pub(crate) struct OwnInstance {
    changes: Arc<OwnListChanges>,
    /// Number of the open connection.
    session: Option<u64>,
}

impl OwnInstance {
    fn of(binding: &ServerBinding) -> Self {
        let connection = binding.open_connection();
        Self {
            changes: Arc::clone(&binding.slot.own_changes),
            session: connection.map(|connection| connection.session),
        }
    }
}

impl ServerBinding {
    /// Returns the own instance of the client. Only legacy servers have one; after a change of era it is that of the
    /// new binding.
    pub(crate) fn own_instance(&self) -> OwnInstance {
        let modern = self.rebind().filter(|own| own.era == Era::Modern);
        let next = modern.and_then(|own| own.client.binding.get());
        OwnInstance::of(next.map_or(self, |next| next))
    }
}

/// Returns the instance of modern clients with these capabilities, if they had one.
pub(crate) fn instance_of(
    server: &UpstreamServer,
    capabilities: &str,
    identity: &ClientIdentity,
) -> Option<OwnInstance> {
    let pool = server.known_pool(capabilities, identity)?;
    Some(OwnInstance::of(&ServerBinding::of_pool(pool)))
}
