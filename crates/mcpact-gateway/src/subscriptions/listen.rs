//! Streams of changes for modern clients.

use crate::subscriptions::relay;
use crate::sync::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method, Side};
use mcpact_translate::listen::ListenRegistry;
use mcpact_translate::listen::registry::{Action, ListenKey, ListenLimits, ServerPush};
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::oneshot;

use crate::connection::UpstreamConnection;
use crate::downstream::sink::ClientSink;
use crate::exchange::Exchange;
use crate::subscriptions::subscribers::Subscribers;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use mcpact::connection::{CallFailure, Connection, ServerNotification, ServerResponse};

/// How much one session of a legacy server may carry.
const LIMITS: ListenLimits = ListenLimits {
    listens: 1024,
    uris: 4096,
    held: 64,
};

/// ClientRef listens to a legacy server.
#[derive(Debug)]
pub(crate) struct ListenStreams {
    registry: Mutex<ListenRegistry>,
    seats: Mutex<HashMap<ListenKey, Seat>>,
    last: AtomicU64,
}

/// A stream of a client.
#[derive(Debug)]
struct Seat {
    sink: ClientSink,
    end: oneshot::Sender<String>,
}

/// A stream is over when whoever serves it stops.
struct Open {
    subscribers: Arc<Subscribers>,
    /// Keeps the way to the server.
    _caller: Arc<ServerBinding>,
    key: ListenKey,
}

impl Drop for Open {
    fn drop(&mut self) {
        let listens = &self.subscribers.listens;
        listens.seats().remove(&self.key);
        let acts = listens.registry().close(&self.key);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(connection) = self.subscribers.connection()
            && !acts.is_empty()
        {
            runtime.spawn(async move { perform(&connection, acts).await });
        }
    }
}

impl ListenStreams {
    /// Nobody, on no session yet.
    pub(crate) fn new() -> Self {
        let nothing = CapabilitySet::empty(Side::Server);
        let mut registry = ListenRegistry::new(&nothing, ServerPush::Missing, LIMITS);
        registry.session_lost();
        Self {
            registry: Mutex::new(registry),
            seats: Mutex::default(),
            last: AtomicU64::new(0),
        }
    }

    /// Whether anybody listens.
    pub(crate) fn are_any(&self) -> bool {
        !self.registry().is_idle()
    }

    /// Whether anybody listens to resources.
    pub(crate) fn are_any_for_resources(&self) -> bool {
        self.registry().has_subscriptions()
    }

    /// Whether anybody listens to this resource.
    pub(crate) fn want(&self, uri: &str) -> bool {
        self.registry().wants(uri)
    }

    /// The session is lost; everybody stays.
    pub(crate) fn lost(&self) {
        self.registry().session_lost();
    }

    /// There is a session, the first or another.
    pub(crate) fn restored(&self, upstream: &Connection) -> Vec<Action> {
        let push = if upstream.can_push() {
            ServerPush::Works
        } else {
            ServerPush::Missing
        };
        let mut registry = self.registry();
        // Whoever found the loss first may not have told.
        registry.session_lost();
        registry.session_restored(&upstream.introduction.capabilities, push)
    }

    /// Every stream ends, as when nobody knows of another session.
    pub(crate) fn end(&self) {
        let acts = self.registry().end();
        for act in acts {
            if let Action::End { listen, result } = act {
                self.end_one(&listen, result);
            }
        }
    }

    fn end_one(&self, listen: &ListenKey, result: String) {
        if let Some(seat) = self.seats().remove(listen) {
            // Whoever listened may have gone.
            let _ = seat.end.send(result);
        }
    }

    fn say(&self, listen: &ListenKey, method: Method, params: &str) {
        let seats = self.seats();
        let Some(seat) = seats.get(listen) else {
            return;
        };
        let scope = Scope::Request(listen.id.clone());
        seat.sink.hint(&scope, method, params);
    }

    fn registry(&self) -> MutexGuard<'_, ListenRegistry> {
        lock(&self.registry)
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<ListenKey, Seat>> {
        lock(&self.seats)
    }
}

pub(crate) async fn stream_changes(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<ByteString, ServeError> {
    match exchange.upstream().era() {
        Era::Modern => relay::listen_along(server, exchange).await,
        Era::Legacy => listen_for(server, exchange).await,
    }
}

/// A legacy server is subscribed to, once for all who listen.
async fn listen_for(server: &UpstreamServer, exchange: Exchange) -> Result<ByteString, ServeError> {
    let Exchange {
        inbound,
        connection,
        binding,
        ..
    } = exchange;
    let listens = &connection.subscribers.listens;
    let filter = ListenFilter::parse(Some(&inbound.job.params)).unwrap_or_default();
    let key = ListenKey {
        caller: listens.last.fetch_add(1, Ordering::Relaxed),
        id: inbound.job.id.clone(),
    };
    let owner = inbound.sink.owner().to_owned();
    let acts = listens.registry().open(key.clone(), filter, |task| {
        server.shared.mapping.is_told_on(&connection, task, &owner)
    })?;
    let (end, ended) = oneshot::channel();
    let seat = Seat {
        sink: inbound.sink,
        end,
    };
    listens.seats().insert(key.clone(), seat);
    let _open = Open {
        subscribers: Arc::clone(&connection.subscribers),
        _caller: binding,
        key,
    };
    perform(&connection, acts).await;
    // Another connection may take its place meanwhile.
    drop(connection);
    let result = ended.await;
    Ok(result
        .unwrap_or_else(|_| farewell(inbound.job.id.raw()))
        .into())
}

/// A change that belongs to no call.
pub(crate) async fn changed(connection: &UpstreamConnection, note: &ServerNotification) {
    let params = &note.params;
    let listens = &connection.subscribers.listens;
    let acts = listens.registry().notification(note.method, Some(params));
    perform(connection, acts).await;
}

/// Where a task stands, for those who listen to it.
pub(crate) async fn announce(connection: &UpstreamConnection, detailed: &str) {
    let acts = connection
        .subscribers
        .listens
        .registry()
        .notification(Method::TasksChanged, Some(detailed));
    perform(connection, acts).await;
}

pub(crate) async fn perform(connection: &UpstreamConnection, acts: Vec<Action>) {
    let listens = &connection.subscribers.listens;
    let mut acts = std::collections::VecDeque::from(acts);
    while let Some(act) = acts.pop_front() {
        match act {
            Action::Subscribe { uri } => {
                let answer = ask_for(connection, Method::ResourcesSubscribe, &uri).await;
                let mut registry = listens.registry();
                acts.extend(match answer {
                    Ok(ServerResponse::Result(_)) => registry.subscribed(&uri),
                    Ok(ServerResponse::Error(_)) => registry.refused(&uri),
                    // The session after this one is asked again.
                    Err(_) => Vec::new(),
                });
            }
            // Legacy clients may want it, or somebody who has come meanwhile.
            Action::Unsubscribe { uri } if connection.subscribers.wants(&uri) => {}
            Action::Unsubscribe { uri } => {
                let _ = ask_for(connection, Method::ResourcesUnsubscribe, &uri).await;
            }
            Action::Notify {
                listen,
                method,
                params,
            } => listens.say(&listen, method, &params),
            Action::End { listen, result } => listens.end_one(&listen, result),
        }
    }
}

async fn ask_for(
    connection: &UpstreamConnection,
    method: Method,
    uri: &str,
) -> Result<ServerResponse, CallFailure> {
    let params = ObjectWriter::new().text("uri", uri).finish();
    connection.request(method, &params).await
}

/// The result that ends a stream.
pub(crate) fn farewell(id: &str) -> String {
    let tag = ObjectWriter::new().raw(meta::SUBSCRIPTION_ID, id).finish();
    ObjectWriter::new()
        .text("resultType", "complete")
        .raw("_meta", &tag)
        .finish()
}
