//! Subscriptions of downstream clients to changes, across connections and eras.

pub(crate) mod aggregate_listen;
pub(crate) mod legacy;
pub(crate) mod legacy_on_modern;
pub(crate) mod list_changes;
pub(crate) mod listen;
pub(crate) mod log_levels;
pub(crate) mod reopen;
pub(crate) mod subscribers;
pub(crate) mod watched_uris;

use std::sync::{Arc, Mutex};

use mcpact_engine::server::Scope;
use mcpact_spec::Method;

use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::sync::lock;
use crate::upstream::saved_client::SavedClient;

/// Clients that are notified of changes, with the scope of their notifications.
#[derive(Debug, Default)]
pub(crate) struct NotificationSinks(Mutex<Vec<(WeakClientSink, Scope)>>);

impl NotificationSinks {
    /// Adds the session of a legacy client, or the stream of a modern one.
    pub(crate) fn add(&self, sink: WeakClientSink, scope: Scope) {
        let mut all = lock(&self.0);
        // Remove disconnected clients before the vector grows.
        if all.len() == all.capacity() {
            all.retain(|(sink, _)| sink.upgrade().is_some());
        }
        all.push((sink, scope));
    }

    /// Returns the connected clients.
    pub(crate) fn connected(&self) -> Vec<(ClientSink, Scope)> {
        let all = lock(&self.0);
        let connected = all.iter();
        connected
            .filter_map(|(sink, scope)| Some((sink.upgrade()?, scope.clone())))
            .collect()
    }

    /// Notifies all connected clients.
    pub(crate) fn notify(&self, method: Method) {
        for (sink, scope) in self.connected() {
            sink.try_notify(&scope, method, "{}");
        }
    }

    /// Returns the bindings of initialized clients that have no connection to the server yet.
    pub(crate) fn waiting_clients(&self) -> Vec<Arc<SavedClient>> {
        let connected = self.connected().into_iter();
        let bindings = connected.filter_map(|(sink, _)| sink.state()?.pending().cloned());
        bindings.filter(|binding| binding.is_waiting()).collect()
    }
}
