//! Lists of the own instances of a client.
//!
//! A client without an instance is shown the list of an internal instance, which no client uses. When it gets its own
//! instance and that has another list, the client is notified.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Era, Method};
use mcpact_wire::envelope::Params;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::connection::pool::ConnectionPool;
use crate::downstream::client::DownstreamClient;
use crate::error::ServeError;
use crate::lists::cache::{CacheEntry, ListVersion};
use crate::lists::merged::MergeCache;
use crate::lists::refresh;
use crate::lists::request::ListRequest;
use crate::lists::scope::{ListScope, list_scope};
use crate::lists::server_list::ServerList;
use crate::subscriptions::list_changes;
use crate::supervisor::{InstanceSharing, StartCause};
use crate::sync::lock;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::{LegacyHello, ReachedServer, mapped};
use crate::upstream::affinity::AffinityKey;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::SavedHello;
use crate::upstream::rebind::Rebind;

/// What one client is shown.
#[derive(Debug, Default)]
pub(crate) struct OwnLists {
    lists: Mutex<HashMap<(u64, ListKind), OwnListEntry>>,
    /// For which connection to each server its lists were looked at.
    looked: Mutex<HashMap<u64, u64>>,
    /// What its lists are together with those of other servers.
    pub(crate) merges: MergeCache,
}

#[derive(Debug, Default)]
struct OwnListEntry {
    slot: Arc<CacheEntry>,
    /// Digest of the list that the client was shown last; none after a change notification.
    shown: Option<[u8; 32]>,
}

impl OwnLists {
    pub(crate) fn slot(&self, server: u64, kind: ListKind) -> Arc<CacheEntry> {
        let mut lists = lock(&self.lists);
        Arc::clone(&lists.entry((server, kind)).or_default().slot)
    }

    /// Records that the client is shown this list, of any scope.
    pub(crate) fn shows(&self, server: u64, kind: ListKind, listing: &ServerList) {
        let mut lists = lock(&self.lists);
        lists.entry((server, kind)).or_default().shown = Some(listing.digest());
    }

    /// Returns true, once, if the client was shown another list and must be notified.
    pub(crate) fn is_news(&self, server: u64, kind: ListKind, listing: &ServerList) -> bool {
        let mut lists = lock(&self.lists);
        let list = lists.get_mut(&(server, kind));
        list.is_some_and(|list| {
            let is_other = |shown: &mut [u8; 32]| *shown != listing.digest();
            list.shown.take_if(is_other).is_some()
        })
    }

    /// Records that the client is notified of changed lists.
    fn told(&self, server: u64, method: Method) {
        let mut lists = lock(&self.lists);
        for ((of, kind), list) in lists.iter_mut() {
            if *of == server && kind.changed() == method {
                list.shown = None;
            }
        }
    }

    /// The lists that the client has seen of a server.
    pub(crate) fn kinds(&self, server: u64) -> Vec<ListKind> {
        let lists = lock(&self.lists);
        let of_it = lists.keys().filter(|(of, _)| *of == server);
        of_it.map(|(_, kind)| *kind).collect()
    }

    /// Whether the lists have not been looked at yet on this connection, on which they are from here on.
    fn looks(&self, server: u64, session: u64) -> bool {
        lock(&self.looked).insert(server, session) != Some(session)
    }

    /// Forgets the servers that are not there.
    pub(crate) fn stay_at(&self, is_there: impl Fn(u64) -> bool) {
        lock(&self.lists).retain(|(server, _), _| is_there(*server));
        lock(&self.looked).retain(|server, _| is_there(*server));
    }
}

impl DownstreamClient {
    /// The list of its own instance, if that is what it is shown.
    pub(crate) fn own_slot(&self, entry: &ServerEntry, kind: ListKind) -> Option<Arc<CacheEntry>> {
        if entry.list_scope(true) != ListScope::Own {
            return None;
        }
        let instance = self.own_instance(entry)?;
        let slot = self.own.slot(entry.number, kind);
        let changes = self.own_basis(entry, kind).changes;
        let is_known = || slot.unchanged(changes).is_some();
        (instance.session.is_some() || is_known()).then_some(slot)
    }

    /// What a list of its own instance rests on that is fetched now.
    pub(crate) fn own_basis(&self, entry: &ServerEntry, kind: ListKind) -> ListVersion {
        let instance = self.own_instance(entry);
        let own = instance.map_or(0, |instance| instance.changes_of(kind));
        let session = instance.and_then(|instance| instance.session);
        let common = entry.basis(kind);
        ListVersion {
            // Both only grow, and a new version of the server changes the lists of all clients.
            changes: own + common.changes,
            wakes: session.unwrap_or_default(),
            ..common
        }
    }
}

impl ServerEntry {
    /// Returns the scope of the list that a client is shown.
    pub(crate) fn list_scope(&self, has_instance: bool) -> ListScope {
        let era = self.known().map(|profile| profile.revision.era());
        let sharing = self.server.shared.sharing_policy();
        list_scope(sharing, era, has_instance)
    }
}

/// Looks at the lists that a client has seen as soon as it has an instance of its own, which may have others.
pub(crate) fn look_at_own(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    guest: &Arc<DownstreamClient>,
) {
    if entry.list_scope(true) != ListScope::Own {
        return;
    }
    let session = guest.own_instance(entry).and_then(|own| own.session);
    if session.is_some_and(|session| guest.own.looks(entry.number, session)) {
        look_at_own_again(aggregator, entry, guest);
    }
}

/// Refreshes these lists if they may be outdated and the instance is running.
pub(crate) fn look_at_own_again(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    guest: &Arc<DownstreamClient>,
) {
    for kind in guest.own.kinds(entry.number) {
        let errand = ListRequest::new(entry, guest, kind);
        if errand.scope == ListScope::Own {
            refresh::look_anew(aggregator, &errand);
        }
    }
}

/// An instance says to its owner that a list has changed.
pub(crate) fn tell_owner(aggregator: &Aggregator, entry: &ServerEntry, owner: u64, method: Method) {
    let is_its = |instance: OwnInstance| instance.owner == owner;
    let mut owners = guests(aggregator);
    owners.retain(|guest| guest.own_instance(entry).is_some_and(is_its));
    for guest in &owners {
        guest.own.told(entry.number, method);
    }
    owners.dedup_by(|one, other| one.is(other));
    for guest in owners {
        list_changes::notify_client(aggregator, &guest, method);
    }
}

/// The clients that are there.
pub(crate) fn guests(aggregator: &Aggregator) -> Vec<Arc<DownstreamClient>> {
    let staying = aggregator.changes.legacy_clients();
    let mut guests: Vec<_> = staying
        .iter()
        .filter_map(|sink| sink.state()?.aggregate().cloned())
        .collect();
    guests.extend(lock(&aggregator.visitors).all());
    // One that listens may have been forgotten among the others.
    for listener in aggregator.changes.listening() {
        if !guests.iter().any(|guest| Arc::ptr_eq(guest, &listener)) {
            guests.push(listener);
        }
    }
    guests
}

/// What tells the owners of instances from each other.
static OWNERS: AtomicU64 = AtomicU64::new(1);

/// Number of list changes that an instance reported to its owner.
#[derive(Debug)]
pub(crate) struct OwnListChanges {
    number: u64,
    changes: [AtomicU64; ListKind::ALL.len()],
}

impl Default for OwnListChanges {
    fn default() -> Self {
        Self {
            number: OWNERS.fetch_add(1, Ordering::Relaxed),
            changes: [const { AtomicU64::new(0) }; ListKind::ALL.len()],
        }
    }
}

impl OwnListChanges {
    /// ListScope they are.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The instance says that something has changed.
    pub(crate) fn note(&self, method: Method) {
        let all = ListKind::ALL.into_iter();
        for kind in all.filter(|kind| kind.changed() == method) {
            self.changes[kind as usize].fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// An instance of a client, as it is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnInstance {
    /// What its owner is known by.
    pub(crate) owner: u64,
    /// Tells its connection from those before, if there is one.
    pub(crate) session: Option<u64>,
    changes: [u64; ListKind::ALL.len()],
}

impl OwnInstance {
    fn of(binding: &ServerBinding) -> Self {
        let own_changes = binding.slot().own_changes();
        let changes = own_changes.changes.each_ref();
        Self {
            owner: own_changes.number,
            session: binding
                .open_connection()
                .map(|connection| connection.session),
            changes: changes.map(|count| count.load(Ordering::Acquire)),
        }
    }

    /// How often a list of it has changed.
    pub(crate) const fn changes_of(&self, kind: ListKind) -> u64 {
        self.changes[kind as usize]
    }
}

impl ServerBinding {
    /// Returns the own instance of the client. Only legacy servers have one; after a change of era it is that of the
    /// new binding.
    pub(crate) fn own_instance(&self) -> OwnInstance {
        let modern = self.rebind().filter(|own| own.era() == Era::Modern);
        let next = modern.and_then(Rebind::next);
        OwnInstance::of(next.map_or(self, |next| next))
    }
}

/// The instance of modern clients that declare this, if they have ever had one.
pub(crate) fn instance_of(
    server: &UpstreamServer,
    capabilities: &str,
    identity: &ClientIdentity,
) -> Option<OwnInstance> {
    let pool = server.known_pool(capabilities, identity)?;
    let binding = ServerBinding::passing(pool.first(), Some(pool));
    Some(OwnInstance::of(&binding))
}

/// Binding for requests of the gateway itself, with the capabilities of clients that sent `hello`.
pub(crate) async fn internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Result<Arc<ServerBinding>, ServeError> {
    let declared = declared(hello);
    let raw = declared.raw().to_owned();
    let kind = server.kind(internal_key(principal, &raw), || {
        let offer = server.offer(declared, server.own_info());
        let shared = Arc::clone(&server.shared);
        ConnectionPool::new(shared, offer, InstanceSharing::Internal, 1)
    });
    let reached = server.reach(kind.pool.first(), Some(&kind.pool), StartCause::Request);
    let reached = reached.await.map_err(ServeError::from)?;
    let ReachedServer { slot, pool, .. } = reached;
    Ok(Arc::new(ServerBinding::passing(slot, pool)))
}

/// The same, if its instance runs.
pub(crate) fn running_internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Option<Arc<ServerBinding>> {
    let declared = declared(hello);
    let kind = server
        .guests()
        .known(internal_key(principal, declared.raw()))?;
    kind.pool.open_connection()?;
    let pool = Arc::clone(&kind.pool);
    Some(Arc::new(ServerBinding::passing(pool.first(), Some(pool))))
}

fn internal_key<'a>(principal: &'a str, capabilities: &'a str) -> AffinityKey<'a> {
    AffinityKey {
        principal,
        mark: &ClientKey::None,
        sharing: InstanceSharing::Internal,
        capabilities,
    }
}

/// What a client declares that began like this, in the words of a legacy server.
fn declared(hello: &SavedHello) -> CapabilitySet {
    match hello {
        SavedHello::Request { capabilities, .. } => mapped(capabilities),
        SavedHello::Handshake { params } => {
            let params = Params {
                raw: Some(params),
                ..Params::default()
            };
            let newcomer = LegacyHello::parse(&params);
            newcomer.map_or_else(|| mapped("{}"), |newcomer| newcomer.mapped())
        }
    }
}
