//! Resource subscriptions of clients across removal, return or replacement of servers. They continue as soon as a
//! server of the same name exists.

use std::sync::Arc;
use std::time::Duration;

use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::server::Scope;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::Backoff;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::ClientState;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::error::ServeError;
use crate::pipeline;
use crate::subscriptions::reopen::uri_params;
use crate::subscriptions::watched_uris::SubscribedUri;

/// Backoff between attempts to resubscribe at a server.
pub(crate) const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(60),
};

/// Returns the server with this number. A server keeps its number if only its settings change.
pub(crate) fn numbered(aggregator: &Aggregator, number: u64) -> Option<Arc<ServerEntry>> {
    let server_set = aggregator.server_set();
    let position = server_set.position(number)?;
    server_set.entries.get(position).cloned()
}

/// Returns the server with this name.
pub(crate) fn named(aggregator: &Aggregator, name: &str) -> Option<Arc<ServerEntry>> {
    let server_set = aggregator.server_set();
    let mut entries = server_set.entries.iter();
    entries.find(|entry| *entry.name == *name).cloned()
}

/// Returns true if another server of the same name has replaced this one.
pub(crate) fn is_succeeded(aggregator: &Aggregator, entry: &ServerEntry) -> bool {
    let next = named(aggregator, &entry.name);
    next.is_some_and(|next| next.number != entry.number)
}

/// Waits until a server is removed or replaced.
pub(crate) async fn departed(aggregator: &Aggregator, entry: &ServerEntry) {
    let mut changes = aggregator.changes.server_changes();
    let is_gone = |(): &()| numbered(aggregator, entry.number).is_none();
    // The sender lives as long as the aggregator.
    let _ = changes.wait_for(is_gone).await;
}

/// Waits for a server with this name and returns it.
pub(crate) async fn arrived(aggregator: &Aggregator, name: &str) -> Arc<ServerEntry> {
    let mut changes = aggregator.changes.server_changes();
    loop {
        if let Some(entry) = named(aggregator, name) {
            return entry;
        }
        let _ = changes.changed().await;
    }
}

/// Reacts to a changed server set: notifies change streams and restores subscriptions of legacy clients.
pub(crate) fn follow(aggregator: &Arc<Aggregator>) {
    aggregator.changes.server_set_changed();
    for sink in aggregator.changes.legacy_clients() {
        if let Some(guest) = sink.state().and_then(ClientState::aggregate) {
            follow_for(aggregator, guest);
        }
    }
}

/// Restores the subscriptions of a legacy client at new servers.
pub(crate) fn follow_for(aggregator: &Arc<Aggregator>, guest: &DownstreamClient) {
    let server_set = aggregator.server_set();
    guest.retain_servers(|number| server_set.position(number).is_some());
    let reassigned = guest.watched.reassign(|name| {
        let mut entries = server_set.entries.iter();
        Some(entries.find(|entry| *entry.name == *name)?.number)
    });
    let Some(sink) = guest.saved.sink.get() else {
        return;
    };
    for (server, subscriptions) in reassigned {
        let (aggregator, sink) = (Arc::clone(aggregator), sink.clone());
        tokio::spawn(subscribe_again(aggregator, sink, server, subscriptions));
    }
}

/// Retries until the server has accepted or refused every subscription, or the client has disconnected.
async fn subscribe_again(
    aggregator: Arc<Aggregator>,
    sink: WeakClientSink,
    server: u64,
    mut left: Vec<SubscribedUri>,
) {
    let mut tries = 0_u32;
    loop {
        let mut failed = Vec::new();
        for shared in left {
            // The weak reference does not keep the client's session alive.
            let Some(sink) = sink.upgrade() else {
                return;
            };
            if !subscribe_once(&aggregator, &sink, server, &shared).await {
                failed.push(shared);
            }
        }
        if failed.is_empty() {
            return;
        }
        left = failed;
        tokio::time::sleep(PAUSES.pause(tries)).await;
        tries = tries.saturating_add(1);
    }
}

/// Resubscribes at a new server. Returns false if the server failed, so that a later attempt may succeed.
async fn subscribe_once(
    aggregator: &Arc<Aggregator>,
    sink: &ClientSink,
    server: u64,
    shared: &SubscribedUri,
) -> bool {
    let SubscribedUri { outer, inner } = shared;
    let (Some(guest), Some(entry)) = (
        sink.state().and_then(ClientState::aggregate),
        numbered(aggregator, server),
    ) else {
        return true;
    };
    // The client may have unsubscribed, or the URI may now belong to another server.
    let request = guest.subscription_request(Method::ResourcesSubscribe, inner);
    let Some(request) = request.filter(|_| guest.watched.is_at(outer, server)) else {
        return true;
    };
    match send_for(aggregator, guest, &entry, sink, request).await {
        Ok(_) if guest.watched.confirm(outer, server) => hint_updated(sink, outer),
        // The client has subscribed to the same resource under another URI, too.
        Ok(_) if guest.watched.wants(server, inner) => {}
        // The client has unsubscribed in the meantime.
        Ok(_) => {
            let request = guest.subscription_request(Method::ResourcesUnsubscribe, inner);
            if let Some(request) = request {
                let _ = send_for(aggregator, guest, &entry, sink, request).await;
            }
        }
        Err(error) => {
            let may_succeed_later = error.code() == ErrorCode::InternalError.code();
            let (server, masks) = (&entry.name, &entry.server.shared.masks);
            let error = masks.cover(error.message().into_owned());
            if may_succeed_later {
                tracing::debug!(%server, error, "a subscription waits");
                return false;
            }
            guest.watched.remove(outer);
            tracing::warn!(event = "route_error", %server, error, "a subscription is lost");
            // A client that reads the resource after this notification gets the error.
            hint_updated(sink, outer);
        }
    }
    true
}

/// Sends a request of a client to one of its servers.
pub(crate) async fn send_for(
    aggregator: &Arc<Aggregator>,
    guest: &Arc<DownstreamClient>,
    entry: &Arc<ServerEntry>,
    sink: &ClientSink,
    request: BackendRequest,
) -> Result<RawResult, ServeError> {
    let binding = guest.binding_for(aggregator, entry).await?;
    let view = Rewriter::new(aggregator, entry, &guest.watched);
    let sink = sink.clone().with_rewriter(Arc::new(view));
    pipeline::forward_to(&entry.server, binding, request, sink).await
}

fn hint_updated(sink: &ClientSink, uri: &str) {
    let method = Method::ResourcesUpdated;
    sink.try_notify(&Scope::Connection, method, &uri_params(uri));
}
