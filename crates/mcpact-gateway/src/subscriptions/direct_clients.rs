//! ClientRef comes to the server's own address, and hears of what changes here rather than at the server.

use std::sync::{Arc, Mutex};

use mcpact_engine::server::Scope;
use mcpact_spec::Method;

use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::sync::lock;
use crate::upstream::saved_client::SavedClient;

/// Legacy clients, and streams of modern ones.
#[derive(Debug, Default)]
pub(crate) struct DirectClients(Mutex<Vec<(WeakClientSink, Scope)>>);

impl DirectClients {
    /// Somebody who hears what belongs to this.
    pub(crate) fn add(&self, sink: &ClientSink, scope: Scope) {
        let mut all = lock(&self.0);
        // Those who have gone make room before more is needed.
        if all.len() == all.capacity() {
            all.retain(|(sink, _)| sink.upgrade().is_some());
        }
        all.push((sink.downgrade(), scope));
    }

    /// Returns the clients that wait for notifications of an idle server.
    pub(crate) fn waiting_clients(&self) -> Vec<Arc<SavedClient>> {
        let all = lock(&self.0);
        let near = all.iter().filter_map(|(sink, _)| sink.upgrade());
        let pending = near.filter_map(|sink| sink.state()?.pending().cloned());
        pending.filter(|client| client.is_waiting()).collect()
    }

    /// Tells everybody who wants to hear of it.
    pub(crate) fn tell(&self, method: Method) {
        let all = lock(&self.0);
        for (sink, scope) in all.iter() {
            if let Some(sink) = sink.upgrade() {
                sink.try_notify(scope, method, "{}");
            }
        }
    }
}
