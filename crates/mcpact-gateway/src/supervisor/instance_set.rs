//! All instances of one server and every decision about them: facts and a time go in, actions come out. Pure.

mod failures;
mod health_checks;
mod sizing;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

pub(crate) use self::health_checks::HEALTH_CHECKS_FAILED;
use self::sizing::StartDemand;
use super::failure_log::FailureLog;
use super::health::HealthCheck;
use super::idle;
use super::instance::{
    Effect, Event, Instance, InstanceId, InstanceState, ShutdownMode, StartCause, StopCause,
};
use super::placement::{
    CallAdmission, Capacity, Few, InstanceSharing, Placement, PoolFacts, Purpose, Room, admission,
    capacity, place,
};
use super::record::InstanceRecord;
use super::recovery::Recovery;
use super::restart_policy::{Outcome, RestartPolicy, STABLE_AFTER, StartDecision};
use super::status::{InstanceStatus, ServerState, ServerStatus};
use mcpact::connection::FailureText;

/// Number of ended instances that are remembered.
const MAX_ENDED: usize = 8;

/// The instances of one server.
#[derive(Debug)]
pub(super) struct InstanceSet {
    settings: RunSettings,
    records: BTreeMap<InstanceId, InstanceRecord>,
    /// The latest ended instances, newest first.
    ended: VecDeque<Instance>,
    policy: RestartPolicy,
    last_id: u64,
    /// Number of queued calls.
    queued: usize,
    failures: FailureLog,
    recovery: Recovery,
    /// The server has answered a call since it was last left out of a result.
    has_served: bool,
    is_closed: bool,
}

/// Position of a caller relative to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePosition {
    /// Not queued yet.
    Arriving,
    /// Queued, and counted as such.
    Waiting,
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
    /// The server is shutting down.
    Closed,
}

/// End of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// The server has answered.
    Answered,
    /// The client stopped waiting.
    Abandoned,
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
            recovery: Recovery::default(),
            has_served: false,
            is_closed: false,
        }
    }

    pub(super) const fn settings(&self) -> &RunSettings {
        &self.settings
    }

    pub(super) const fn failures(&self) -> &FailureLog {
        &self.failures
    }

    pub(super) const fn failures_mut(&mut self) -> &mut FailureLog {
        &mut self.failures
    }

    fn all(&self) -> Few<&InstanceRecord> {
        self.records.values().collect()
    }

    fn instances(&self) -> impl Iterator<Item = &Instance> + Clone {
        self.records.values().map(|record| &record.instance)
    }

    /// Decides about the start of an instance.
    pub(super) fn admit(
        &mut self,
        sharing: InstanceSharing,
        cause: StartCause,
        position: QueuePosition,
        now: Moment,
    ) -> Admission {
        if self.is_closed {
            return Admission::Refuse(Refusal::Closed);
        }
        // Capacity first: asking the policy after a suspension commits the caller to start.
        let wait = |until, close| Admission::Wait { until, close };
        let capacity = capacity(&self.all(), &self.settings, self.others(position), now);
        match capacity {
            Capacity::Available => {}
            Capacity::StopFirst(id) => {
                let effect = self.retire(id, StopCause::Room, now);
                return wait(None, effect.map(|_| id));
            }
            Capacity::Wait(until) => return wait(until, None),
            Capacity::Full => return Admission::Refuse(Refusal::QueueFull),
        }
        match self.policy.request_start(now) {
            StartDecision::Start if !self.is_attempt_running() => {}
            StartDecision::Start | StartDecision::AwaitAttempt => return wait(None, None),
            StartDecision::Wait { until } => return wait(Some(until), None),
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
    const fn others(&self, position: QueuePosition) -> usize {
        match position {
            QueuePosition::Arriving => self.queued,
            QueuePosition::Waiting => self.queued.saturating_sub(1),
        }
    }

    fn room<'a>(&'a self, records: &'a [&InstanceRecord], queued: usize, now: Moment) -> Room<'a> {
        Room {
            records,
            settings: &self.settings,
            queued,
            now,
        }
    }

    /// Decides which connection of a pool a user gets.
    pub(super) fn place(
        &self,
        purpose: Purpose,
        pool: &PoolFacts,
        position: QueuePosition,
        now: Moment,
    ) -> Placement {
        let records = self.all();
        let room = self.room(&records, self.others(position), now);
        place(purpose, pool, &room)
    }

    /// Decides which connection of a pool a call gets, and starts the call if it gets one.
    pub(super) fn place_call(
        &mut self,
        purpose: Purpose,
        pool: &PoolFacts,
        position: QueuePosition,
        now: Moment,
    ) -> Placement {
        let placement = self.place(purpose, pool, position, now);
        if let Placement::Lease(slot) = placement
            && let Some(id) = pool.instance(slot)
            && self.start_call(id, position, now) != CallAdmission::Started
        {
            return Placement::Wait(None);
        }
        placement
    }

    fn handle(&mut self, id: InstanceId, event: Event, now: Moment) -> Option<Effect> {
        self.records.get_mut(&id)?.instance.handle(event, now)
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
        self.apply(Outcome::Started, now);
        self.failures.clear();
        self.recovery.reset();
        if let Some(record) = self.records.get_mut(&id) {
            record.sharing = sharing;
            record.last_used = now;
            record.health = HealthCheck::new(self.settings.health.clone(), now);
        }
    }

    fn apply(&mut self, outcome: Outcome, now: Moment) {
        self.policy = self.policy.clone().handle(outcome, now);
    }

    /// Cancels a start for which no caller waits.
    pub(super) fn start_cancelled(&mut self, id: InstanceId, now: Moment) {
        let _ = self.retire(id, StopCause::Released, now);
        self.apply(Outcome::Cancelled, now);
    }

    /// Stops new calls on an instance. Returns an effect if its connection can be closed at once.
    pub(super) fn retire(
        &mut self,
        id: InstanceId,
        cause: StopCause,
        now: Moment,
    ) -> Option<Effect> {
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
            self.instance_failed(why, random, now);
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
        position: QueuePosition,
        now: Moment,
    ) -> CallAdmission {
        let others = self.others(position);
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

    /// Ends a call. Returns an effect if the connection can be closed.
    pub(super) fn end_call(
        &mut self,
        id: InstanceId,
        outcome: CallOutcome,
        now: Moment,
    ) -> Option<Effect> {
        if let Some(record) = self.records.get_mut(&id) {
            record.last_used = now;
            if record.unresponsive_since.is_some() {
                // The call may be what kept the instance from answering the health check.
                record.health.check_now(now);
            }
            if outcome == CallOutcome::Answered {
                record.unresponsive_since = None;
                self.has_served = true;
            }
        }
        let effect = self.handle(id, Event::CallEnded, now);
        effect.or_else(|| self.retire_surplus(id, now))
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

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
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

    fn mark_stable(&mut self, now: Moment) {
        let mut is_any_new = false;
        for record in self.records.values_mut() {
            let instance = &record.instance;
            let is_old = now.since(instance.started) >= STABLE_AFTER;
            if !record.is_stable && instance.is_open() && is_old {
                record.is_stable = true;
                is_any_new = true;
            }
        }
        if is_any_new {
            self.apply(Outcome::Stable, now);
        }
    }

    /// Finds idle instances, due health checks and missing instances.
    pub(super) fn maintain(&mut self, now: Moment) -> Maintenance {
        self.mark_stable(now);
        let mut plan = Maintenance::default();
        let idle::Plan { stop, next } = idle::plan(&self.all(), &self.settings, now);
        plan.next = next;
        plan.close = self.retire_all_surplus(now);
        for id in stop {
            if self.retire(id, StopCause::Idle, now).is_some() {
                plan.close.push(id);
            }
        }
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
                schedule(instance.started.after(STABLE_AFTER));
            }
            if record.health.due() <= now {
                plan.check.push(*id);
            } else {
                schedule(record.health.due());
            }
        }
        match self.demand(now) {
            StartDemand::None => {}
            StartDemand::Later(until) => schedule(until),
            StartDemand::Now(cause) => plan.start = Some(cause),
        }
        plan
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
            let is_drained = self.retire(*id, StopCause::Shutdown, now).is_some();
            is_drained || mode == ShutdownMode::Immediate
        });
        closing
    }

    /// Returns the status of the server and its instances.
    pub(super) fn status(&self, now: Moment) -> ServerStatus {
        let status = |instance: &Instance| InstanceStatus::of(instance, now);
        ServerStatus {
            state: ServerState::of(self.instances(), self.policy.state(), now),
            instances: self
                .records
                .values()
                .map(|record| InstanceStatus {
                    unresponsive: record.unresponsive_since.map(|since| now.since(since)),
                    ..status(&record.instance)
                })
                .collect(),
            ended: self.ended.iter().map(status).collect(),
            queued: self.queued,
            starts: self.starts(),
            failures: self.policy.failures() + self.failures.failed_deliveries(),
            retry_in: match self.demand(now) {
                StartDemand::Later(until) => Some(until.since(now)),
                StartDemand::None | StartDemand::Now(_) => None,
            },
            last_error: self.failures.last(now),
            outage: self.failures.outage(now),
        }
    }
}

#[cfg(test)]
mod tests;
