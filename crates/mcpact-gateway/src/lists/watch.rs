//! Subscription of the gateway to the list changes of a modern server.

use std::sync::{Arc, Weak};

use mcpact::connection::Call;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, Method};

use crate::connection::UpstreamConnection;
use crate::connection::slot::ServerShared;
use crate::lists::pages;
use crate::subscriptions::reopen::{
    ReopenDelay, listen_params, next_notification, possible_changes,
};

/// Streams on one connection, opened one after the other.
struct ListWatch {
    connection: Weak<UpstreamConnection>,
    shared: Weak<ServerShared>,
    filter: ListenFilter,
    /// True if changes may have been missed between two streams.
    has_gap: bool,
}

/// Listens to the list changes of a modern server while the connection is open. A legacy server sends them without a
/// subscription.
pub(crate) fn watch(connection: &Arc<UpstreamConnection>, shared: &Arc<ServerShared>) {
    let declared = connection.upstream.introduction.capabilities.declared();
    let filter = ListenFilter::lists(declared);
    if connection.revision().era() == Era::Legacy || filter == ListenFilter::default() {
        return;
    }
    let watch = ListWatch {
        connection: Arc::downgrade(connection),
        shared: Arc::downgrade(shared),
        filter,
        has_gap: false,
    };
    let watching = tokio::spawn(watch.run());
    // It is called once for each connection.
    let _ = connection.watching.set(watching.abort_handle());
}

impl ListWatch {
    async fn run(mut self) {
        let mut delay = ReopenDelay::new();
        loop {
            delay.reopen();
            let Some(call) = self.open().await else {
                return;
            };
            self.forward(call).await;
            // Changes between two streams are reported after the next acknowledgement.
            self.has_gap = true;
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            shared.info_cache.set_can_notify(false);
            drop(shared);
            tokio::time::sleep(delay.next()).await;
        }
    }

    /// Opens a stream; none if the connection is closed.
    async fn open(&self) -> Option<Call> {
        // The strong reference is dropped: an open stream does not keep the connection.
        let connection = self
            .connection
            .upgrade()
            .filter(|connection| connection.is_open())?;
        let params = pages::own_stamp(&connection, &listen_params(&self.filter));
        Some(connection.call(Method::SubscriptionsListen, &params).await)
    }

    /// Forwards the changes of a stream until it ends.
    async fn forward(&mut self, mut call: Call) {
        while let Some(note) = next_notification(&mut call).await {
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            if note.method != Method::SubscriptionsAcknowledged {
                shared.info_cache.notify(note.method);
                continue;
            }
            shared.info_cache.set_can_notify(true);
            if std::mem::take(&mut self.has_gap) {
                for (method, _) in possible_changes(&self.filter) {
                    shared.info_cache.notify(method);
                }
            }
        }
    }
}
