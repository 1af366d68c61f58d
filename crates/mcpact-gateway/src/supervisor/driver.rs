//! Executes the decisions of the instance set: the only file here with a clock, random numbers and background jobs.
//! Calls that wait for an instance are queued, with a limited number and waiting time.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;
use mcpact_spec::Era;
use mcpact_transport::stdio::child::Masks;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::events::MessageLimit;
use super::failure_log::OutageFlag;
use super::handles::{CallGuard, StartPermit};
use super::health::{Diagnosis, HealthProbe, has_passed, probe_request};
use super::instance::{InstanceId, ShutdownMode, StartCause, StopCause};
use super::instance_set::{Admission, InstanceSet, Refusal};
use super::placement::{
    Few, InstanceSharing, Placement, PoolFacts, Purpose, SharingPolicy, max_instances,
    sharing_policy,
};
use super::status::{ServerFailure, ServerStatus};
use crate::error::{CapacityLimits, UpstreamErrorKind};
use crate::event_history::ServerLog;
use crate::metrics::ServerMetrics;
use crate::sync::lock;
use mcpact::connection::FailureText;

/// Time that a shutdown may take in addition to `drain_seconds`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Maximum time between two maintenance runs.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Connection of an instance, as far as the supervisor needs it.
pub(crate) trait ManagedConnection: Debug + Send + Sync {
    /// Closes the connection.
    fn close(&self);
    /// Returns true if a client is subscribed to messages of this connection.
    fn has_listeners(&self) -> bool;
    /// Returns the era of the negotiated revision.
    fn era(&self) -> Era;
    /// Sends a health check. Returns the raw result or error, or none without an answer.
    fn probe(
        self: Arc<Self>,
        probe: HealthProbe,
    ) -> BoxFuture<'static, Option<Result<String, String>>>;
}

/// Starts instances without a call.
pub(crate) trait Starter: Debug + Send + Sync {
    /// Starts one instance. The supervisor learns the outcome through the start permit.
    fn start(self: Arc<Self>, cause: StartCause) -> BoxFuture<'static, ()>;
    /// Returns true unless the program of the server is missing or cannot be executed. Looks at the file system.
    fn can_start(&self) -> bool;
}

/// Placement of a call, as far as it was executed.
#[derive(Debug)]
pub(crate) enum Placed<C> {
    /// The call has started on this connection.
    Call(C, CallGuard),
    /// Open a connection in this slot, then place the call again.
    Open(usize),
    /// Release the connections of these slots, then place the call again.
    Release(Few<usize>),
}

/// Supervisor of one server.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// Name of the server.
    pub(super) server: Arc<str>,
    pub(super) metrics: Arc<ServerMetrics>,
    pub(super) server_log: ServerLog,
    pub(super) masks: Masks,
    /// Limits of log messages below `warning`, and from there on.
    pub(super) message_limits: Mutex<[MessageLimit; 2]>,
    /// Number of lines on stdout that are not JSON.
    pub(super) noise: AtomicU64,
    zero: Instant,
    instances: Mutex<InstanceSet>,
    pub(super) outage: Arc<OutageFlag>,
    connections: Mutex<BTreeMap<InstanceId, Weak<dyn ManagedConnection>>>,
    starter: OnceLock<Weak<dyn Starter>>,
    /// The starter is running.
    is_starting: AtomicBool,
    /// Notified when an instance or a call starts or ends.
    changed: Notify,
    /// Notified when maintenance is needed earlier than planned.
    wake: Arc<Notify>,
}

/// Place in the queue; dropping it leaves the queue.
struct Queued<'a>(&'a Supervisor);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.instances().dequeue();
        // The minimum number of instances is not kept while calls are queued.
        self.0.wake.notify_one();
    }
}

impl Supervisor {
    pub(crate) fn new(
        server: Arc<str>,
        settings: RunSettings,
        metrics: Arc<ServerMetrics>,
        server_log: ServerLog,
        masks: Masks,
    ) -> Arc<Self> {
        let instances = InstanceSet::new(settings);
        let supervisor = Arc::new(Self {
            outage: Arc::clone(&instances.failures.flag),
            server,
            metrics,
            server_log,
            masks,
            message_limits: Mutex::default(),
            noise: AtomicU64::new(0),
            zero: Instant::now(),
            instances: Mutex::new(instances),
            connections: Mutex::default(),
            starter: OnceLock::new(),
            is_starting: AtomicBool::new(false),
            changed: Notify::new(),
            wake: Arc::default(),
        });
        supervisor.spawn_maintenance();
        supervisor
    }

    /// Sets the starter, and begins to keep the minimum number of instances running.
    pub(crate) fn set_starter(&self, starter: Weak<dyn Starter>) {
        let _ = self.starter.set(starter);
        self.wake.notify_one();
    }

    pub(super) fn now(&self) -> Moment {
        Moment::at(self.zero.elapsed())
    }

    pub(super) fn instances(&self) -> MutexGuard<'_, InstanceSet> {
        lock(&self.instances)
    }

    /// Returns the status of the server and its instances.
    pub(crate) fn status(&self) -> ServerStatus {
        self.instances().status(self.now())
    }

    /// Returns true if any instance accepts calls.
    pub(crate) fn has_open_instance(&self) -> bool {
        self.instances().has_open_instance()
    }

    /// Replaces the settings. Running instances stay, up to the new limit.
    pub(crate) fn update_settings(&self, settings: &RunSettings) {
        self.update(|instances, now| instances.update_settings(settings, now));
    }

    /// Returns the failure that makes the server unusable until a call or a check succeeds.
    pub(crate) fn outage(&self) -> Option<ServerFailure> {
        let is_set = self.outage.is_set();
        is_set.then(|| self.instances().failures.outage(self.now()))?
    }

    /// Returns the number of lines on stdout that are not JSON.
    pub(crate) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Relaxed)
    }

    /// Returns the number of changes of the outage.
    pub(crate) fn outage_changes(&self) -> u64 {
        self.outage.changes()
    }

    /// Records that a result was served without this server.
    pub(crate) fn left_out(&self) {
        self.update(|instances, _| instances.left_out());
    }

    /// Records a start that needs approval first.
    pub(crate) fn start_not_allowed(&self, error: &UpstreamErrorKind) {
        let why = error.lasting_explanation(&self.masks);
        self.update(|instances, now| {
            instances.start_not_allowed(&why, random(), now);
            if error.is_unstartable() {
                instances.unstartable();
            }
        });
    }

    /// Admits starts again if the program of the server can be started by now.
    fn look_for_program(&self) {
        if self.instances().policy.is_unstartable()
            && let Some(starter) = self.starter.get().and_then(Weak::upgrade)
            && starter.can_start()
        {
            self.instances().startable();
        }
    }

    /// Forgets all failures: the next call starts the server.
    pub(crate) fn reset_failures(&self) {
        self.update(|instances, _| instances.policy.reset());
    }

    /// Applies a change to the instances and notifies waiting callers.
    fn update<T>(&self, change: impl FnOnce(&mut InstanceSet, Moment) -> T) -> T {
        let result = change(&mut self.instances(), self.now());
        self.changed();
        result
    }

    pub(super) fn changed(&self) {
        self.changed.notify_waiters();
        self.wake.notify_one();
    }

    /// Notifies waiting callers that a call has ended.
    pub(crate) fn call_ended(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for permission to start an instance.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        sharing: InstanceSharing,
        cause: StartCause,
    ) -> Result<StartPermit, UpstreamErrorKind> {
        self.look_for_program();
        let id = self
            .queue_until(|is_queued| {
                self.update_listeners();
                let now = self.now();
                let admission = self.instances().admit(sharing, cause, is_queued, now);
                match admission {
                    Admission::Start(id) => Ok(ControlFlow::Break(id)),
                    Admission::Refuse(refusal) => Err(refusal),
                    Admission::Wait { until, close } => {
                        close.into_iter().for_each(|id| self.close_one(id));
                        Ok(ControlFlow::Continue(until))
                    }
                }
            })
            .await?;
        self.log_starting(id, cause);
        Ok(StartPermit::new(Arc::clone(self), id))
    }

    /// Decides which connection of a pool a user gets.
    pub(crate) fn place(&self, purpose: Purpose, pool: &PoolFacts) -> Placement {
        self.prepare_placement(pool);
        self.instances().place(purpose, pool, false, self.now())
    }

    /// Starts a call on a connection of a pool, waiting for a free place. `view` returns the current facts and the open
    /// connection of each slot.
    pub(crate) async fn place_call<C>(
        self: &Arc<Self>,
        purpose: Purpose,
        view: impl Fn() -> (PoolFacts, Few<Option<C>>),
    ) -> Result<Placed<C>, UpstreamErrorKind> {
        self.queue_until(|is_queued| {
            let (pool, connections) = view();
            self.prepare_placement(&pool);
            let now = self.now();
            let placement = self.instances().place_call(purpose, &pool, is_queued, now);
            // The lock is released before a connection is dropped, which takes it.
            match placement {
                Placement::Lease(slot) => {
                    let guard = pool
                        .instance(slot)
                        .map(|id| CallGuard::new(Arc::clone(self), id));
                    let connection = connections.into_iter().nth(slot).flatten();
                    Ok(match connection.zip(guard) {
                        Some((connection, guard)) => {
                            ControlFlow::Break(Placed::Call(connection, guard))
                        }
                        None => ControlFlow::Continue(None),
                    })
                }
                Placement::Open(slot) => Ok(ControlFlow::Break(Placed::Open(slot))),
                Placement::Release(slots) => Ok(ControlFlow::Break(Placed::Release(slots))),
                Placement::Wait(until) => Ok(ControlFlow::Continue(until)),
                Placement::Refuse => Err(Refusal::QueueFull),
            }
        })
        .await
    }

    /// Updates the facts that decide about capacity, if a connection may be released for lack of it.
    fn prepare_placement(&self, pool: &PoolFacts) {
        if pool.has_other_owner() {
            self.update_listeners();
        }
    }

    pub(super) fn connect(&self, id: InstanceId, connection: Weak<dyn ManagedConnection>) {
        lock(&self.connections).insert(id, connection);
        // It may have been retired during the start, when there was nothing to close yet.
        if !self.instances().is_open(id) {
            self.close_one(id);
        }
    }

    fn connection(&self, id: InstanceId) -> Option<Arc<dyn ManagedConnection>> {
        lock(&self.connections).get(&id)?.upgrade()
    }

    pub(super) fn close_one(&self, id: InstanceId) {
        if let Some(connection) = self.connection(id) {
            self.log_stopping(id);
            connection.close();
        }
    }

    fn update_listeners(&self) {
        let connections = lock(&self.connections).clone();
        for (id, connection) in connections {
            if let Some(connection) = connection.upgrade() {
                let has_listeners = connection.has_listeners();
                self.instances().set_listeners(id, has_listeners);
            }
        }
    }

    /// Records the unexpected end of a connection.
    pub(super) fn connection_lost(&self, id: InstanceId, why: &FailureText) {
        self.update(|instances, now| instances.connection_lost(id, why, random(), now));
    }

    /// Removes an instance after its connection and process have ended.
    pub(super) fn remove(&self, id: InstanceId, why: &FailureText) {
        lock(&self.connections).remove(&id);
        let ended = self.instances().remove(id, why, random(), self.now());
        if let Some(instance) = ended {
            self.log_ended(&instance);
        }
        self.changed();
    }

    /// Shuts down, and waits until all instances have ended.
    pub(crate) async fn close(&self, mode: ShutdownMode) {
        let timeout = self.instances().settings.drain + SHUTDOWN_GRACE;
        let closing = self.instances().close(mode, self.now());
        closing.into_iter().for_each(|id| self.close_one(id));
        self.changed();
        let ended = self.until_some(|| self.instances().is_empty().then_some(()));
        // Processes that are left after that are killed with the runtime.
        let _ = tokio::time::timeout(timeout, ended).await;
    }

    /// Returns true if a call that waits for input is to be ended in favour of queued calls.
    pub(crate) fn has_excess_waits(&self) -> bool {
        self.instances().has_excess_waits()
    }

    /// Refuses new and queued calls; in-flight calls continue. Returns the number of queued calls.
    pub(crate) fn stop_admitting(&self) -> usize {
        self.update(|instances, _| instances.stop_admitting())
    }

    /// Waits until the server admits no more calls.
    pub(crate) async fn closed(&self) {
        self.until_some(|| self.instances().is_closed.then_some(()))
            .await;
    }

    /// Repeats a check after every change until it returns a value.
    pub(crate) async fn until_some<T>(&self, found: impl Fn() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = found() {
                return found;
            }
            changed.await;
        }
    }

    fn spawn_maintenance(self: &Arc<Self>) {
        let supervisor = Arc::downgrade(self);
        let wake = Arc::clone(&self.wake);
        tokio::spawn(async move {
            loop {
                let pause = match supervisor.upgrade() {
                    None => return,
                    Some(supervisor) => supervisor.maintain(),
                };
                // Ends at the planned time or when woken.
                let _ = tokio::time::timeout(pause, wake.notified()).await;
            }
        });
    }

    /// Runs maintenance once. Returns the time until the next run.
    fn maintain(self: &Arc<Self>) -> Duration {
        self.update_listeners();
        self.look_for_program();
        let plan = self.instances().maintain(self.now());
        for id in plan.close {
            self.log_idle(id);
            self.close_one(id);
        }
        for id in plan.check {
            self.check_health(id);
        }
        if let Some(cause) = plan.start
            && let Some(starter) = self.starter.get().and_then(Weak::upgrade)
            && !self.is_starting.swap(true, Ordering::Relaxed)
        {
            let supervisor = Arc::clone(self);
            tokio::spawn(async move {
                let before = supervisor.instances().starts();
                starter.start(cause).await;
                // The server may need approval first.
                let mut instances = supervisor.instances();
                if instances.starts() == before {
                    instances
                        .policy
                        .recovery_skipped(random(), supervisor.now());
                }
                drop(instances);
                supervisor.is_starting.store(false, Ordering::Relaxed);
                // More instances may be missing.
                supervisor.wake.notify_one();
            });
        }
        plan.next
            .map_or(MAX_PAUSE, |next| next.since(self.now()).min(MAX_PAUSE))
    }

    /// Sends a health check to an instance, in the background.
    fn check_health(self: &Arc<Self>, id: InstanceId) {
        let started = self.instances().check_started(id, self.now());
        let (Some((probe, timeout)), Some(connection)) = (started, self.connection(id)) else {
            return;
        };
        let errors_fail = self.instances().settings.health.errors_fail;
        let Some(probe) = probe_request(&probe, connection.era(), errors_fail) else {
            return;
        };
        let supervisor = Arc::downgrade(self);
        tokio::spawn(async move {
            let needs_success = probe.needs_success;
            let answer = tokio::time::timeout(timeout, connection.probe(probe)).await;
            let has_passed = answer
                .ok()
                .flatten()
                .is_some_and(|answer| has_passed(needs_success, answer));
            let Some(supervisor) = supervisor.upgrade() else {
                return;
            };
            let now = supervisor.now();
            let mut instances = supervisor.instances();
            let (diagnosis, closes) = instances.check_finished(id, has_passed, random(), now);
            drop(instances);
            if diagnosis != Diagnosis::Healthy {
                supervisor.log_unhealthy(id, diagnosis);
            }
            if closes {
                supervisor.close_one(id);
            }
            supervisor.changed();
        });
    }

    /// Records a failed start.
    pub(super) fn start_failed(&self, id: InstanceId, error: &UpstreamErrorKind) {
        let why = error.lasting_explanation(&self.masks);
        self.log_start_failed(id, error, &why);
        self.update(|instances, now| {
            instances.start_failed(id, why, random(), now);
            if error.is_unstartable() {
                instances.unstartable();
            }
        });
    }

    pub(super) fn retire(&self, id: InstanceId, cause: StopCause) {
        let closes = self.instances().retire(id, cause, self.now());
        if closes {
            self.close_one(id);
        }
        self.changed();
    }

    /// Repeats an attempt after every change, in the queue, until it breaks or `queue_seconds` have passed. An attempt
    /// gets true if the caller is in the queue already. It continues with a time at which it is repeated at the latest.
    pub(super) async fn queue_until<T>(
        &self,
        mut attempt: impl FnMut(bool) -> Result<ControlFlow<T, Option<Moment>>, Refusal>,
    ) -> Result<T, UpstreamErrorKind> {
        let first = attempt(false).map_err(|refusal| self.refuse(refusal))?;
        match first {
            ControlFlow::Break(outcome) => Ok(outcome),
            // Boxed, because few callers wait: the future of every call would have room for it.
            ControlFlow::Continue(_) => Box::pin(self.queue(attempt)).await,
        }
    }

    /// Repeats an attempt in the queue.
    async fn queue<T>(
        &self,
        mut attempt: impl FnMut(bool) -> Result<ControlFlow<T, Option<Moment>>, Refusal>,
    ) -> Result<T, UpstreamErrorKind> {
        let timeout = self.instances().settings.queue_wait;
        let deadline = Instant::now() + timeout;
        let mut queued = None;
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if queued.is_some() && self.instances().is_closed {
                return Err(UpstreamErrorKind::Retired);
            }
            let attempted = attempt(queued.is_some()).map_err(|refusal| self.refuse(refusal))?;
            let until = match attempted {
                ControlFlow::Break(outcome) => return Ok(outcome),
                ControlFlow::Continue(until) => until,
            };
            if queued.is_none() {
                let place = self.enqueue();
                queued =
                    Some(place.map_err(|full| self.refuse(self.pause(until).unwrap_or(full)))?);
            }
            let next = until.map_or(deadline, |until| {
                deadline.min(Instant::now() + until.since(self.now()))
            });
            let has_timed_out = tokio::time::timeout_at(next, changed).await.is_err();
            if has_timed_out && Instant::now() >= deadline {
                let refusal = self.pause(until).map(|refusal| self.refuse(refusal));
                return Err(refusal.unwrap_or_else(|| self.queue_timeout(timeout)));
            }
        }
    }

    fn enqueue(&self) -> Result<Queued<'_>, Refusal> {
        self.instances().enqueue()?;
        Ok(Queued(self))
    }

    /// Returns the reason to refuse a caller that waits until this time, if it is the end of a pause after a failure.
    fn pause(&self, until: Option<Moment>) -> Option<Refusal> {
        let instances = self.instances();
        let until = until.filter(|until| instances.policy.paused_until() == Some(*until))?;
        Some(Refusal::Suspended {
            failures: instances.policy.failures(),
            wait: until.since(self.now()),
        })
    }

    /// Waits for a future in the queue, for at most `queue_seconds`.
    pub(crate) async fn wait_in_queue<T>(
        &self,
        turn: impl Future<Output = T>,
    ) -> Result<T, UpstreamErrorKind> {
        let mut turn = pin!(turn);
        if let Some(turn) = turn.as_mut().now_or_never() {
            return Ok(turn);
        }
        let timeout = self.instances().settings.queue_wait;
        let _queued = self.enqueue().map_err(|refusal| self.refuse(refusal))?;
        tokio::select! {
            turn = &mut turn => Ok(turn),
            () = tokio::time::sleep(timeout) => Err(self.queue_timeout(timeout)),
            () = self.closed() => Err(UpstreamErrorKind::Retired),
        }
    }

    fn queue_timeout(&self, waited: Duration) -> UpstreamErrorKind {
        UpstreamErrorKind::QueueTimeout {
            state: self.status().busy_word(),
            limits: capacity_limits(&self.instances().settings),
            waited,
        }
    }

    /// Returns the error for a refused call.
    fn refuse(&self, refusal: Refusal) -> UpstreamErrorKind {
        let instances = self.instances();
        let last_cause = instances.failures.last_cause().cloned();
        match refusal {
            Refusal::QueueFull => UpstreamErrorKind::QueueFull {
                state: instances.status(self.now()).busy_word(),
                limits: capacity_limits(&instances.settings),
            },
            Refusal::Suspended { failures, wait } => {
                let last_cause = last_cause.unwrap_or_else(|| "the connection ended".into());
                UpstreamErrorKind::Suspended {
                    failures,
                    wait,
                    why: last_cause.text,
                    hint: last_cause.hint,
                }
            }
            Refusal::Unstartable => {
                let last_cause =
                    last_cause.unwrap_or_else(|| "the program cannot be started".into());
                UpstreamErrorKind::Unstartable {
                    why: last_cause.text,
                    hint: last_cause.hint,
                }
            }
            Refusal::Closed => UpstreamErrorKind::Retired,
        }
    }
}

/// Returns the limits that the error of a call without an instance names.
fn capacity_limits(settings: &RunSettings) -> CapacityLimits {
    CapacityLimits {
        is_exclusive: sharing_policy(settings.strategy) == SharingPolicy::Exclusive,
        takes_turns: false,
        instances: max_instances(settings),
        calls: settings.max_concurrent,
        queue: settings.queue,
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// Random number that spreads backoffs. Without randomness they are as short as possible.
fn random() -> u32 {
    getrandom::u32().unwrap_or(0)
}
