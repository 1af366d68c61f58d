//! Servers that go, come back, or take the place of others: whoever wanted to hear of resources goes on hearing of
//! them as soon as there is a server of the same name.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::downstream::ClientState;
use crate::error::ServeError;
use bytestring::ByteString;
use mcpact::server::backend::BackendRequest;
use mcpact_engine::server::Scope;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::Backoff;
use mcpact_wire::raw::ObjectWriter;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::downstream::sink::WeakClientSink;
use crate::subscriptions::watched_uris::SubscribedUri;

/// The pauses before a server is asked once more to tell of its resources.
pub(crate) const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(60),
};

/// What became of a subscription at a server that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResubscribeOutcome {
    Over,
    /// The server was in trouble, and may not be later.
    Again,
}

impl Aggregator {
    /// The server with this number, if it is there; one that runs on under other settings is.
    pub(crate) fn numbered(&self, number: u64) -> Option<Arc<ServerEntry>> {
        let server_set = self.server_set();
        let mut entries = server_set.entries.iter();
        entries.find(|entry| entry.number == number).cloned()
    }

    /// The server of this name, if it is there.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<ServerEntry>> {
        let server_set = self.server_set();
        let mut entries = server_set.entries.iter();
        entries.find(|entry| *entry.name == *name).cloned()
    }

    /// Whether another one has taken a server's place.
    pub(crate) fn is_succeeded(&self, entry: &ServerEntry) -> bool {
        let next = self.named(&entry.name);
        next.is_some_and(|next| next.number != entry.number)
    }

    /// Until a server is not there any more, or another one has taken its place.
    pub(crate) async fn departed(&self, entry: &ServerEntry) {
        let mut turns = self.changes.turns();
        // ClientRef tells of turns lives as long as the aggregator.
        let _ = turns
            .wait_for(|()| self.numbered(entry.number).is_none())
            .await;
    }

    /// The server of this name, as soon as it is there.
    pub(crate) async fn arrived(&self, name: &str) -> Arc<ServerEntry> {
        let mut turns = self.changes.turns();
        loop {
            if let Some(entry) = self.named(name) {
                return entry;
            }
            let _ = turns.changed().await;
        }
    }

    /// The servers are others: whoever listens looks for its own, and legacy clients are subscribed where they were.
    pub(crate) fn follow(self: &Arc<Self>) {
        self.changes.turn();
        for sink in self.changes.staying() {
            if let Some(guest) = sink.state().and_then(ClientState::aggregate) {
                self.follow_for(guest);
            }
        }
    }

    /// Subscribes a legacy client to what it had subscribed to at servers that have come.
    pub(crate) fn follow_for(self: &Arc<Self>, guest: &DownstreamClient) {
        let server_set = self.server_set();
        let entries = server_set.entries.iter();
        let numbers: HashMap<&str, u64> =
            entries.map(|entry| (&*entry.name, entry.number)).collect();
        guest.stay_at(|number| numbers.values().any(|known| *known == number));
        let come = guest.watched.follow(|name| numbers.get(name).copied());
        let Some(sink) = guest.weak_sink() else {
            return;
        };
        for (server, subscriptions) in come {
            let (aggregator, sink) = (Arc::clone(self), sink.clone());
            tokio::spawn(aggregator.subscribe_again(sink, server, subscriptions));
        }
    }

    /// Asks a server that has come until it has taken everything or refused it, or the client has gone.
    async fn subscribe_again(
        self: Arc<Self>,
        sink: WeakClientSink,
        server: u64,
        mut left: Vec<SubscribedUri>,
    ) {
        let mut tries = 0_u32;
        loop {
            let mut again = Vec::new();
            for shared in left {
                // Nobody is kept here by what is tried for it.
                let Some(sink) = sink.near() else {
                    return;
                };
                match self.subscribe_once(&sink, server, &shared).await {
                    ResubscribeOutcome::Over => {}
                    ResubscribeOutcome::Again => again.push(shared),
                }
            }
            if again.is_empty() {
                return;
            }
            left = again;
            tokio::time::sleep(PAUSES.pause(tries)).await;
            tries = tries.saturating_add(1);
        }
    }

    async fn subscribe_once(
        self: &Arc<Self>,
        sink: &ClientSink,
        server: u64,
        shared: &SubscribedUri,
    ) -> ResubscribeOutcome {
        let SubscribedUri { outer, inner } = shared;
        let (Some(guest), Some(entry)) = (
            sink.state().and_then(ClientState::aggregate),
            self.numbered(server),
        ) else {
            return ResubscribeOutcome::Over;
        };
        // It may have been ended meanwhile, or be somebody else's who has come since.
        let request = guest.subscription(Method::ResourcesSubscribe, inner);
        let Some(request) = request.filter(|_| guest.watched.is_at(outer, server)) else {
            return ResubscribeOutcome::Over;
        };
        match self.carry_for(guest, &entry, sink, request).await {
            Ok(_) if guest.watched.settle(outer, server) => hint_updated(sink, outer),
            // The client knows it by another address, too.
            Ok(_) if guest.watched.wants(server, inner) => {}
            // The client has ended it while the server was asked.
            Ok(_) => {
                let request = guest.subscription(Method::ResourcesUnsubscribe, inner);
                if let Some(request) = request {
                    let _ = self.carry_for(guest, &entry, sink, request).await;
                }
            }
            Err(error) if error.code() == ErrorCode::InternalError.code() => {
                let (server, error) = (
                    &entry.name,
                    entry.server.covered(error.message().into_owned()),
                );
                tracing::debug!(%server, error, "a subscription waits");
                return ResubscribeOutcome::Again;
            }
            Err(error) => {
                guest.watched.remove(outer);
                let (server, error) = (
                    &entry.name,
                    entry.server.covered(error.message().into_owned()),
                );
                tracing::warn!(event = "route_error", %server, error, "a subscription is lost");
                // Whoever looks at it then is told why.
                hint_updated(sink, outer);
            }
        }
        ResubscribeOutcome::Over
    }

    async fn carry_for(
        self: &Arc<Self>,
        guest: &Arc<DownstreamClient>,
        entry: &Arc<ServerEntry>,
        sink: &ClientSink,
        request: BackendRequest,
    ) -> Result<ByteString, ServeError> {
        let binding = guest.part(self, entry).await?;
        let view = Rewriter::new(self, entry, &guest.watched);
        let sink = sink.clone().seeing(Arc::new(view));
        entry.server.carry(request, binding, sink).await
    }
}

fn hint_updated(sink: &ClientSink, uri: &str) {
    let method = Method::ResourcesUpdated;
    sink.hint(&Scope::Connection, method, &updated(uri));
}

/// Tells that a resource may have changed.
pub(crate) fn updated(uri: &str) -> String {
    ObjectWriter::new().text("uri", uri).finish()
}
