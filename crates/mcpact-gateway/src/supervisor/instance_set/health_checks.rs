//! Health checks of the instances.

use std::time::Duration;

use mcpact_config::Probe;
use mcpact_engine::time::Moment;

use super::InstanceSet;
use crate::supervisor::health::{CheckResult, Diagnosis};
use crate::supervisor::instance::{Effect, InstanceId, StopCause};

/// Failure of an instance that was stopped after failed health checks.
pub(crate) const HEALTH_CHECKS_FAILED: &str = "health checks failed; instance stopped";

impl InstanceSet {
    /// Records the start of a health check. Returns the probe and its timeout.
    pub(in crate::supervisor) fn check_started(
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

    /// Records the result of a health check. A failed instance is retired.
    pub(in crate::supervisor) fn check_finished(
        &mut self,
        id: InstanceId,
        result: CheckResult,
        random: u32,
        now: Moment,
    ) -> (Diagnosis, Option<Effect>) {
        let Some(record) = self.records.get_mut(&id) else {
            return (Diagnosis::Healthy, None);
        };
        let checked_while_busy = record.checked_while_busy.take();
        record.unresponsive_since = match result {
            CheckResult::Passed => None,
            CheckResult::Failed => record.unresponsive_since.or(checked_while_busy),
        };
        let limit = self.settings.call_timeout;
        let may_be_busy = |since| now.since(since) < limit;
        if checked_while_busy.is_some() && record.unresponsive_since.is_some_and(may_be_busy) {
            // Many servers do one thing at a time and answer later, but no call takes longer than the limit.
            record.health.postpone(now);
            return (Diagnosis::Unresponsive, None);
        }
        if checked_while_busy.is_some()
            && result == CheckResult::Passed
            && !self.settings.health.probe.is_free()
        {
            // The busy instance got a cheaper probe, which does not show that it is healthy.
            record.health.postpone(now);
            return (Diagnosis::Healthy, None);
        }
        let diagnosis = record.health.finished(result, now);
        if diagnosis != Diagnosis::Failed || !record.instance.is_open() {
            return (diagnosis, None);
        }
        let effect = self.retire(id, StopCause::Unhealthy, now);
        self.instance_failed(&HEALTH_CHECKS_FAILED.into(), random, now);
        (diagnosis, effect)
    }
}
