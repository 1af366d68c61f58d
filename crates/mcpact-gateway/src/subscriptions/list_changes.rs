//! Telling clients of a aggregator that lists have changed.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_wire::id::Id;
use tokio::sync::watch;

use crate::aggregate::aggregator::Aggregator;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::downstream::sink::WeakClientSink;
use crate::sync::lock;

/// ListChanges that come together are told once.
const TOGETHER: Duration = Duration::from_millis(100);

/// ClientRef hears of changes, and what is to be told.
#[derive(Debug, Default)]
pub(crate) struct ListChanges {
    /// Legacy clients, which are told without asking.
    staying: Mutex<Vec<WeakClientSink>>,
    listening: Mutex<HashMap<u64, ListListener>>,
    last: AtomicU64,
    pending: Mutex<BTreeSet<&'static str>>,
    is_over: watch::Sender<bool>,
    /// Tells of other servers.
    turns: watch::Sender<()>,
}

/// A modern client with a stream of its own.
#[derive(Debug)]
struct ListListener {
    guest: Arc<DownstreamClient>,
    sink: ClientSink,
    id: Id,
    filter: ListenFilter,
}

impl ListListener {
    fn hint(&self, method: Method) {
        if self.filter.wants(method, None) {
            let scope = Scope::Request(self.id.clone());
            self.sink.hint(&scope, method, "{}");
        }
    }
}

/// As long as it is held, a client hears of changes.
#[derive(Debug)]
pub(crate) struct ListenerGuard {
    aggregator: Arc<Aggregator>,
    key: u64,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        lock(&self.aggregator.changes.listening).remove(&self.key);
    }
}

impl ListChanges {
    /// Until nobody shall listen any more.
    pub(crate) async fn over(&self) {
        // The sender lives as long as this.
        let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    /// Ends every stream.
    pub(crate) fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// The servers are others from here on.
    pub(crate) fn turn(&self) {
        self.turns.send_replace(());
    }

    /// Tells of other servers from here on.
    pub(crate) fn turns(&self) -> watch::Receiver<()> {
        self.turns.subscribe()
    }

    /// The legacy clients that are there.
    pub(crate) fn staying(&self) -> Vec<ClientSink> {
        let staying = lock(&self.staying);
        staying.iter().filter_map(WeakClientSink::near).collect()
    }

    /// The modern clients that listen.
    pub(crate) fn listening(&self) -> Vec<Arc<DownstreamClient>> {
        let listening = lock(&self.listening);
        let guests = listening.values().map(|one| Arc::clone(&one.guest));
        guests.collect()
    }

    /// Whether there is anybody to tell.
    pub(crate) fn are_heard(&self) -> bool {
        let is_near = |sink: &WeakClientSink| sink.near().is_some();
        !lock(&self.listening).is_empty() || lock(&self.staying).iter().any(is_near)
    }

    /// Whether something is to be told.
    #[cfg(test)]
    pub(crate) fn are_pending(&self) -> bool {
        !lock(&self.pending).is_empty()
    }

    /// A legacy client has come.
    pub(crate) fn settle(&self, sink: WeakClientSink) {
        let mut staying = lock(&self.staying);
        // Those who have gone are counted out before there is need for more room.
        if staying.len() == staying.capacity() {
            staying.retain(|sink| sink.near().is_some());
        }
        staying.push(sink);
    }
}

/// A modern client wants to hear of these.
pub(crate) fn listen_to_lists(
    aggregator: &Arc<Aggregator>,
    guest: &Arc<DownstreamClient>,
    sink: ClientSink,
    id: Id,
    filter: ListenFilter,
) -> ListenerGuard {
    let key = aggregator.changes.last.fetch_add(1, Ordering::Relaxed);
    let guest = Arc::clone(guest);
    let listener = ListListener {
        guest,
        sink,
        id,
        filter,
    };
    lock(&aggregator.changes.listening).insert(key, listener);
    ListenerGuard {
        aggregator: Arc::clone(aggregator),
        key,
    }
}

/// Everything may have changed.
pub(crate) fn announce_all(aggregator: &Arc<Aggregator>) {
    for method in [
        Method::ToolsListChanged,
        Method::PromptsListChanged,
        Method::ResourcesListChanged,
    ] {
        announce(aggregator, method);
    }
}

/// A list has changed; clients are told soon.
pub(crate) fn announce(aggregator: &Arc<Aggregator>, method: Method) {
    if !lock(&aggregator.changes.pending).insert(method.as_str()) {
        return;
    }
    let aggregator = Arc::downgrade(aggregator);
    tokio::spawn(async move {
        tokio::time::sleep(TOGETHER).await;
        if let Some(aggregator) = aggregator.upgrade() {
            tell_now(&aggregator, method);
        }
    });
}

/// Tells at once what is to be told soon, if it is.
pub(crate) fn tell_now(aggregator: &Aggregator, method: Method) {
    if lock(&aggregator.changes.pending).remove(method.as_str()) {
        tell(aggregator, method);
    }
}

fn tell(aggregator: &Aggregator, method: Method) {
    for sink in aggregator.changes.staying() {
        sink.hint(&Scope::Connection, method, "{}");
    }
    for listener in lock(&aggregator.changes.listening).values() {
        listener.hint(method);
    }
}

/// Tells one client, and no other.
pub(crate) fn tell_guest(aggregator: &Aggregator, guest: &DownstreamClient, method: Method) {
    if let Some(sink) = guest.weak_sink().and_then(WeakClientSink::near) {
        sink.hint(&Scope::Connection, method, "{}");
    }
    for listener in lock(&aggregator.changes.listening).values() {
        if listener.guest.is(guest) {
            listener.hint(method);
        }
    }
}
