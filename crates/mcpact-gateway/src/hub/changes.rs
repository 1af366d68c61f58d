//! Telling clients of a hub that lists have changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_wire::id::Id;
use tokio::sync::watch;

use super::guest::Guest;
use super::{Hub, lock};
use crate::bridge::{Ear, FarEar};

/// Changes that come together are told once.
const TOGETHER: Duration = Duration::from_millis(100);

/// Who hears of changes, and what is to be told.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Legacy clients, which are told without asking.
    staying: Mutex<Vec<FarEar>>,
    listening: Mutex<HashMap<u64, Listener>>,
    last: AtomicU64,
    pending: Mutex<BTreeSet<&'static str>>,
    is_over: watch::Sender<bool>,
    /// Tells of other servers.
    turns: watch::Sender<()>,
}

/// A modern client with a stream of its own.
#[derive(Debug)]
struct Listener {
    guest: Arc<Guest>,
    ear: Ear,
    id: Id,
    filter: ListenFilter,
}

impl Listener {
    fn hint(&self, method: Method) {
        if self.filter.wants(method, None) {
            let scope = Scope::Request(self.id.clone());
            self.ear.hint(&scope, method, "{}");
        }
    }
}

/// As long as it is held, a client hears of changes.
#[derive(Debug)]
pub(super) struct Listening {
    hub: Arc<Hub>,
    key: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        lock(&self.hub.changes.listening).remove(&self.key);
    }
}

impl Changes {
    /// Until nobody shall listen any more.
    pub(super) async fn over(&self) {
        // The sender lives as long as this.
        let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Ends every stream.
    pub(super) fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// The servers are others from here on.
    pub(super) fn turn(&self) {
        self.turns.send_replace(());
    }

    /// Tells of other servers from here on.
    pub(super) fn turns(&self) -> watch::Receiver<()> {
        self.turns.subscribe()
    }

    /// The legacy clients that are there.
    pub(super) fn staying(&self) -> Vec<Ear> {
        let staying = lock(&self.staying);
        staying.iter().filter_map(FarEar::near).collect()
    }

    /// The modern clients that listen.
    pub(super) fn listening(&self) -> Vec<Arc<Guest>> {
        let listening = lock(&self.listening);
        let guests = listening.values().map(|one| Arc::clone(&one.guest));
        guests.collect()
    }

    /// Whether there is anybody to tell.
    pub(super) fn are_heard(&self) -> bool {
        let is_near = |ear: &FarEar| ear.near().is_some();
        !lock(&self.listening).is_empty() || lock(&self.staying).iter().any(is_near)
    }

    /// Whether something is to be told.
    #[cfg(test)]
    pub(super) fn are_pending(&self) -> bool {
        !lock(&self.pending).is_empty()
    }

    /// A legacy client has come.
    pub(super) fn settle(&self, ear: FarEar) {
        let mut staying = lock(&self.staying);
        // Those who have gone are counted out before there is need for more room.
        if staying.len() == staying.capacity() {
            staying.retain(|ear| ear.near().is_some());
        }
        staying.push(ear);
    }
}

impl Hub {
    /// A modern client wants to hear of these.
    pub(super) fn listen_to_lists(
        self: &Arc<Self>,
        guest: &Arc<Guest>,
        ear: Ear,
        id: Id,
        filter: ListenFilter,
    ) -> Listening {
        let key = self.changes.last.fetch_add(1, Ordering::Relaxed);
        let guest = Arc::clone(guest);
        let listener = Listener {
            guest,
            ear,
            id,
            filter,
        };
        lock(&self.changes.listening).insert(key, listener);
        Listening {
            hub: Arc::clone(self),
            key,
        }
    }

    /// Everything may have changed.
    pub(super) fn announce_all(self: &Arc<Self>) {
        for method in [
            Method::ToolsListChanged,
            Method::PromptsListChanged,
            Method::ResourcesListChanged,
        ] {
            self.announce(method);
        }
    }

    /// A list has changed; clients are told soon.
    pub(super) fn announce(self: &Arc<Self>, method: Method) {
        if !lock(&self.changes.pending).insert(method.as_str()) {
            return;
        }
        let hub = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(TOGETHER).await;
            if let Some(hub) = hub.upgrade() {
                hub.tell_now(method);
            }
        });
    }

    /// Tells at once what is to be told soon, if it is.
    pub(super) fn tell_now(&self, method: Method) {
        if lock(&self.changes.pending).remove(method.as_str()) {
            self.tell(method);
        }
    }

    fn tell(&self, method: Method) {
        for ear in self.changes.staying() {
            ear.hint(&Scope::Connection, method, "{}");
        }
        for listener in lock(&self.changes.listening).values() {
            listener.hint(method);
        }
    }

    /// Tells one client, and no other.
    pub(super) fn tell_guest(&self, guest: &Guest, method: Method) {
        if let Some(ear) = guest.far_ear().and_then(FarEar::near) {
            ear.hint(&Scope::Connection, method, "{}");
        }
        for listener in lock(&self.changes.listening).values() {
            if listener.guest.is(guest) {
                listener.hint(method);
            }
        }
    }
}
