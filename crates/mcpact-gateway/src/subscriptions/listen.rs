//! Change streams (`subscriptions/listen`) of modern clients at one server.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use mcpact::connection::{
    Call, CallEvent, CallFailure, Connection, RawResult, ServerNotification, ServerResponse,
};
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
use crate::connection::slot::MAX_RECONNECTS;
use crate::downstream::sink::ClientSink;
use crate::error::ServeError;
use crate::exchange::{Exchange, Inbound};
use crate::subscriptions::reopen::{ReopenDelay, possible_changes, uri_params};
use crate::sync::{OnDrop, lock};
use crate::tasks::same_era;
use crate::upstream::UpstreamServer;

/// Limits of one session of a legacy server.
const LIMITS: ListenLimits = ListenLimits {
    listens: 1024,
    uris: 4096,
    held: 64,
};

/// Change streams of modern clients at a legacy server.
#[derive(Debug)]
pub(crate) struct ListenStreams {
    registry: Mutex<ListenRegistry>,
    /// Sink of each stream, and the channel for its final result.
    streams: Mutex<HashMap<ListenKey, (ClientSink, oneshot::Sender<String>)>>,
    last: AtomicU64,
}

impl ListenStreams {
    /// Creates an empty set without a session.
    pub(crate) fn new() -> Self {
        let nothing = CapabilitySet::empty(Side::Server);
        let mut registry = ListenRegistry::new(&nothing, ServerPush::Missing, LIMITS);
        registry.session_lost();
        Self {
            registry: Mutex::new(registry),
            streams: Mutex::default(),
            last: AtomicU64::new(0),
        }
    }

    /// Returns true if any stream is open.
    pub(crate) fn is_active(&self) -> bool {
        !self.registry().is_idle()
    }

    /// Records the loss of the session; the streams stay open.
    pub(crate) fn session_lost(&self) {
        self.registry().session_lost();
    }

    /// Returns the actions that a new session needs.
    pub(crate) fn restored(&self, upstream: &Connection) -> Vec<Action> {
        let push = match upstream.can_push() {
            true => ServerPush::Works,
            false => ServerPush::Missing,
        };
        let mut registry = self.registry();
        // The loss may not have been recorded yet.
        registry.session_lost();
        registry.session_restored(&upstream.introduction.capabilities, push)
    }

    /// Ends all streams.
    pub(crate) fn end(&self) {
        let acts = self.registry().end();
        for act in acts {
            if let Action::End { listen, result } = act {
                self.end_one(&listen, result);
            }
        }
    }

    fn end_one(&self, listen: &ListenKey, result: String) {
        if let Some((_, end)) = lock(&self.streams).remove(listen) {
            // The client may have disconnected.
            let _ = end.send(result);
        }
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, ListenRegistry> {
        lock(&self.registry)
    }
}

/// Serves `subscriptions/listen` until the stream ends.
pub(crate) async fn serve_stream(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    match exchange.upstream().era() {
        Era::Modern => relay(server, exchange).await,
        Era::Legacy => serve_from_legacy(server, exchange).await,
    }
}

/// Serves a stream from a legacy server, which gets one subscription for all streams.
async fn serve_from_legacy(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let Exchange {
        inbound,
        connection,
        // The stream keeps the binding of the client alive.
        binding: _binding,
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
        server.shared.mapping.notifies_on(&connection, task, &owner)
    })?;
    let (end, ended) = oneshot::channel();
    lock(&listens.streams).insert(key.clone(), (inbound.sink, end));
    let subscribers = Arc::clone(&connection.subscribers);
    let _closing = OnDrop::new(move || {
        lock(&subscribers.listens.streams).remove(&key);
        let acts = subscribers.listens.registry().close(&key);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(connection) = subscribers.connection()
            && !acts.is_empty()
        {
            runtime.spawn(async move { perform(&connection, acts).await });
        }
    });
    perform(&connection, acts).await;
    // Another connection may replace this one while the stream is open.
    drop(connection);
    let result = ended.await;
    let result = result.unwrap_or_else(|_| final_result(inbound.job.id.raw()));
    Ok(result.into())
}

/// Sends a notification that belongs to no call to the streams that cover it.
pub(crate) async fn notify(connection: &UpstreamConnection, method: Method, params: &str) {
    let listens = &connection.subscribers.listens;
    let acts = listens.registry().notification(method, Some(params));
    perform(connection, acts).await;
}

/// Performs the actions of the registry.
pub(crate) async fn perform(connection: &UpstreamConnection, acts: Vec<Action>) {
    let listens = &connection.subscribers.listens;
    let mut acts = std::collections::VecDeque::from(acts);
    while let Some(act) = acts.pop_front() {
        match act {
            Action::Subscribe { uri } => {
                let method = Method::ResourcesSubscribe;
                let reply = connection.request(method, &uri_params(&uri)).await;
                let mut registry = listens.registry();
                acts.extend(match reply {
                    Ok(ServerResponse::Result(_)) => registry.subscribed(&uri),
                    Ok(ServerResponse::Error(_)) => registry.refused(&uri),
                    // The next session gets the request again.
                    Err(_) => Vec::new(),
                });
            }
            // A legacy client or a new stream still needs the subscription.
            Action::Unsubscribe { uri } if connection.subscribers.wants(&uri) => {}
            Action::Unsubscribe { uri } => {
                let method = Method::ResourcesUnsubscribe;
                // The session works without it.
                let _ = connection.request(method, &uri_params(&uri)).await;
            }
            Action::Notify {
                listen,
                method,
                params,
            } => {
                if let Some((sink, _)) = lock(&listens.streams).get(&listen) {
                    let scope = Scope::Request(listen.id);
                    sink.try_notify(&scope, method, &params);
                }
            }
            Action::End { listen, result } => listens.end_one(&listen, result),
        }
    }
}

/// Returns the result that ends a stream.
pub(crate) fn final_result(id: &str) -> String {
    let tag = ObjectWriter::new().raw(meta::SUBSCRIPTION_ID, id).finish();
    ObjectWriter::new()
        .text("resultType", "complete")
        .raw("_meta", &tag)
        .finish()
}

/// State of one client stream over all upstream connections that carry it.
struct RelayedStream {
    /// True after the client received the acknowledgement of the server.
    is_acknowledged: bool,
    /// Number of attempts since the last acknowledgement.
    unacknowledged: u32,
    delay: ReopenDelay,
}

/// Relays a change stream of a modern server, and opens it again after the loss of a connection.
async fn relay(server: &UpstreamServer, mut exchange: Exchange) -> Result<RawResult, ServeError> {
    let params = exchange.params()?;
    let (first, later) = same_era::select_stream_instance(&mut exchange, params).await;
    let mut opened = exchange.send(&first).await;
    let mut stream = RelayedStream {
        is_acknowledged: false,
        unacknowledged: 0,
        delay: ReopenDelay::new(),
    };
    loop {
        let error = match opened {
            Ok(call) => match stream.forward(&mut exchange, call).await {
                ControlFlow::Break(outcome) => return outcome,
                ControlFlow::Continue(error) => error,
            },
            Err(error) => error,
        };
        // Without an acknowledgement, the client has no stream to restore.
        if !stream.is_acknowledged || stream.unacknowledged >= MAX_RECONNECTS {
            return Err(error);
        }
        stream.unacknowledged += 1;
        tokio::select! {
            () = tokio::time::sleep(stream.delay.next()) => {}
            () = server.shared.supervisor.closed() => return Err(error),
        }
        stream.delay.reopen();
        let before = exchange.upstream();
        opened = match exchange.acquire().await {
            Ok(()) if exchange.upstream() != before => return Err(exchange.changed()),
            Ok(()) => exchange.send(&later).await,
            Err(error) => Err(error),
        };
    }
}

impl RelayedStream {
    /// Forwards notifications until the stream ends. `Continue` means that it was lost and can be opened again.
    async fn forward(
        &mut self,
        exchange: &mut Exchange,
        mut call: Call,
    ) -> ControlFlow<Result<RawResult, ServeError>, ServeError> {
        // A stream prevents idle shutdown, but does not count as a call in flight.
        let _idle_guard = exchange.connection.hold();
        exchange.guard = None;
        loop {
            match call.next().await {
                CallEvent::Notification(note) => self.notify(exchange, &note).await,
                CallEvent::Response(ServerResponse::Result(_)) => {
                    let id = exchange.inbound.job.id.raw();
                    return ControlFlow::Break(Ok(final_result(id).into()));
                }
                CallEvent::Response(reply) => return ControlFlow::Break(exchange.finished(&reply)),
                CallEvent::Failed(
                    loss @ (CallFailure::ConnectionLost(_) | CallFailure::NotSent(_)),
                ) if !exchange.connection.is_ended() => {
                    return ControlFlow::Continue(exchange.lost(&loss));
                }
                CallEvent::Failed(loss) => return ControlFlow::Break(Err(exchange.lost(&loss))),
                CallEvent::Request(_) => {}
            }
        }
    }

    /// Forwards a notification. Only the first acknowledgement is forwarded. A later one is replaced by notifications
    /// for everything that may have changed while the stream was lost.
    async fn notify(&mut self, exchange: &Exchange, note: &ServerNotification) {
        let Inbound { job, sink } = &exchange.inbound;
        let scope = Scope::Request(job.id.clone());
        if note.method == Method::SubscriptionsAcknowledged {
            self.unacknowledged = 0;
            if std::mem::replace(&mut self.is_acknowledged, true) {
                let filter = ListenFilter::parse(Some(&note.params)).unwrap_or_default();
                for (method, params) in possible_changes(&filter) {
                    sink.try_notify(&scope, method, &params);
                }
                return;
            }
        }
        let named = same_era::with_public_task_ids(exchange, note);
        let params = named.as_deref().unwrap_or(&note.params);
        sink.notify(&scope, note.method, params).await;
    }
}
