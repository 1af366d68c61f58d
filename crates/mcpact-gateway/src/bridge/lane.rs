//! One connection to the server, and whoever is behind it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

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

use super::askable::Askable;
use super::asked::BeingAsked;
use super::audience::Audience;
use super::claim::Claim;
use super::common::CommonLists;
use super::keepsake::Keepsake;
use super::levels::Levels;
use super::patrons::Patrons;
use super::port::{Port, Shared};
use super::tasks::{Kept, Mapping, ToolTasks};
use crate::metrics::ServerMetrics;
use crate::pins::Pins;
use crate::supervisor::{
    HealthProbe, ManagedConnection, RunningInstance, SharingPolicy, sharing_policy,
};
use mcpact::connection::{
    AmbiguousRefusal, Call, CallEvent, CallFailure, Connected, Connection, RawRequest,
    ServerNotification, ServerResponse, ToolHeaders, Unsolicited,
};

/// How many visited URLs are remembered.
const COMPLETIONS: usize = 256;

/// A connection, and who hears what belongs to no call.
#[derive(Debug)]
pub(super) struct Lane {
    /// The instance that it is; before the connection, so that its end is meant to be.
    pub(super) running: RunningInstance,
    /// Our name for the session, which no other one ever has.
    pub(super) session: u64,
    /// The same, to be written down.
    pub(super) name: Box<str>,
    pub(super) upstream: Connection,
    /// Who a legacy server is, as a modern result says it.
    pub(super) server_info: Box<str>,
    pub(super) book: Arc<ToolHeaders>,
    pub(super) audience: Arc<Audience>,
    pub(super) levels: Levels,
    /// Whose it is, where it is shared and has become one's.
    pub(super) claim: Claim,
    /// Who has made calls on it.
    pub(super) patrons: Patrons,
    pub(super) metrics: Arc<ServerMetrics>,
    /// What those who use it declare.
    pub(super) declared: CapabilityBits,
    pub(super) stand_in: DefaultAnswers,
    tool_tasks: Arc<ToolTasks>,
    pins: Arc<Pins>,
    pub(super) mapping: Weak<Mapping>,
    /// Tasks that run here for clients of the server's own revision.
    pub(super) kept: Kept,
    /// Calls of modern clients.
    pub(super) askable: Askable,
    completions: Mutex<Completions>,
    unsolicited: Mutex<Option<mpsc::Receiver<Unsolicited>>>,
    pub(super) strategy: Strategy,
    /// How many streams of changes and followed tasks of a modern server there are.
    holders: AtomicUsize,
    /// What a legacy client is being asked.
    pub(super) being_asked: BeingAsked,
    /// What its client may have in it.
    pub(super) keepsake: Keepsake,
    /// Whoever listens for changed lists.
    pub(super) watching: OnceLock<AbortHandle>,
    /// The lists that it is asked for on behalf of many.
    pub(super) common: CommonLists,
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(watching) = self.watching.get() {
            watching.abort();
        }
    }
}

/// Somebody who needs the server between calls, for as long as this is held.
#[derive(Debug)]
pub(crate) struct Hold(Arc<Lane>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsRef<RunningInstance> for Lane {
    fn as_ref(&self) -> &RunningInstance {
        &self.running
    }
}

impl ManagedConnection for Lane {
    fn close(&self) {
        self.upstream.close();
    }

    /// Where a server sleeps when nobody calls it, nobody can expect to hear of its lists.
    fn has_listeners(&self) -> bool {
        let is_heard = match self.strategy {
            Strategy::Stateful => self.audience.is_waiting(),
            Strategy::Stateless | Strategy::Persistent | Strategy::Singleton => {
                self.audience.is_waiting_for_resources()
            }
        };
        let mapping = self.mapping.upgrade();
        let has_tasks =
            self.kept.are_any() || mapping.is_some_and(|mapping| mapping.are_any_in(self.session));
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

impl Lane {
    pub(super) fn new(
        met: Connected,
        declared: CapabilityBits,
        shared: &Shared,
        audience: Arc<Audience>,
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
            server_info: met
                .connection
                .introduction
                .server_info
                .encode(Revision::newest(Era::Modern))
                .into(),
            upstream: met.connection,
            book: Arc::clone(&shared.book),
            audience,
            levels: Levels::default(),
            claim: Claim::default(),
            patrons: Patrons::default(),
            metrics: Arc::clone(&shared.metrics),
            declared,
            stand_in: shared.stand_in.clone(),
            tool_tasks: Arc::clone(&shared.tool_tasks),
            pins: Arc::clone(&shared.pins),
            mapping: Arc::downgrade(&shared.mapping),
            kept: Kept::default(),
            askable: Askable::default(),
            completions: Mutex::new(Completions::new(COMPLETIONS)),
            unsolicited: Mutex::new(Some(met.unsolicited)),
            being_asked: BeingAsked::default(),
            keepsake: Keepsake::default(),
            watching: OnceLock::new(),
            common: CommonLists::default(),
        }
    }

    /// Whether it takes calls.
    pub(super) fn is_open(&self) -> bool {
        !self.upstream.is_gone() && self.running.is_open()
    }

    /// A stream of changes is opened, for which the server shall stay awake.
    pub(super) fn hold(self: &Arc<Self>) -> Hold {
        self.holders.fetch_add(1, Ordering::Relaxed);
        Hold(Arc::clone(self))
    }

    pub(super) fn revision(&self) -> Revision {
        self.upstream.revision()
    }

    /// Takes note of a page of the server's tools.
    pub(super) fn learn_tools(&self, page: &str) {
        self.book.learn(page);
        self.pins.check(page);
        if self.revision().has(Feature::TasksCore) {
            self.tool_tasks.learn(page);
        }
    }

    /// Whether there is anything that the server could ask whoever uses the connection.
    pub(super) fn may_ask(&self) -> bool {
        self.declared.iter().next().is_some()
    }

    /// Which URLs the server has called visited.
    pub(super) fn completions(&self) -> MutexGuard<'_, Completions> {
        self.completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn complete(&self, note: &ServerNotification) {
        let params = Object::parse(&note.params).unwrap_or_default();
        if let Some(id) = params.get_str("elicitationId") {
            self.completions().note(&id);
        }
    }

    /// Makes a request that is in no client's words.
    pub(super) async fn call(&self, method: Method, params: &str) -> Call {
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
    pub(super) async fn request(
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
    pub(super) fn answered_here(&self) -> CapabilitySet {
        CapabilitySet::declaring(Side::Client, self.stand_in.capabilities().iter())
    }

    /// Hears what belongs to no call, as long as there is somebody to tell; `port` is told when the
    /// connection is lost.
    pub(super) fn serve_unsolicited(self: &Arc<Self>, port: Weak<Port>) {
        let unsolicited = self
            .unsolicited
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let lane = Arc::downgrade(self);
        if let Some(mut unsolicited) = unsolicited {
            tokio::spawn(async move {
                while let Some(stray) = unsolicited.recv().await {
                    let Some(lane) = lane.upgrade() else {
                        return;
                    };
                    match stray {
                        Unsolicited::Notification(note) => {
                            lane.tell_owner(&note);
                            if let Some(port) = port.upgrade() {
                                port.tell(note.method, lane.era());
                            }
                            lane.tell_of_task(&note).await;
                            lane.changed(&note).await;
                        }
                        Unsolicited::Request(ask) => lane.asked(ask),
                    }
                }
                let Some(lane) = lane.upgrade().filter(|lane| lane.upstream.is_gone()) else {
                    return;
                };
                let was_retired = lane.running.stop_cause().is_some();
                let port = port.upgrade().filter(|port| !port.has_moved_on(&lane));
                drop(lane);
                match port {
                    // Whoever sleeps is not woken by those who only listen.
                    Some(port) if was_retired => port.audience().listens.lost(),
                    Some(port) => port.lost().await,
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
                    self.announce(&detailed).await;
                }
            }
            _ => {}
        }
    }

    fn tell_owner(&self, note: &ServerNotification) {
        if note.method == Method::ElicitationComplete {
            self.complete(note);
        }
        self.being_asked.withdraw(note);
        // These name questions and calls by ids that mean something else to the client, or nothing.
        let is_between_us = matches!(note.method, Method::Cancelled | Method::Progress);
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        if note.method == Method::TasksStatus && is_shared {
            self.tell_task_owner(note);
        } else if note.method == Method::LoggingMessage {
            self.tell_log(note);
        } else if !is_between_us {
            self.audience.tell(note.method, &note.params);
        }
    }

    /// The client whose session this is has finished its handshake.
    pub(super) fn confirmed(self: &Arc<Self>) {
        for ask in self.audience.confirmed() {
            self.asked(ask);
        }
    }
}
