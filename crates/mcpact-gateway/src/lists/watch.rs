//! Subscription to list changes of a modern server.

use crate::lists::pages;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Capability, Era, Method};
use mcpact_translate::input::Backoff;
use mcpact_wire::raw::ObjectWriter;
use tokio::time::Instant;

use crate::connection::UpstreamConnection;
use crate::connection::slot::ServerShared;
use mcpact::connection::{Call, CallEvent};

/// The pauses before a stream that ended is opened again; one that lived longer than the longest was a
/// good one.
const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(60),
};

pub(crate) const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::PromptsListChanged,
    Method::ResourcesListChanged,
];

/// ListenStreams on one connection, stream after stream.
struct ListWatch {
    connection: Weak<UpstreamConnection>,
    shared: Weak<ServerShared>,
    filter: ListenFilter,
    /// True if changes may have been missed between two streams.
    has_gap: bool,
}

/// Hears of changed lists of a modern server, as long as the connection lives. A legacy server
/// tells without being asked.
pub(crate) fn watch(connection: &Arc<UpstreamConnection>, shared: &Arc<ServerShared>) {
    let declared = connection.upstream.introduction.capabilities.declared();
    let filter = ListenFilter {
        tools: declared.has(Capability::ToolsListChanged),
        prompts: declared.has(Capability::PromptsListChanged),
        resources: declared.has(Capability::ResourcesListChanged),
        ..ListenFilter::default()
    };
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
        let mut failures = 0;
        loop {
            let since = Instant::now();
            let Some(call) = self.open().await else {
                return;
            };
            self.hear(call).await;
            // Lists that change from here on are heard of by the next stream, as one change.
            self.has_gap = true;
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            shared.info_cache.set_can_notify(false);
            drop(shared);
            if since.elapsed() > PAUSES.longest {
                failures = 0;
            }
            tokio::time::sleep(PAUSES.pause(failures)).await;
            failures += 1;
        }
    }

    /// Another stream; none if the connection is over.
    async fn open(&self) -> Option<Call> {
        // The connection may end while the stream is open, so it is not held any longer.
        let connection = self
            .connection
            .upgrade()
            .filter(|connection| connection.is_open())?;
        let params = ObjectWriter::new().raw("notifications", &self.filter.encode());
        let params = pages::own_stamp(&connection, &params.finish());
        Some(connection.call(Method::SubscriptionsListen, &params).await)
    }

    /// Hears what the server tells until the stream ends.
    async fn hear(&mut self, mut call: Call) {
        loop {
            let note = match call.next().await {
                CallEvent::Notification(note) => note,
                CallEvent::Request(_) => continue,
                CallEvent::Response(_) | CallEvent::Failed(_) => return,
            };
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            if note.method != Method::SubscriptionsAcknowledged {
                shared.info_cache.notify(note.method);
                continue;
            }
            shared.info_cache.set_can_notify(true);
            if std::mem::take(&mut self.has_gap) {
                let missed = LISTS.into_iter();
                for method in missed.filter(|method| self.filter.wants(*method, None)) {
                    shared.info_cache.notify(method);
                }
            }
        }
    }
}
