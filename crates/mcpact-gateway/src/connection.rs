//! Connection to an upstream server, and the state that belongs to it.

pub(crate) mod ownership;
pub(crate) mod pool;
pub(crate) mod questions;
pub(crate) mod shared_lists;
pub(crate) mod slot;
pub(crate) mod state_lost;

use crate::subscriptions::listen;
use crate::sync::lock;
use crate::tasks::same_era;
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
use tokio::task::AbortHandle;

use crate::connection::ownership::{ConnectionUsers, Ownership};
use crate::connection::questions::{AskableCalls, QuestionRegistry};
use crate::connection::shared_lists::SharedListFetches;
use crate::connection::slot::{ConnectionSlot, ServerShared};
use crate::connection::state_lost::StatefulUse;
use crate::metrics::ServerMetrics;
use crate::pins::Pins;
use crate::subscriptions::log_levels::LogLevels;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{
    HEALTH_CHECKS_FAILED, HealthProbe, ManagedConnection, RunningInstance, SharingPolicy,
    StopCause, sharing_policy,
};
use crate::tasks::mapped::Mapping;
use crate::tasks::same_era::SessionTasks;
use crate::tasks::waiting::ToolTasks;
use mcpact::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, Connection, FailureText, RawRequest,
    ServerNotification, ServerResponse, ToolHeaders, Unsolicited, UnsolicitedReceiver,
};

/// Maximum number of remembered URLs that users have visited.
const COMPLETIONS: usize = 256;

/// Connection to one instance of an upstream server.
#[derive(Debug)]
pub(crate) struct UpstreamConnection {
    /// Instance in the supervisor. Dropped before the connection, so that its exit counts as intended.
    pub(crate) running: RunningInstance,
    /// Unique number of the session.
    pub(crate) session: u64,
    /// The number as text, for cursors.
    pub(crate) name: Box<str>,
    pub(crate) upstream: Connection,
    /// `serverInfo` of a legacy server in the form of modern results.
    pub(crate) server_info: Box<str>,
    pub(crate) book: Arc<ToolHeaders>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) log_levels: LogLevels,
    pub(crate) ownership: Ownership,
    pub(crate) users: Mutex<ConnectionUsers>,
    pub(crate) metrics: Arc<ServerMetrics>,
    /// Capabilities that the clients of the connection declare.
    pub(crate) declared: CapabilityBits,
    pub(crate) default_answers: DefaultAnswers,
    tool_tasks: Arc<ToolTasks>,
    pins: Arc<Pins>,
    pub(crate) mapping: Weak<Mapping>,
    /// Tasks of clients with the revision of the server.
    pub(crate) tasks: SessionTasks,
    /// Calls of modern clients that may receive questions.
    pub(crate) askable: AskableCalls,
    completions: Mutex<Completions>,
    pub(crate) strategy: Strategy,
    /// Number of [`IdleGuard`]s.
    holders: AtomicUsize,
    /// Questions in flight to legacy clients.
    pub(crate) question_registry: QuestionRegistry,
    /// Use that may leave state of its client in the server.
    pub(crate) stateful_use: StatefulUse,
    /// Background job that listens for changed lists.
    pub(crate) watching: OnceLock<AbortHandle>,
    pub(crate) shared_lists: SharedListFetches,
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        if let Some(watching) = self.watching.get() {
            watching.abort();
        }
    }
}

/// Prevents idle shutdown of the server until dropped.
#[derive(Debug)]
pub(crate) struct IdleGuard(Arc<UpstreamConnection>);

impl Drop for IdleGuard {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ManagedConnection for UpstreamConnection {
    fn close(&self) {
        self.upstream.close();
    }

    /// Listeners for list changes prevent idle shutdown only with the `stateful` strategy.
    fn has_listeners(&self) -> bool {
        let has_subscribers = match self.strategy {
            Strategy::Stateful => self.subscribers.are_listening(),
            Strategy::Stateless | Strategy::Persistent | Strategy::Singleton => {
                self.subscribers.are_listening_to_resources()
            }
        };
        let mapping = self.mapping.upgrade();
        let has_tasks = self.tasks.are_running()
            || mapping.is_some_and(|mapping| mapping.has_tasks_in(self.session));
        has_subscribers
            || has_tasks
            || self.holders.load(Ordering::Relaxed) > 0
            || self.upstream.is_free()
    }

    fn era(&self) -> Era {
        self.revision().era()
    }

    fn probe(
        self: Arc<Self>,
        probe: HealthProbe,
    ) -> BoxFuture<'static, Option<Result<String, String>>> {
        async move {
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
        }
        .boxed()
    }
}

impl UpstreamConnection {
    pub(crate) fn new(
        upstream: Connection,
        declared: CapabilityBits,
        shared: &ServerShared,
        subscribers: Arc<Subscribers>,
        running: RunningInstance,
    ) -> Self {
        let mut session = [0; 8];
        // Without randomness a number may repeat; then a cursor may reach a session that does not know it.
        let _ = getrandom::fill(&mut session);
        let session = u64::from_ne_bytes(session);
        Self {
            running,
            strategy: shared.run().strategy,
            holders: AtomicUsize::new(0),
            session,
            name: format!("{session:x}").into(),
            server_info: upstream
                .introduction
                .server_info
                .encode(Revision::newest(Era::Modern))
                .into(),
            upstream,
            book: Arc::clone(&shared.book),
            subscribers,
            log_levels: LogLevels::default(),
            ownership: Ownership::default(),
            users: Mutex::default(),
            metrics: Arc::clone(&shared.metrics),
            declared,
            default_answers: shared.default_answers.clone(),
            tool_tasks: Arc::clone(&shared.tool_tasks),
            pins: Arc::clone(&shared.pins),
            mapping: Arc::downgrade(&shared.mapping),
            tasks: SessionTasks::default(),
            askable: AskableCalls::default(),
            completions: Mutex::new(Completions::new(COMPLETIONS)),
            question_registry: QuestionRegistry::default(),
            stateful_use: StatefulUse::default(),
            watching: OnceLock::new(),
            shared_lists: SharedListFetches::default(),
        }
    }

    /// Returns true if the connection accepts calls.
    pub(crate) fn is_open(&self) -> bool {
        !self.upstream.is_gone() && self.running.is_open()
    }

    /// Returns true if the connection was closed because its server was removed or the gateway shuts down.
    pub(crate) fn is_ended(&self) -> bool {
        self.running.stop_cause() == Some(StopCause::Shutdown)
    }

    /// Returns the cause of the end if it was not intended.
    fn unexpected_end(&self) -> Option<FailureText> {
        match self.running.stop_cause() {
            Some(StopCause::Unhealthy) => Some(HEALTH_CHECKS_FAILED.into()),
            Some(_) => None,
            // The supervisor learns of the end before the users of the connection.
            None => self.upstream.end().or_else(|| self.running.failure()),
        }
    }

    /// Prevents idle shutdown until the guard is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> IdleGuard {
        self.holders.fetch_add(1, Ordering::Relaxed);
        IdleGuard(Arc::clone(self))
    }

    pub(crate) fn revision(&self) -> Revision {
        self.upstream.revision()
    }

    /// Records a page of the server's tool list.
    pub(crate) fn learn_tools(&self, page: &str) {
        self.book.learn(page);
        self.pins.check(page);
        if self.revision().has(Feature::TasksCore) {
            self.tool_tasks.learn(page);
        }
    }

    /// Returns true if the clients of the connection declare capabilities for questions.
    pub(crate) fn may_ask(&self) -> bool {
        self.declared.iter().next().is_some()
    }

    /// Returns the URLs that the server reported as visited.
    pub(crate) fn completions(&self) -> MutexGuard<'_, Completions> {
        lock(&self.completions)
    }

    pub(crate) fn complete(&self, note: &ServerNotification) {
        let params = Object::parse(&note.params).unwrap_or_default();
        if let Some(id) = params.get_str("elicitationId") {
            self.completions().note(&id);
        }
    }

    /// Sends a request of the gateway.
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

    /// Sends a request of the gateway and waits for the response; notifications are dropped.
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

    /// Returns the capabilities that default answers cover.
    pub(crate) fn answered_here(&self) -> CapabilitySet {
        CapabilitySet::declaring(Side::Client, self.default_answers.capabilities().iter())
    }

    /// Receives messages that belong to no call until the connection is dropped. Notifies `slot` of list changes and of
    /// the loss of the connection.
    pub(crate) fn serve_unsolicited(
        self: &Arc<Self>,
        mut unsolicited: UnsolicitedReceiver,
        slot: Weak<ConnectionSlot>,
    ) {
        let connection = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(message) = unsolicited.recv().await {
                let Some(connection) = connection.upgrade() else {
                    return;
                };
                match message {
                    Unsolicited::Notification(note) => {
                        connection.notify_owner(&note);
                        if let Some(slot) = slot.upgrade() {
                            slot.notify_list_change(note.method, connection.era());
                        }
                        connection.notify_task_listeners(&note).await;
                        listen::notify(&connection, note.method, &note.params).await;
                    }
                    Unsolicited::Request(ask) => connection.dispatch_question(ask),
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
                .filter(|slot| !slot.has_replaced(&connection));
            drop(connection);
            match slot {
                // Listeners do not restart a server that was stopped as idle.
                Some(slot) if was_retired => slot.subscribers().listens.session_lost(),
                Some(slot) => slot.reconnect_for_listeners().await,
                None => {}
            }
        });
    }

    /// Sends the status of a task to the modern clients that listen to it.
    async fn notify_task_listeners(&self, note: &ServerNotification) {
        match note.method {
            Method::ToolsListChanged => self.tool_tasks.forget(),
            Method::Cancelled => {
                if let Some(mapping) = self.mapping.upgrade() {
                    mapping.withdraw(self, note);
                }
            }
            Method::TasksStatus => {
                let mapping = self.mapping.upgrade();
                let detailed = mapping.and_then(|mapping| mapping.status_changed(self, note));
                if let Some(detailed) = detailed {
                    listen::notify(self, Method::TasksChanged, &detailed).await;
                }
            }
            _ => {}
        }
    }

    fn notify_owner(&self, note: &ServerNotification) {
        if note.method == Method::ElicitationComplete {
            self.complete(note);
        }
        self.question_registry.withdraw(note);
        // These contain request ids of this connection, which are meaningless to the client.
        let is_internal = matches!(note.method, Method::Cancelled | Method::Progress);
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        let is_of_task = note.method == Method::TasksStatus;
        if is_of_task && (same_era::notify_task_owner(self, note) || is_shared) {
            // No other user of a shared session gets it.
        } else if note.method == Method::LoggingMessage {
            self.forward_log(note);
        } else if !is_internal {
            self.subscribers.notify(note.method, &note.params);
        }
    }

    /// Processes the questions that arrived before the client finished its handshake.
    pub(crate) fn confirmed(self: &Arc<Self>) {
        for ask in self.subscribers.take_deferred_questions() {
            self.dispatch_question(ask);
        }
    }
}
