//! What a client is shown that nobody else is: the lists of its own instances.
//!
//! Until it has an instance it is shown a list that is nobody's. What its own instance has instead it is told as soon as
//! there is one.

use crate::lists::own_instance;
use crate::lists::refresh;
use crate::subscriptions::list_changes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mcpact_spec::Method;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::lists::cache::CacheEntry;
use crate::lists::cache::ListVersion;
use crate::lists::merged::MergeCache;
use crate::lists::own_instance::OwnInstance;
use crate::lists::request::ListRequest;
use crate::lists::scope::InstanceKnown;
use crate::lists::scope::ListScope;
use crate::lists::scope::whose;
use crate::lists::server_list::ServerList;
use crate::sync::lock;

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
    /// What the client was shown last, unless it was told since that there is something else.
    shown: Option<[u8; 32]>,
}

impl OwnLists {
    pub(crate) fn slot(&self, server: u64, kind: ListKind) -> Arc<CacheEntry> {
        let mut lists = lock(&self.lists);
        Arc::clone(&lists.entry((server, kind)).or_default().slot)
    }

    /// The client is shown this, whoever's it is.
    pub(crate) fn shows(&self, server: u64, kind: ListKind, listing: &ServerList) {
        let mut lists = lock(&self.lists);
        lists.entry((server, kind)).or_default().shown = Some(listing.digest());
    }

    /// Whether the client was shown something else, and is to be told; it is told once.
    pub(crate) fn is_news(&self, server: u64, kind: ListKind, listing: &ServerList) -> bool {
        let mut lists = lock(&self.lists);
        let list = lists.get_mut(&(server, kind));
        list.is_some_and(|list| {
            let is_other = |shown: &mut [u8; 32]| *shown != listing.digest();
            list.shown.take_if(is_other).is_some()
        })
    }

    /// The client is told that lists are not what it was shown.
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
        if entry.whose(InstanceKnown::Yes) != ListScope::Own {
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
            // Both only grow, and another version of the server has changed for everybody.
            changes: own + common.changes,
            wakes: session.unwrap_or_default(),
            ..common
        }
    }
}

impl ServerEntry {
    /// ListScope list a client is shown.
    pub(crate) fn whose(&self, acquainted: InstanceKnown) -> ListScope {
        let era = self.known().map(|profile| profile.revision.era());
        whose(own_instance::sharing(&self.server), era, acquainted)
    }
}

/// Looks at the lists that a client has seen as soon as it has an instance of its own, which may have others.
pub(crate) fn look_at_own(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    guest: &Arc<DownstreamClient>,
) {
    if entry.whose(InstanceKnown::Yes) != ListScope::Own {
        return;
    }
    let session = guest.own_instance(entry).and_then(|own| own.session);
    if session.is_some_and(|session| guest.own.looks(entry.number, session)) {
        look_at_own_again(aggregator, entry, guest);
    }
}

/// Looks at them again if they may not be true any more, and the instance is awake.
pub(crate) fn look_at_own_again(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
    guest: &Arc<DownstreamClient>,
) {
    for kind in guest.own.kinds(entry.number) {
        let errand = ListRequest::new(entry, guest, kind);
        if errand.whose == ListScope::Own {
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
