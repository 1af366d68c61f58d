//! One connection to the server, and whoever is behind it.

pub(crate) mod askable;
pub(crate) mod ownership;
pub(crate) mod pool;
pub(crate) mod questions;
pub(crate) mod shared_lists;
pub(crate) mod slot;
pub(crate) mod state_lost;
pub(crate) mod unanswered;
pub(crate) mod unasked;
pub(crate) mod usage;

use crate::subscriptions::listen;
use crate::sync::lock;
use crate::tasks::kept;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcpact_config::Strategy;
use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_spec::{Era, Feature, Method, Revision, Side};
use mcpact_translate::input::{Completions, DefaultAnswers};
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::raw::Object;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::connection::askable::AskableCalls;
use crate::connection::ownership::Ownership;
use crate::connection::questions::QuestionRegistry;
use crate::connection::shared_lists::SharedListFetches;
use crate::connection::slot::ConnectionSlot;
use crate::connection::slot::ServerShared;
use crate::connection::state_lost::StatefulUse;
use crate::connection::usage::UsageTracker;
use crate::metrics::ServerMetrics;
use crate::pins::Pins;
use crate::subscriptions::log_levels::LogLevels;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{
    HealthProbe, ManagedConnection, RunningInstance, SharingPolicy, sharing_policy,
};
use crate::tasks::kept::KeptTasks;
use crate::tasks::mapped::Mapping;
use crate::tasks::tool_support::ToolTasks;
use mcpact::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, Connected, Connection, RawRequest,
    ServerNotification, ServerResponse, ToolHeaders, Unsolicited,
};

/// How many visited URLs are remembered.
const COMPLETIONS: usize = 256;

/// A connection, and who hears what belongs to no call.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    /// The instance that it is; before the connection, so that its end is meant to be.
    pub(crate) running: RunningInstance,
    /// Our name for the session, which no other one ever has.
    pub(crate) session: u64,
    /// The same, to be written down.
    pub(crate) name: Box<str>,
    pub(crate) upstream: Connection,
    /// ClientRef a legacy server is, as a modern result says it.
    pub(crate) server_info: Box<str>,
    pub(crate) book: Arc<ToolHeaders>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) log_levels: LogLevels,
    /// ListScope it is, where it is shared and has become one's.
    pub(crate) ownership: Ownership,
    /// ClientRef has made calls on it.
    pub(crate) usage: UsageTracker,
    pub(crate) metrics: Arc<ServerMetrics>,
    /// What those who use it declare.
    pub(crate) declared: CapabilityBits,
    pub(crate) default_answers: DefaultAnswers,
    tool_tasks: Arc<ToolTasks>,
    pins: Arc<Pins>,
    pub(crate) mapping: Weak<Mapping>,
    /// Tasks that run here for clients of the server's own revision.
    pub(crate) kept: KeptTasks,
    /// Calls of modern clients.
    pub(crate) askable: AskableCalls,
    completions: Mutex<Completions>,
    unsolicited: Mutex<Option<mpsc::Receiver<Unsolicited>>>,
    pub(crate) strategy: Strategy,
    /// How many streams of changes and followed tasks of a modern server there are.
    holders: AtomicUsize,
    /// What a legacy client is being asked.
    pub(crate) question_registry: QuestionRegistry,
    /// What its client may have in it.
    pub(crate) stateful_use: StatefulUse,
    /// Whoever listens for changed lists.
    pub(crate) watching: OnceLock<AbortHandle>,
    /// The lists that it is asked for on behalf of many.
    pub(crate) common: SharedListFetches,
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        if let Some(watching) = self.watching.get() {
            watching.abort();
        }
    }
}

/// Somebody who needs the server between calls, for as long as this is held.
#[derive(Debug)]
pub(crate) struct IdleGuard(Arc<UpstreamConnection>);

impl Drop for IdleGuard {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsRef<RunningInstance> for UpstreamConnection {
    fn as_ref(&self) -> &RunningInstance {
        &self.running
    }
}

impl ManagedConnection for UpstreamConnection {
    fn close(&self) {
        self.upstream.close();
    }

    /// Where a server sleeps when nobody calls it, nobody can expect to hear of its lists.
    fn has_listeners(&self) -> bool {
        let is_heard = match self.strategy {
            Strategy::Stateful => self.subscribers.is_waiting(),
            Strategy::Stateless | Strategy::Persistent | Strategy::Singleton => {
                self.subscribers.is_waiting_for_resources()
            }
        };
        let mapping = self.mapping.upgrade();
        let has_tasks = self.kept.are_running()
            || mapping.is_some_and(|mapping| mapping.are_any_in(self.session));
        is_heard || has_tasks || self.holders.load(Ordering::Relaxed) > 0 || self.upstream.is_free()
    }

    fn era(&self) -> Era {
        self.revision().era()
    }

    fn probe(
        self: Arc<Self>,
        probe: HealthProbe,
    ) -> BoxFuture<'static, Option<Result<String, String>>> {
        let answer = async move {
            let stamp = Stamp {
                version: self.revision().as_str(),
                capabilities: "{}",
                client_info: None,
                log_level: None,
            };
            let params = match self.era() {
                Era::Legacy => probe.params,
                Era::Modern => stamp.apply(Some(&probe.params)).ok()?,
            };
            match self.request(probe.method, &params).await.ok()? {
                ServerResponse::Result(raw) => Some(Ok(raw.to_string())),
                ServerResponse::Error(raw) => Some(Err(raw.to_string())),
            }
        };
        answer.boxed()
    }
}

impl UpstreamConnection {
    pub(crate) fn new(
        profile: Connected,
        declared: CapabilityBits,
        shared: &ServerShared,
        subscribers: Arc<Subscribers>,
        running: RunningInstance,
    ) -> Self {
        let mut session = [0; 8];
        // Without randomness a name may repeat; then a cursor is tried where it is not known.
        let _ = getrandom::fill(&mut session);
        let session = u64::from_ne_bytes(session);
        Self {
            running,
            strategy: shared.run().strategy,
            holders: AtomicUsize::new(0),
            session,
            name: format!("{session:x}").into(),
            server_info: profile
                .connection
                .introduction
                .server_info
                .encode(Revision::newest(Era::Modern))
                .into(),
            upstream: profile.connection,
            book: Arc::clone(&shared.book),
            subscribers,
            log_levels: LogLevels::default(),
            ownership: Ownership::default(),
            usage: UsageTracker::default(),
            metrics: Arc::clone(&shared.metrics),
            declared,
            default_answers: shared.default_answers.clone(),
            tool_tasks: Arc::clone(&shared.tool_tasks),
            pins: Arc::clone(&shared.pins),
            mapping: Arc::downgrade(&shared.mapping),
            kept: KeptTasks::default(),
            askable: AskableCalls::default(),
            completions: Mutex::new(Completions::new(COMPLETIONS)),
            unsolicited: Mutex::new(Some(profile.unsolicited)),
            question_registry: QuestionRegistry::default(),
            stateful_use: StatefulUse::default(),
            watching: OnceLock::new(),
            common: SharedListFetches::default(),
        }
    }

    /// Whether it takes calls.
    pub(crate) fn is_open(&self) -> bool {
        !self.upstream.is_gone() && self.running.is_open()
    }

    /// A stream of changes is opened, for which the server shall stay awake.
    pub(crate) fn hold(self: &Arc<Self>) -> IdleGuard {
        self.holders.fetch_add(1, Ordering::Relaxed);
        IdleGuard(Arc::clone(self))
    }

    pub(crate) fn revision(&self) -> Revision {
        self.upstream.revision()
    }

    /// Takes note of a page of the server's tools.
    pub(crate) fn learn_tools(&self, page: &str) {
        self.book.learn(page);
        self.pins.check(page);
        if self.revision().has(Feature::TasksCore) {
            self.tool_tasks.learn(page);
        }
    }

    /// Whether there is anything that the server could ask whoever uses the connection.
    pub(crate) fn may_ask(&self) -> bool {
        self.declared.iter().next().is_some()
    }

    /// Which URLs the server has called visited.
    pub(crate) fn completions(&self) -> MutexGuard<'_, Completions> {
        lock(&self.completions)
    }

    pub(crate) fn complete(&self, note: &ServerNotification) {
        let params = Object::parse(&note.params).unwrap_or_default();
        if let Some(id) = params.get_str("elicitationId") {
            self.completions().note(&id);
        }
    }

    /// Makes a request that is in no client's words.
    pub(crate) async fn call(&self, method: Method, params: &str) -> Call {
        let order = RawRequest {
            method: Some(method),
            name: method.as_str(),
            params: Some(params),
            trace: None,
        };
        let number = self.upstream.next_id();
        self.upstream.call(number, order, &self.book).await
    }

    /// Asks the server something that no client asked for; only the answer matters.
    pub(crate) async fn request(
        &self,
        method: Method,
        params: &str,
    ) -> Result<ServerResponse, CallFailure> {
        let mut call = self.call(method, params).await;
        loop {
            match call.next().await {
                CallEvent::Response(reply) => return Ok(reply),
                CallEvent::Failed(CallFailure::Ambiguous(AmbiguousRefusal {
                    error: Some(raw),
                    ..
                })) => return Ok(ServerResponse::Error(raw)),
                CallEvent::Failed(loss) => return Err(loss),
                CallEvent::Notification(_) => {}
                CallEvent::Request(ask) => self.refuse_during(ask, Some(method)).await,
            }
        }
    }

    /// What can be asked on nobody's behalf.
    pub(crate) fn answered_here(&self) -> CapabilitySet {
        CapabilitySet::declaring(Side::Client, self.default_answers.capabilities().iter())
    }

    /// Hears what belongs to no call, as long as there is somebody to tell; `slot` is told when the
    /// connection is lost.
    pub(crate) fn serve_unsolicited(self: &Arc<Self>, slot: Weak<ConnectionSlot>) {
        let unsolicited = lock(&self.unsolicited).take();
        let connection = Arc::downgrade(self);
        if let Some(mut unsolicited) = unsolicited {
            tokio::spawn(async move {
                while let Some(stray) = unsolicited.recv().await {
                    let Some(connection) = connection.upgrade() else {
                        return;
                    };
                    match stray {
                        Unsolicited::Notification(note) => {
                            connection.tell_owner(&note);
                            if let Some(slot) = slot.upgrade() {
                                slot.tell(note.method, connection.era());
                            }
                            connection.tell_of_task(&note).await;
                            listen::changed(&connection, &note).await;
                        }
                        Unsolicited::Request(ask) => connection.asked(ask),
                    }
                }
                let Some(connection) = connection
                    .upgrade()
                    .filter(|connection| connection.upstream.is_gone())
                else {
                    return;
                };
                let was_retired = connection.running.stop_cause().is_some();
                let slot = slot
                    .upgrade()
                    .filter(|slot| !slot.has_moved_on(&connection));
                drop(connection);
                match slot {
                    // Whoever sleeps is not woken by those who only listen.
                    Some(slot) if was_retired => slot.subscribers().listens.lost(),
                    Some(slot) => slot.lost().await,
                    None => {}
                }
            });
        }
    }

    /// Where a task of the server stands, for the modern clients that want to hear of it.
    async fn tell_of_task(&self, note: &ServerNotification) {
        match note.method {
            Method::ToolsListChanged => self.tool_tasks.forget(),
            Method::Cancelled => {
                if let Some(mapping) = self.mapping.upgrade() {
                    mapping.withdraw(self, note);
                }
            }
            Method::TasksStatus => {
                let mapping = self.mapping.upgrade();
                let detailed = mapping.and_then(|mapping| mapping.told(self, note));
                if let Some(detailed) = detailed {
                    listen::announce(self, &detailed).await;
                }
            }
            _ => {}
        }
    }

    fn tell_owner(&self, note: &ServerNotification) {
        if note.method == Method::ElicitationComplete {
            self.complete(note);
        }
        self.question_registry.withdraw(note);
        // These name questions and calls by ids that mean something else to the client, or nothing.
        let is_between_us = matches!(note.method, Method::Cancelled | Method::Progress);
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        if note.method == Method::TasksStatus && is_shared {
            kept::notify_task_owner(self, note);
        } else if note.method == Method::LoggingMessage {
            self.tell_log(note);
        } else if !is_between_us {
            self.subscribers.tell(note.method, &note.params);
        }
    }

    /// The client whose session this is has finished its handshake.
    pub(crate) fn confirmed(self: &Arc<Self>) {
        for ask in self.subscribers.confirmed() {
            self.asked(ask);
        }
    }
}
