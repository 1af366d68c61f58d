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

/// Listens to the list changes of a modern server while the connection is open. A legacy server sends them without a
/// subscription.
pub(crate) fn watch(connection: &Arc<UpstreamConnection>, shared: &Arc<ServerShared>) {
    let declared = connection.upstream.introduction.capabilities.declared();
    let filter = ListenFilter::lists(declared);
    if connection.revision().era() == Era::Legacy || filter == ListenFilter::default() {
        return;
    }
    let watching = watch_lists(Arc::downgrade(connection), Arc::downgrade(shared), filter);
    // It is called once for each connection.
    let watching = tokio::spawn(watching);
    let _ = connection.watching.set(watching.abort_handle());
}

/// Watches the lists with one stream after the other, until the connection is closed.
async fn watch_lists(
    connection: Weak<UpstreamConnection>,
    shared: Weak<ServerShared>,
    filter: ListenFilter,
) {
    let mut delay = ReopenDelay::new();
    // True if changes may have been missed between two streams.
    let mut has_gap = false;
    loop {
        delay.reopen();
        let Some(mut call) = open(&connection, &filter).await else {
            return;
        };
        while let Some(note) = next_notification(&mut call).await {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if note.method != Method::SubscriptionsAcknowledged {
                shared.info_cache.notify(note.method);
                continue;
            }
            shared.info_cache.set_can_notify(true);
            if std::mem::take(&mut has_gap) {
                for (method, _) in possible_changes(&filter) {
                    shared.info_cache.notify(method);
                }
            }
        }
        // Changes between two streams are reported after the next acknowledgement.
        has_gap = true;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.info_cache.set_can_notify(false);
        drop((call, shared));
        tokio::time::sleep(delay.next()).await;
    }
}

/// Opens a stream; none if the connection is closed.
async fn open(connection: &Weak<UpstreamConnection>, filter: &ListenFilter) -> Option<Call> {
    // The strong reference is dropped: an open stream does not keep the connection.
    let connection = connection.upgrade().filter(|open| open.is_open())?;
    let params = pages::own_stamp(&connection, &listen_params(filter));
    Some(connection.call(Method::SubscriptionsListen, &params).await)
}
