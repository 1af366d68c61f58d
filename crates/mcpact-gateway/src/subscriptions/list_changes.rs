//! Notifications to clients of an aggregator that lists have changed.

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
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::subscriptions::NotificationSinks;
use crate::subscriptions::reopen::LIST_CHANGES;
use crate::sync::{OnDrop, lock};

/// Time window in which changes are combined into one notification.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Receivers of list changes, and the pending notifications.
#[derive(Debug, Default)]
pub(crate) struct ListChanges {
    /// Legacy clients, which receive all changes.
    legacy: NotificationSinks,
    /// Streams of modern clients.
    listening: Mutex<HashMap<u64, ListListener>>,
    last: AtomicU64,
    pending: Mutex<BTreeSet<&'static str>>,
    is_closed: watch::Sender<bool>,
    /// Notified when the server set changes.
    server_changes: watch::Sender<()>,
}

/// Change stream of a modern client.
#[derive(Debug)]
pub(crate) struct ListListener {
    pub(crate) client: Arc<DownstreamClient>,
    pub(crate) sink: ClientSink,
    pub(crate) id: Id,
    pub(crate) filter: ListenFilter,
}

impl ListListener {
    fn notify(&self, method: Method) {
        if self.filter.wants(method, None) {
            let scope = Scope::Request(self.id.clone());
            self.sink.try_notify(&scope, method, "{}");
        }
    }
}

impl ListChanges {
    /// Waits until all streams end.
    pub(crate) async fn closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // The sender lives as long as this.
        let _ = is_closed.wait_for(|is_closed| *is_closed).await;
    }

    /// Ends every stream.
    pub(crate) fn end(&self) {
        self.is_closed.send_replace(true);
    }

    /// Notifies the change streams of a new server set.
    pub(crate) fn server_set_changed(&self) {
        self.server_changes.send_replace(());
    }

    /// Subscribes to changes of the server set.
    pub(crate) fn server_changes(&self) -> watch::Receiver<()> {
        self.server_changes.subscribe()
    }

    /// Returns the connected legacy clients.
    pub(crate) fn legacy_clients(&self) -> Vec<ClientSink> {
        let connected = self.legacy.connected();
        connected.into_iter().map(|(sink, _)| sink).collect()
    }

    /// Returns the modern clients with a stream.
    pub(crate) fn listening(&self) -> Vec<Arc<DownstreamClient>> {
        let listening = lock(&self.listening);
        let clients = listening.values().map(|one| Arc::clone(&one.client));
        clients.collect()
    }

    /// Returns true if any client receives changes.
    pub(crate) fn has_receivers(&self) -> bool {
        !lock(&self.listening).is_empty() || !self.legacy.connected().is_empty()
    }

    /// Returns true if a notification is pending.
    #[cfg(test)]
    pub(crate) fn are_pending(&self) -> bool {
        !lock(&self.pending).is_empty()
    }

    /// Adds a legacy client.
    pub(crate) fn add_legacy(&self, sink: WeakClientSink) {
        self.legacy.add(sink, Scope::Connection);
    }
}

/// Registers the stream of a modern client until the guard is dropped.
pub(crate) fn listen_to_lists(
    aggregator: &Aggregator,
    listener: ListListener,
) -> OnDrop<impl FnOnce()> {
    let changes = &aggregator.changes;
    let key = changes.last.fetch_add(1, Ordering::Relaxed);
    lock(&changes.listening).insert(key, listener);
    OnDrop::new(move || drop(lock(&changes.listening).remove(&key)))
}

/// Announces a change of every list.
pub(crate) fn announce_all(aggregator: &Arc<Aggregator>) {
    for method in LIST_CHANGES {
        announce(aggregator, method);
    }
}

/// Announces a change of a list; clients are notified after the debounce time.
pub(crate) fn announce(aggregator: &Arc<Aggregator>, method: Method) {
    if !lock(&aggregator.changes.pending).insert(method.as_str()) {
        return;
    }
    let aggregator = Arc::downgrade(aggregator);
    tokio::spawn(async move {
        tokio::time::sleep(DEBOUNCE).await;
        if let Some(aggregator) = aggregator.upgrade() {
            notify_now(&aggregator, method);
        }
    });
}

/// Sends a pending notification at once.
pub(crate) fn notify_now(aggregator: &Aggregator, method: Method) {
    let changes = &aggregator.changes;
    if !lock(&changes.pending).remove(method.as_str()) {
        return;
    }
    changes.legacy.notify(method);
    for listener in lock(&changes.listening).values() {
        listener.notify(method);
    }
}

/// Notifies one client only.
pub(crate) fn notify_client(aggregator: &Aggregator, client: &DownstreamClient, method: Method) {
    if let Some(sink) = client.saved.sink.get().and_then(WeakClientSink::upgrade) {
        sink.try_notify(&Scope::Connection, method, "{}");
    }
    for listener in lock(&aggregator.changes.listening).values() {
        if listener.client.is(client) {
            listener.notify(method);
        }
    }
}
