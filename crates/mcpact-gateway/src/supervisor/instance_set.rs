//! All instances of one server and every decision about them: facts and a time go in, actions come out. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::mem::replace;
use std::time::Duration;

use mcpact_config::{Probe, RunSettings};
use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use super::failure_log::FailureLog;
use super::health::{Diagnosis, HealthCheck};
use super::idle;
use super::instance::{
    Event, Instance, InstanceId, InstanceState, ShutdownMode, StartCause, StopCause,
};
use super::placement::{
    CallAdmission, Capacity, Few, InstanceSharing, Placement, PoolFacts, Purpose, Room, admission,
    capacity, max_input_waits, max_instances, min_instances, place, surplus, suspended,
};
use super::record::InstanceRecord;
use super::restart_policy::{RestartPolicy, StartDecision, State};
use super::status::{InstanceStatus, ServerState, ServerStatus};
use crate::error::{Explanation, LOOKUP_INTERVAL};
use mcpact::connection::FailureText;

/// Number of ended instances that are remembered.
const MAX_ENDED: usize = 8;

/// Failure of an instance that was stopped after failed health checks.
pub(crate) const HEALTH_CHECKS_FAILED: &str = "health checks failed; instance stopped";

/// The instances of one server.
#[derive(Debug)]
pub(super) struct InstanceSet {
    pub(super) settings: RunSettings,
    records: BTreeMap<InstanceId, InstanceRecord>,
    /// The latest ended instances, newest first.
    ended: VecDeque<Instance>,
    pub(super) policy: RestartPolicy,
    last_id: u64,
    /// Number of queued calls.
    queued: usize,
    pub(super) failures: FailureLog,
    /// The server has answered a call since it was last left out of a result.
    has_served: bool,
    /// No more calls are admitted.
    pub(super) is_closed: bool,
}

/// Decision about a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Start an instance with this number.
    Start(InstanceId),
    /// Wait for a change, or until a time.
    Wait {
        /// The time, if known.
        until: Option<Moment>,
        /// Idle instance to close meanwhile.
        close: Option<InstanceId>,
    },
    /// Refuse.
    Refuse(Refusal),
}

/// Reason to refuse a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// All instances are busy and the queue is full.
    QueueFull,
    /// Too many recent failures.
    Suspended {
        /// Number of failures.
        failures: usize,
        /// Time until the next start.
        wait: Duration,
    },
    /// The program cannot be started.
    Unstartable,
    /// The server is shutting down.
    Closed,
}

/// Outcome of a call, as proof that the instance works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// No response.
    Unanswered,
    /// A list. Servers that fail with every call list their tools, too.
    Listed,
    /// A response to a call.
    Served,
}

/// Actions of one maintenance run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Maintenance {
    /// Instances to close.
    pub(super) close: Vec<InstanceId>,
    /// Instances to health-check.
    pub(super) check: Vec<InstanceId>,
    /// Start an instance without a call, for this cause.
    pub(super) start: Option<StartCause>,
    /// Time of the next run.
    pub(super) next: Option<Moment>,
}

impl InstanceSet {
    pub(super) fn new(settings: RunSettings) -> Self {
        let policy = RestartPolicy::new(settings.restarts.clone());
        Self {
            settings,
            records: BTreeMap::new(),
            ended: VecDeque::new(),
            policy,
            last_id: 0,
            queued: 0,
            failures: FailureLog::default(),
            has_served: false,
            is_closed: false,
        }
    }

    fn all(&self) -> Few<&InstanceRecord> {
        self.records.values().collect()
    }

    fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.records.values().map(|record| &record.instance)
    }

    /// Decides about the start of an instance. A caller in the queue is counted there.
    pub(super) fn admit(
        &mut self,
        sharing: InstanceSharing,
        cause: StartCause,
        is_queued: bool,
        now: Moment,
    ) -> Admission {
        if self.is_closed {
            return Admission::Refuse(Refusal::Closed);
        }
        // Capacity first: asking the policy after a suspension commits the caller to start.
        let wait = |until, close| Admission::Wait { until, close };
        let capacity = capacity(&self.all(), &self.settings, self.others(is_queued), now);
        match capacity {
            Capacity::Available => {}
            Capacity::StopFirst(id) => {
                let closes = self.retire(id, StopCause::Room, now);
                return wait(None, closes.then_some(id));
            }
            Capacity::Wait(until) => return wait(until, None),
            Capacity::Full => return Admission::Refuse(Refusal::QueueFull),
        }
        if self.is_attempt_running() {
            return wait(None, None);
        }
        // A later deadline is no use: the caller would time out in the queue.
        match self.policy.request_start(self.settings.queue_wait, now) {
            StartDecision::Start => {}
            StartDecision::AwaitAttempt => return wait(None, None),
            StartDecision::Wait { until } => return wait(Some(until), None),
            StartDecision::Unstartable => return Admission::Refuse(Refusal::Unstartable),
            StartDecision::Refuse { until } => {
                self.begin_outage();
                return Admission::Refuse(Refusal::Suspended {
                    failures: self.policy.failures(),
                    wait: until.since(now),
                });
            }
        }
        self.last_id += 1;
        let id = InstanceId(self.last_id);
        let instance = Instance::new(id, cause, now);
        let record = InstanceRecord::new(instance, sharing, &self.settings, now);
        self.records.insert(id, record);
        Admission::Start(id)
    }

    /// Returns the number of other queued calls.
    fn others(&self, is_queued: bool) -> usize {
        self.queued.saturating_sub(usize::from(is_queued))
    }

    /// Decides which connection of a pool a user gets.
    pub(super) fn place(
        &self,
        purpose: Purpose,
        pool: &PoolFacts,
        is_queued: bool,
        now: Moment,
    ) -> Placement {
        let room = Room {
            records: &self.all(),
            settings: &self.settings,
            queued: self.others(is_queued),
            now,
        };
        place(purpose, pool, &room)
    }

    /// Decides which connection of a pool a call gets, and starts the call if it gets one.
    pub(super) fn place_call(
        &mut self,
        purpose: Purpose,
        pool: &PoolFacts,
        is_queued: bool,
        now: Moment,
    ) -> Placement {
        let placement = self.place(purpose, pool, is_queued, now);
        if let Placement::Lease(slot) = placement
            && let Some(id) = pool.instance(slot)
            && self.start_call(id, is_queued, now) != CallAdmission::Started
        {
            return Placement::Wait(None);
        }
        placement
    }

    fn handle(&mut self, id: InstanceId, event: Event, now: Moment) -> bool {
        let record = self.records.get_mut(&id);
        record.is_some_and(|record| record.instance.handle(event, now))
    }

    /// Records the process of an instance.
    pub(super) fn spawned(&mut self, id: InstanceId, pid: u32, now: Moment) {
        let _ = self.handle(id, Event::Spawned(pid), now);
    }

    /// Records a finished negotiation: the instance accepts calls of these clients.
    pub(super) fn ready(
        &mut self,
        id: InstanceId,
        revision: Revision,
        sharing: InstanceSharing,
        now: Moment,
    ) {
        let _ = self.handle(id, Event::Ready(revision), now);
        self.policy.started();
        self.failures.clear();
        self.policy.reset_recovery();
        if let Some(record) = self.records.get_mut(&id) {
            record.sharing = sharing;
            record.last_used = now;
            record.health = HealthCheck::new(self.settings.health.clone(), now);
        }
    }

    /// Cancels a start for which no caller waits.
    pub(super) fn start_cancelled(&mut self, id: InstanceId, now: Moment) {
        let _ = self.retire(id, StopCause::Released, now);
        self.policy.cancelled(now);
    }

    /// Stops new calls on an instance. Returns true if its connection can be closed at once.
    pub(super) fn retire(&mut self, id: InstanceId, cause: StopCause, now: Moment) -> bool {
        self.handle(id, Event::Retire(cause), now)
    }

    /// Removes an instance after its connection and process have ended, and returns its final state.
    pub(super) fn remove(
        &mut self,
        id: InstanceId,
        why: &FailureText,
        random: u32,
        now: Moment,
    ) -> Option<Instance> {
        let was_running = self.records.get(&id)?.instance.is_running();
        self.disconnect(id, why, now);
        if was_running {
            self.instance_failed(id, why, random, now);
        }
        let instance = self.records.remove(&id)?.instance;
        self.ended.truncate(MAX_ENDED - 1);
        self.ended.push_front(instance.clone());
        Some(instance)
    }

    fn disconnect(&mut self, id: InstanceId, why: &FailureText, now: Moment) {
        self.mark_stable(now);
        let _ = self.handle(id, Event::Disconnected(why.clone()), now);
    }

    /// Starts a call on an instance, if it has a free place.
    pub(super) fn start_call(
        &mut self,
        id: InstanceId,
        is_queued: bool,
        now: Moment,
    ) -> CallAdmission {
        let others = self.others(is_queued);
        let admission = admission(self.records.get(&id), &self.settings, others);
        if admission == CallAdmission::Started
            && let Some(record) = self.records.get_mut(&id)
        {
            record.last_used = now;
            record.awaits_call = false;
            let _ = record.instance.handle(Event::CallStarted, now);
        }
        admission
    }

    /// Ends a call. Returns true if the connection can be closed.
    pub(super) fn end_call(&mut self, id: InstanceId, outcome: CallOutcome, now: Moment) -> bool {
        // The connection may have ended after the response; the record may be gone.
        let mut is_first = outcome == CallOutcome::Served;
        if let Some(record) = self.records.get_mut(&id) {
            record.last_used = now;
            if record.unresponsive_since.is_some() {
                // The call may be what kept the instance from answering the health check.
                record.health.due = now;
            }
            if outcome != CallOutcome::Unanswered {
                record.unresponsive_since = None;
                self.has_served = true;
            }
            is_first = is_first && !replace(&mut record.has_served, true);
        }
        if is_first {
            self.policy.stable();
        }
        self.handle(id, Event::CallEnded, now) || self.retire_surplus(id, now)
    }

    /// Records that a call waits for the input of its client, or no longer does.
    pub(super) fn set_suspended(&mut self, id: InstanceId, is_suspended: bool) {
        if let Some(record) = self.records.get_mut(&id) {
            record.suspended = match is_suspended {
                true => record.suspended.saturating_add(1),
                false => record.suspended.saturating_sub(1),
            };
        }
    }

    /// Returns true if calls are queued while more instances wait for input than may.
    pub(super) fn has_excess_waits(&self) -> bool {
        self.queued > 0 && suspended(&self.all()) > max_input_waits(&self.settings)
    }

    pub(super) fn set_listeners(&mut self, id: InstanceId, has_listeners: bool) {
        if let Some(record) = self.records.get_mut(&id) {
            record.has_listeners = has_listeners;
        }
    }

    /// Returns true if the instance accepts calls.
    pub(super) fn is_open(&self, id: InstanceId) -> bool {
        self.find(id).is_some_and(Instance::is_open)
    }

    /// Returns the number of calls of an instance.
    pub(super) fn calls(&self, id: InstanceId) -> usize {
        self.find(id).map_or(0, Instance::calls)
    }

    /// Returns true if any instance accepts calls.
    pub(super) fn has_open_instance(&self) -> bool {
        self.instances().any(Instance::is_open)
    }

    /// Returns the cause for which the gateway stopped an instance.
    pub(super) fn stop_cause(&self, id: InstanceId) -> Option<StopCause> {
        match self.find(id)?.state {
            InstanceState::Draining { cause, .. } | InstanceState::Stopped { cause } => Some(cause),
            _ => None,
        }
    }

    fn find(&self, id: InstanceId) -> Option<&Instance> {
        match self.records.get(&id) {
            Some(record) => Some(&record.instance),
            None => self.ended.iter().find(|instance| instance.id == id),
        }
    }

    /// Returns the time since an instance was started.
    pub(super) fn age(&self, id: InstanceId, now: Moment) -> Option<Duration> {
        Some(now.since(self.records.get(&id)?.instance.started))
    }

    /// Returns the number of instances ever started.
    pub(super) const fn starts(&self) -> u64 {
        self.last_id
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds a call to the queue, unless it is full.
    pub(super) fn enqueue(&mut self) -> Result<(), Refusal> {
        if self.queued >= self.settings.queue {
            return Err(Refusal::QueueFull);
        }
        self.queued += 1;
        Ok(())
    }

    /// Removes a call from the queue.
    pub(super) const fn dequeue(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Forgets the failures before an instance that has run as long as failures count. Less shows nothing without an
    /// answer: a server that crashes with every call may wait for its calls.
    fn mark_stable(&mut self, now: Moment) {
        for record in self.records.values_mut() {
            let instance = &record.instance;
            let is_old = now.since(instance.started) >= self.settings.restarts.window;
            if !record.is_stable && instance.is_open() && is_old {
                record.is_stable = true;
                self.policy.stable();
            }
        }
    }

    /// Finds idle instances, due health checks and missing instances.
    pub(super) fn maintain(&mut self, now: Moment) -> Maintenance {
        self.mark_stable(now);
        let (idle, next) = idle::plan(&self.all(), &self.settings, now);
        // The newest instances above the limit stop first.
        let mut close: Vec<InstanceId> = self.records.keys().rev().copied().collect();
        close.retain(|id| self.retire_surplus(*id, now));
        close.extend(
            idle.into_iter()
                .filter(|id| self.retire(*id, StopCause::Idle, now)),
        );
        let mut plan = Maintenance {
            close,
            next,
            ..Maintenance::default()
        };
        let mut schedule = |moment: Moment| {
            plan.next = Some(plan.next.map_or(moment, |next| next.min(moment)));
        };
        for (id, record) in &self.records {
            let instance = &record.instance;
            if let InstanceState::Draining { .. } = instance.state {
                let deadline = instance.since.after(self.settings.drain);
                if deadline <= now {
                    plan.close.push(*id);
                } else {
                    schedule(deadline);
                }
            }
            if !instance.is_open() {
                continue;
            }
            if !record.is_stable {
                schedule(instance.started.after(self.settings.restarts.window));
            }
            if record.health.due <= now {
                plan.check.push(*id);
            } else {
                schedule(record.health.due);
            }
        }
        if self.policy.is_unstartable() && self.settings.recovers {
            schedule(now.after(LOOKUP_INTERVAL));
        }
        let missing = self.missing();
        match missing.and(self.start_wait(now)) {
            Some(until) => schedule(until),
            None => plan.start = missing,
        }
        plan
    }

    /// Returns the end of the pause before the next start without a call.
    fn start_wait(&self, now: Moment) -> Option<Moment> {
        self.policy.next_start().filter(|until| *until > now)
    }

    /// Returns the cause for which an instance should be started without a call.
    fn missing(&self) -> Option<StartCause> {
        // A queued call starts what it needs. Competing with it for the last place could stop its instance for ever.
        if self.is_closed || self.queued > 0 || self.policy.is_unstartable() {
            return None;
        }
        let running = self.instances().filter(|one| one.is_running()).count();
        if running < min_instances(&self.settings) {
            return Some(match running < self.settings.min_ready {
                true => StartCause::MinReady,
                false => StartCause::Persistent,
            });
        }
        let is_down = self.failures.outage_cause().is_some() || self.is_suspended();
        (running == 0 && is_down && self.settings.recovers).then_some(StartCause::Recovery)
    }

    /// Returns true while a start after a failure is in progress. One attempt is enough to see whether the server still
    /// fails; other callers wait for its outcome.
    fn is_attempt_running(&self) -> bool {
        let has_failed = matches!(self.policy.state(), State::BackingOff { .. });
        has_failed && !self.has_open_instance() && self.instances().any(Instance::is_starting)
    }

    /// Replaces the settings. Running instances stay, up to the new limit.
    pub(super) fn update_settings(&mut self, settings: &RunSettings, now: Moment) {
        self.policy.update_settings(settings.restarts.clone());
        for record in self.records.values_mut() {
            record.health.update_settings(settings.health.clone(), now);
        }
        self.settings = settings.clone();
    }

    /// Retires an instance if it is idle and above the limit. Returns true if its connection can be closed.
    fn retire_surplus(&mut self, id: InstanceId, now: Moment) -> bool {
        self.records.len() > max_instances(&self.settings)
            && self.records.get(&id).is_some_and(InstanceRecord::is_idle)
            && surplus(&self.all(), &self.settings).contains(&id)
            && self.retire(id, StopCause::Room, now)
    }

    /// Records the start of a health check. Returns the probe and its timeout.
    pub(super) fn check_started(
        &mut self,
        id: InstanceId,
        now: Moment,
    ) -> Option<(Probe, Duration)> {
        let record = self.records.get_mut(&id)?;
        let is_busy = record.instance.calls() > 0;
        record.health.started(now);
        record.checked_while_busy = is_busy.then_some(now);
        let probe = match &self.settings.health.probe {
            // A busy instance is not given another call; it only shows that it is alive.
            probe if is_busy && !probe.is_free() => Probe::Auto,
            probe => probe.clone(),
        };
        Some((probe, record.health.timeout()))
    }

    /// Records the result of a health check. A failed instance is retired. Returns true if its connection can be closed.
    pub(super) fn check_finished(
        &mut self,
        id: InstanceId,
        has_passed: bool,
        random: u32,
        now: Moment,
    ) -> (Diagnosis, bool) {
        let Some(record) = self.records.get_mut(&id) else {
            return (Diagnosis::Healthy, false);
        };
        let checked_while_busy = record.checked_while_busy.take();
        record.unresponsive_since = match has_passed {
            true => None,
            false => record.unresponsive_since.or(checked_while_busy),
        };
        let limit = self.settings.call_timeout;
        let may_be_busy = |since| now.since(since) < limit;
        if checked_while_busy.is_some() && record.unresponsive_since.is_some_and(may_be_busy) {
            // Many servers do one thing at a time and answer later, but no call takes longer than the limit.
            record.health.postpone(now);
            return (Diagnosis::Unresponsive, false);
        }
        if checked_while_busy.is_some() && has_passed && !self.settings.health.probe.is_free() {
            // The busy instance got a cheaper probe, which does not show that it is healthy.
            record.health.postpone(now);
            return (Diagnosis::Healthy, false);
        }
        let diagnosis = record.health.finished(has_passed, now);
        if diagnosis != Diagnosis::Failed || !record.instance.is_open() {
            return (diagnosis, false);
        }
        let closes = self.retire(id, StopCause::Unhealthy, now);
        self.instance_failed(id, &HEALTH_CHECKS_FAILED.into(), random, now);
        (diagnosis, closes)
    }

    const fn is_suspended(&self) -> bool {
        matches!(self.policy.state(), State::Suspended { .. })
    }

    /// Returns the failure that ended an instance.
    pub(super) fn failure(&self, id: InstanceId) -> Option<FailureText> {
        match &self.find(id)?.state {
            InstanceState::Failed { why } => Some(why.clone()),
            _ => None,
        }
    }

    /// Records a failed start.
    pub(super) fn start_failed(
        &mut self,
        id: InstanceId,
        why: Explanation,
        random: u32,
        now: Moment,
    ) {
        self.record_failed_start(&why, now);
        let _ = self.handle(id, Event::StartFailed(why.text), now);
        self.policy.reset_recovery();
        self.policy.failed(random, now);
    }

    /// Records that the program of the server cannot be started. Starts are refused until [`startable`](Self::startable).
    pub(super) fn unstartable(&mut self) {
        self.policy.unstartable();
    }

    /// Records that the program can be started now.
    pub(super) fn startable(&mut self) {
        if self.policy.is_unstartable() {
            self.policy.reset();
        }
    }

    /// Records a start that needs approval first. A recovery attempt checks again later.
    pub(super) fn start_not_allowed(&mut self, why: &Explanation, random: u32, now: Moment) {
        self.record_failed_start(why, now);
        self.policy.schedule_recovery(random, now);
    }

    /// Begins an outage, unless another instance can serve.
    fn record_failed_start(&mut self, why: &Explanation, now: Moment) {
        if self.has_open_instance() {
            self.failures.record(why, now);
        } else {
            self.failures.begin_outage(why.clone(), now);
        }
    }

    /// Records the unexpected end of a connection. The failure counts at once: the process may take longer to exit, and
    /// callers could release the instance meanwhile.
    pub(super) fn connection_lost(
        &mut self,
        id: InstanceId,
        why: &FailureText,
        random: u32,
        now: Moment,
    ) {
        if self.is_open(id) {
            self.disconnect(id, why, now);
            self.instance_failed(id, why, random, now);
        }
    }

    /// Records the failure of an open instance. It begins an outage if the server is suspended or has never answered a
    /// call. Otherwise the next call simply starts another instance.
    fn instance_failed(&mut self, id: InstanceId, why: &FailureText, random: u32, now: Moment) {
        match self
            .records
            .get(&id)
            .is_some_and(|record| record.has_served)
        {
            true => self.policy.ended(now),
            false => self.policy.failed(random, now),
        }
        let is_useless = self.is_suspended() || !self.has_served;
        let why = Explanation::from(why.clone());
        if is_useless && !self.has_open_instance() {
            self.failures.begin_outage(why, now);
        } else {
            self.failures.record(&why, now);
        }
    }

    /// Turns the last failure into an outage, so that the server is retried without another call.
    fn begin_outage(&mut self) {
        if !self.has_open_instance() {
            self.failures.begin_outage_from_last();
        }
    }

    /// Records that a result was served without this server. Its client does not ask again, so the server is retried if
    /// it has failed, or as soon as it fails.
    pub(super) fn left_out(&mut self) {
        self.has_served = false;
        if self.policy.has_failed() {
            self.begin_outage();
        }
    }

    /// Refuses new and queued calls. Returns the number of queued calls.
    pub(super) const fn stop_admitting(&mut self) -> usize {
        self.is_closed = true;
        self.queued
    }

    /// Shuts down. Returns the instances to close at once.
    pub(super) fn close(&mut self, mode: ShutdownMode, now: Moment) -> Vec<InstanceId> {
        self.is_closed = true;
        let mut closing: Vec<InstanceId> = self.records.keys().copied().collect();
        closing.retain(|id| {
            let is_drained = self.retire(*id, StopCause::Shutdown, now);
            is_drained || mode == ShutdownMode::Immediate
        });
        closing
    }

    fn state(&self, now: Moment) -> ServerState {
        let any = |is: fn(&Instance) -> bool| self.instances().any(is);
        if any(|instance| instance.is_open() && instance.calls() > 0) {
            return ServerState::Busy;
        }
        if any(Instance::is_open) {
            return ServerState::Ready;
        }
        if any(Instance::is_starting) {
            return ServerState::Starting;
        }
        let paused = self.policy.paused_until().filter(|until| *until > now);
        match (self.policy.state(), paused) {
            (State::Suspended { since, until, .. }, _) => ServerState::Suspended {
                age: now.since(since),
                wait: until.since(now),
            },
            (_, Some(until)) => ServerState::Pausing {
                wait: until.since(now),
            },
            (_, None) => ServerState::Asleep,
        }
    }

    /// Returns the status of the server and its instances.
    pub(super) fn status(&self, now: Moment) -> ServerStatus {
        let status = |record: &InstanceRecord| {
            InstanceStatus::of(&record.instance, record.unresponsive_since, now)
        };
        let ended = |instance| InstanceStatus::of(instance, None, now);
        let retry = self.missing().and(self.start_wait(now));
        ServerStatus {
            state: self.state(now),
            instances: self.records.values().map(status).collect(),
            ended: self.ended.iter().map(ended).collect(),
            queued: self.queued,
            starts: self.starts(),
            failures: self.policy.failures() + self.failures.failed_deliveries,
            retry_in: retry.map(|until| until.since(now)),
            last_error: self.failures.last(now),
            outage: self.failures.outage(now),
        }
    }
}

#[cfg(test)]
mod tests;
