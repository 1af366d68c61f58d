//! Number of instances: which are missing, and which exceed a lowered limit.

use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;

use super::InstanceSet;
use crate::supervisor::instance::{Effect, Instance, InstanceId, StartCause, StopCause};
use crate::supervisor::placement::{max_instances, min_instances, surplus};
use crate::supervisor::restart_policy::State;

/// Demand for a start without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartDemand {
    /// No start is needed.
    None,
    /// A start is needed, but not before this time.
    Later(Moment),
    /// A start is needed now.
    Now(StartCause),
}

impl InstanceSet {
    /// Returns the demand for a start without a call.
    pub(super) fn demand(&self, now: Moment) -> StartDemand {
        let Some(cause) = self.missing() else {
            return StartDemand::None;
        };
        match self.policy.next_start().max(self.recovery.due()) {
            Some(until) if until > now => StartDemand::Later(until),
            Some(_) | None => StartDemand::Now(cause),
        }
    }

    /// Returns the cause for which an instance should be started.
    fn missing(&self) -> Option<StartCause> {
        // A queued call starts what it needs. Competing with it for the last place could stop its instance for ever.
        if self.is_closed || self.queued > 0 {
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
    pub(super) fn is_attempt_running(&self) -> bool {
        let has_failed = matches!(self.policy.state(), State::BackingOff { .. });
        has_failed && !self.has_open_instance() && self.instances().any(Instance::is_starting)
    }

    /// Replaces the settings. Running instances stay, up to the new limit.
    pub(in crate::supervisor) fn update_settings(&mut self, settings: &RunSettings, now: Moment) {
        self.policy.update_settings(settings.restarts.clone());
        for record in self.records.values_mut() {
            record.health.update_settings(settings.health.clone(), now);
        }
        self.settings = settings.clone();
    }

    /// Retires idle instances above the limit, newest first. Returns those that can be closed.
    pub(super) fn retire_all_surplus(&mut self, now: Moment) -> Vec<InstanceId> {
        let mut ids: Vec<InstanceId> = self.records.keys().rev().copied().collect();
        ids.retain(|id| self.retire_surplus(*id, now).is_some());
        ids
    }

    /// Retires an instance if it is idle and above the limit.
    pub(super) fn retire_surplus(&mut self, id: InstanceId, now: Moment) -> Option<Effect> {
        if self.records.len() <= max_instances(&self.settings) {
            return None;
        }
        let is_idle = self.records.get(&id)?.is_idle();
        let is_surplus = is_idle && surplus(&self.all(), &self.settings).contains(&id);
        is_surplus.then(|| self.retire(id, StopCause::Room, now))?
    }
}
