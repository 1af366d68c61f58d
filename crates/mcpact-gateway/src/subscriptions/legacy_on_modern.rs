//! Subscriptions of a legacy client at a modern server, which reports changes on streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mcpact::connection::RawResult;
use mcpact::server::backend::ResponseMode;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, ErrorCode, Method};
use mcpact_translate::input::Backoff;
use mcpact_translate::listen::LegacySubscriptions;
use mcpact_translate::listen::legacy_subscriptions::{Action, SubscriptionLimits};
use mcpact_wire::id::Id;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::connection::UpstreamConnection;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::error::ServeError;
use crate::exchange::{DeclaredTasks, Exchange, refuse, stamped};
use crate::subscriptions::reopen::{listen_params, next_notification};
use crate::sync::lock;
use crate::upstream::Clock;
use crate::upstream::binding::ServerBinding;

const LIMITS: SubscriptionLimits = SubscriptionLimits {
    uris: 4096,
    backoff: Backoff {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(30),
    },
};

/// Time for which a replaced stream is still read: over HTTP its last notifications may arrive after the acknowledgement
/// of its successor.
const LINGER: Duration = Duration::from_secs(1);

/// Time for which a server is kept running to acknowledge a stream.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// Subscriptions of a legacy client, and the streams that serve them.
#[derive(Debug)]
pub(crate) struct EmulatedSubscriptions {
    subscriptions: Mutex<LegacySubscriptions>,
    /// Jobs of the streams, which are aborted when dropped.
    streams: Mutex<HashMap<u64, JoinSet<()>>>,
    /// Unanswered requests, by ids of the gateway: a client may use an id twice.
    requests: Mutex<HashMap<Id, oneshot::Sender<Result<(), WireError>>>>,
    last: AtomicI64,
    sink: WeakClientSink,
    clock: Clock,
}

impl EmulatedSubscriptions {
    pub(crate) fn new(server: &CapabilitySet, sink: &ClientSink, clock: Clock) -> Self {
        let mut subscriptions = LegacySubscriptions::new(sink.revision(), server, LIMITS);
        if sink.is_aggregate() {
            subscriptions = subscriptions.without_lists();
        }
        // The session of the client buffers notifications until the client reads them.
        let nothing_yet = subscriptions.channel_opened();
        debug_assert!(nothing_yet.is_empty());
        Self {
            subscriptions: Mutex::new(subscriptions),
            streams: Mutex::default(),
            requests: Mutex::default(),
            last: AtomicI64::default(),
            sink: sink.downgrade(),
            clock,
        }
    }

    /// Starts the streams after the handshake of the client.
    pub(crate) fn start(self: &Arc<Self>, binding: &Arc<ServerBinding>) {
        let acts = lock(&self.subscriptions).ready();
        self.perform(binding, acts);
    }

    /// Notifies the client of everything that may have changed.
    pub(crate) fn resync(self: &Arc<Self>, binding: &Arc<ServerBinding>) {
        let acts = lock(&self.subscriptions).resync();
        self.perform(binding, acts);
    }

    /// Sends a notification that belongs to no request.
    pub(crate) fn notify(&self, method: Method, params: &str) {
        if let Some(sink) = self.sink.upgrade() {
            sink.try_notify(&Scope::Connection, method, params);
        }
    }

    fn perform(self: &Arc<Self>, binding: &Arc<ServerBinding>, acts: Vec<Action>) {
        for act in acts {
            match act {
                Action::Open {
                    stream,
                    filter,
                    after,
                } => self.open(binding, stream, filter, after),
                Action::Close { stream } => {
                    if let Some(open) = lock(&self.streams).remove(&stream) {
                        tokio::spawn(async move {
                            tokio::time::sleep(LINGER).await;
                            drop(open);
                        });
                    }
                }
                Action::Answer { request, outcome } => {
                    if let Some(request) = lock(&self.requests).remove(&request) {
                        // The client may have cancelled the request.
                        let _ = request.send(outcome);
                    }
                }
                Action::Notify { method, params } => {
                    self.notify(method, params.as_deref().unwrap_or("{}"));
                }
            }
        }
    }

    fn open(
        self: &Arc<Self>,
        binding: &Arc<ServerBinding>,
        stream: u64,
        filter: ListenFilter,
        after: Duration,
    ) {
        // Weak references: the stream ends with the client.
        let (emulated, binding) = (Arc::downgrade(self), Arc::downgrade(binding));
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            tokio::time::sleep(after).await;
            let is_idle = run_stream(&emulated, &binding, stream, &filter).await == Some(true);
            if let (Some(emulated), Some(binding)) = (emulated.upgrade(), binding.upgrade()) {
                // Aborts this job at its next await; there is none.
                lock(&emulated.streams).remove(&stream);
                let mut subscriptions = lock(&emulated.subscriptions);
                let acts = match is_idle {
                    true => subscriptions.server_idle(stream),
                    false => subscriptions.ended(stream, emulated.clock.now()),
                };
                drop(subscriptions);
                emulated.perform(&binding, acts);
            }
        });
        lock(&self.streams).insert(stream, listening);
    }

    /// Serves `resources/subscribe` and `resources/unsubscribe`.
    pub(crate) async fn change_subscription(
        self: &Arc<Self>,
        exchange: &Exchange,
    ) -> Result<RawResult, ServeError> {
        let job = &exchange.inbound.job;
        // The server keeps running until it has acknowledged the change.
        let _idle_guard = exchange.connection.hold();
        let (answer, answered) = oneshot::channel();
        let id = Id::number(self.last.fetch_add(1, Ordering::Relaxed));
        lock(&self.requests).insert(id.clone(), answer);
        let params = Some(&**job.params);
        let acts = match job.method {
            Some(Method::ResourcesSubscribe) => lock(&self.subscriptions).subscribe(id, params),
            _ => lock(&self.subscriptions).unsubscribe(id, params),
        };
        self.perform(&exchange.binding, acts);
        let outcome = answered.await.map_err(|_| {
            let why = "the session ended";
            refuse(ErrorCode::InternalError, why, exchange.downstream())
        })?;
        outcome?;
        Ok("{}".into())
    }
}

/// Forwards the notifications of a stream until it ends. Returns true if the server was stopped as idle, false if the
/// stream was lost, and none if it could not be opened or the client is gone.
async fn run_stream(
    emulated: &Weak<EmulatedSubscriptions>,
    binding: &Weak<ServerBinding>,
    stream: u64,
    filter: &ListenFilter,
) -> Option<bool> {
    let connection = connection_for(binding, filter).await?;
    let idle_guard = connection.hold();
    let stamped = stamped(
        &*binding.upgrade()?,
        ResponseMode::Stream,
        DeclaredTasks::AsDeclared,
        connection.revision(),
        &listen_params(filter),
    );
    let method = Method::SubscriptionsListen;
    let mut call = connection.call(method, &stamped.ok()??).await;
    let first = tokio::time::timeout(ACKNOWLEDGEMENT, next_notification(&mut call)).await;
    // Streams of list changes do not keep the server running after the acknowledgement.
    let is_held = binding
        .upgrade()
        .is_some_and(|binding| binding.wants_awake(filter));
    let _idle_guard = is_held.then_some(idle_guard);
    let mut first = first.ok();
    loop {
        let note = match first.take() {
            Some(note) => note,
            None => next_notification(&mut call).await,
        };
        let Some(note) = note else {
            return Some(connection.running.stop_cause().is_some());
        };
        let (emulated, binding) = (emulated.upgrade()?, binding.upgrade()?);
        let params = Some(&*note.params);
        let mut subscriptions = lock(&emulated.subscriptions);
        let acts = if note.method == Method::SubscriptionsAcknowledged {
            subscriptions.acknowledged(stream, params, emulated.clock.now())
        } else {
            subscriptions.notification(stream, note.method, params)
        };
        drop(subscriptions);
        emulated.perform(&binding, acts);
    }
}

/// Returns the connection for a stream. An idle server is not started for list changes; the stream is opened once another
/// request has started it.
async fn connection_for(
    binding: &Weak<ServerBinding>,
    filter: &ListenFilter,
) -> Option<Arc<UpstreamConnection>> {
    let mut connections = binding.upgrade()?.slot.shared.info_cache.connections();
    loop {
        let binding = binding.upgrade()?;
        if binding.wants_awake(filter) {
            return binding.connection().await.ok();
        }
        let connection = binding.open_connection();
        if let Some(connection) =
            connection.filter(|connection| connection.revision().era() == Era::Modern)
        {
            return Some(connection);
        }
        // Waiting does not keep the client alive.
        drop(binding);
        connections.changed().await.ok()?;
    }
}
