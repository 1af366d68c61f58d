//! Subscriptions of a legacy client at a modern server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytestring::ByteString;
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
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use mcpact::connection::{Call, CallEvent};

use crate::connection::{IdleGuard, UpstreamConnection};
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::error::ServeError;
use crate::exchange::{DeclaredTasks, Exchange, refusal, stamped};
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

/// How long a stream is read on after another has taken its place: on HTTP what it still carries may
/// arrive later than the other's acknowledgement.
const LINGER: Duration = Duration::from_secs(1);

/// How long a server is kept awake to agree to a stream.
const AGREEMENT: Duration = Duration::from_secs(5);

/// What a legacy client wants to hear, and the streams on which it is heard.
#[derive(Debug)]
pub(crate) struct EmulatedSubscriptions {
    wishes: Mutex<LegacySubscriptions>,
    streams: Mutex<HashMap<u64, AbortHandle>>,
    /// By numbers of our own: a client may use an id twice.
    waiting: Mutex<HashMap<Id, oneshot::Sender<Result<(), WireError>>>>,
    last: AtomicI64,
    sink: WeakClientSink,
    clock: Clock,
}

impl Drop for EmulatedSubscriptions {
    fn drop(&mut self) {
        for stream in lock(&self.streams).values() {
            stream.abort();
        }
    }
}

impl EmulatedSubscriptions {
    pub(crate) fn new(server: &CapabilitySet, sink: &ClientSink, clock: Clock) -> Self {
        let mut wishes = LegacySubscriptions::new(sink.revision(), server, LIMITS);
        if sink.is_aggregate() {
            wishes = wishes.without_lists();
        }
        // Whatever waits for a client without a stream of its own is kept by its front.
        let nothing_yet = wishes.channel_opened();
        debug_assert!(nothing_yet.is_empty());
        Self {
            wishes: Mutex::new(wishes),
            streams: Mutex::default(),
            waiting: Mutex::default(),
            last: AtomicI64::default(),
            sink: sink.downgrade(),
            clock,
        }
    }

    /// The client may be told things.
    pub(crate) fn begin(self: &Arc<Self>, binding: &Arc<ServerBinding>) {
        let acts = lock(&self.wishes).ready();
        self.perform(binding, acts);
    }

    /// Something may have changed that the client was not told of.
    pub(crate) fn missed(self: &Arc<Self>, binding: &Arc<ServerBinding>) {
        let acts = lock(&self.wishes).resync();
        self.perform(binding, acts);
    }

    /// Tells the client something that belongs to no request.
    pub(crate) fn say(&self, method: Method, params: &str) {
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
                            open.abort();
                        });
                    }
                }
                Action::Answer { request, outcome } => {
                    if let Some(waiting) = lock(&self.waiting).remove(&request) {
                        // Whoever asked may have gone.
                        let _ = waiting.send(outcome);
                    }
                }
                Action::Notify { method, params } => {
                    self.say(method, params.as_deref().unwrap_or("{}"));
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
        // The client keeps the stream, and not the other way round: it ends when the client goes.
        let (emulated, binding) = (Arc::downgrade(self), Arc::downgrade(binding));
        let listening = tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let end = listen(&emulated, &binding, stream, &filter).await;
            if let (Some(emulated), Some(binding)) = (emulated.upgrade(), binding.upgrade()) {
                lock(&emulated.streams).remove(&stream);
                let acts = match end {
                    End::Slept => lock(&emulated.wishes).server_idle(stream),
                    End::Broke => lock(&emulated.wishes).ended(stream, emulated.clock.now()),
                };
                emulated.perform(&binding, acts);
            }
        });
        lock(&self.streams).insert(stream, listening.abort_handle());
    }

    /// `resources/subscribe` and `resources/unsubscribe`.
    pub(crate) async fn wish(
        self: &Arc<Self>,
        exchange: &Exchange,
    ) -> Result<ByteString, ServeError> {
        let job = &exchange.inbound.job;
        // It does not fall asleep before it has heard of it.
        let _awake = exchange.connection.hold();
        let (answer, answered) = oneshot::channel();
        let id = Id::number(self.last.fetch_add(1, Ordering::Relaxed));
        lock(&self.waiting).insert(id.clone(), answer);
        let params = Some(&**job.params);
        let acts = if job.method == Some(Method::ResourcesSubscribe) {
            lock(&self.wishes).subscribe(id, params)
        } else {
            lock(&self.wishes).unsubscribe(id, params)
        };
        self.perform(&exchange.binding, acts);
        match answered.await {
            Ok(outcome) => {
                outcome?;
                Ok(ByteString::from_static("{}"))
            }
            Err(_) => Err(refusal(
                ErrorCode::InternalError.code(),
                String::from("the session ended"),
                None,
                exchange.downstream(),
            )),
        }
    }
}

/// A stream on which the server tells, and what keeps it.
struct Stream {
    call: Call,
    connection: Arc<UpstreamConnection>,
    /// Keeps the server awake: until it has agreed, or for as long as there is the stream.
    awake: Option<IdleGuard>,
}

/// Why a stream is over.
enum End {
    /// The server sleeps.
    Slept,
    /// It broke, or could not be opened.
    Broke,
}

impl Stream {
    /// Asks the server to tell of this; none if there is no way to it.
    async fn open(binding: &Weak<ServerBinding>, filter: &ListenFilter) -> Option<Self> {
        let connection = connection_for(binding, filter).await?;
        let awake = Some(connection.hold());
        let binding = binding.upgrade()?;
        let params = ObjectWriter::new()
            .raw("notifications", &filter.encode())
            .finish();
        let told = DeclaredTasks::AsDeclared;
        let stamped = stamped(
            &binding,
            ResponseMode::Stream,
            told,
            connection.revision(),
            &params,
        );
        let params = stamped.ok()??;
        Some(Self {
            call: connection.call(Method::SubscriptionsListen, &params).await,
            connection,
            awake,
        })
    }

    /// The first that is heard of it, if anything is in time. From then on the server may sleep if only its lists
    /// matter.
    async fn begin(
        &mut self,
        binding: &Weak<ServerBinding>,
        filter: &ListenFilter,
    ) -> Option<CallEvent> {
        let first = tokio::time::timeout(AGREEMENT, self.call.next()).await;
        let is_held = binding
            .upgrade()
            .is_some_and(|binding| binding.wants_awake(filter));
        self.awake = self.awake.take().filter(|_| is_held);
        first.ok()
    }

    fn end(&self) -> End {
        match self.connection.running.stop_cause() {
            Some(_) => End::Slept,
            None => End::Broke,
        }
    }
}

/// The connection on which the server tells of this. One that sleeps is not woken to tell of its lists, but heard when
/// somebody else has woken it.
async fn connection_for(
    binding: &Weak<ServerBinding>,
    filter: &ListenFilter,
) -> Option<Arc<UpstreamConnection>> {
    let mut connections = binding.upgrade()?.slot.connections();
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
        // Whoever waits does not keep the client.
        drop(binding);
        connections.changed().await.ok()?;
    }
}

/// ListenStreams until the stream ends.
async fn listen(
    emulated: &Weak<EmulatedSubscriptions>,
    binding: &Weak<ServerBinding>,
    stream: u64,
    filter: &ListenFilter,
) -> End {
    let Some(mut open) = Stream::open(binding, filter).await else {
        return End::Broke;
    };
    let mut first = open.begin(binding, filter).await;
    loop {
        let event = match first.take() {
            Some(event) => event,
            None => open.call.next().await,
        };
        let note = match event {
            CallEvent::Notification(note) => note,
            CallEvent::Request(_) => continue,
            CallEvent::Response(_) | CallEvent::Failed(_) => return open.end(),
        };
        let (Some(emulated), Some(binding)) = (emulated.upgrade(), binding.upgrade()) else {
            return End::Broke;
        };
        let params = Some(&*note.params);
        let acts = if note.method == Method::SubscriptionsAcknowledged {
            lock(&emulated.wishes).acknowledged(stream, params, emulated.clock.now())
        } else {
            lock(&emulated.wishes).notification(stream, note.method, params)
        };
        emulated.perform(&binding, acts);
    }
}
