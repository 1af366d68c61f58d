//! Whether instances are well, as far as they say so.

use std::time::Duration;

use mcpact_config::Probe;
use mcpact_engine::time::Moment;

use super::Fleet;
use crate::supervisor::health::{Answer, Diagnosis};
use crate::supervisor::instance::{Effect, InstanceId, StopCause};

/// Why an instance was ended that did not answer too often.
pub(crate) const UNWELL: &str = "health checks failed; instance stopped";

impl Fleet {
    /// An instance was asked whether it is well. What that means; a failed one is retired.
    pub(crate) fn answered(
        &mut self,
        id: InstanceId,
        answer: Answer,
        random: u32,
        now: Moment,
    ) -> (Diagnosis, Option<Effect>) {
        let Some(berth) = self.seats.get_mut(&id) else {
            return (Diagnosis::Well, None);
        };
        let asked_busy = berth.asked_busy.take();
        berth.seat.silent = match answer {
            Answer::Good => None,
            Answer::Bad => berth.seat.silent.or(asked_busy),
        };
        let limit = self.settings.call_timeout;
        let silent = berth.seat.silent.filter(|since| now.since(*since) < limit);
        if asked_busy.and(silent).is_some() {
            // Many a server does one thing at a time, and answers when that is done; but no call takes longer.
            berth.checkup.put_off(now);
            return (Diagnosis::Silent, None);
        }
        if asked_busy.is_some()
            && answer == Answer::Good
            && !self.settings.health.probe.costs_nothing()
        {
            // It was asked something else than what would show that it is well.
            berth.checkup.put_off(now);
            return (Diagnosis::Well, None);
        }
        let diagnosis = berth.checkup.handle(answer, now);
        if diagnosis != Diagnosis::Failed || !berth.seat.instance.is_open() {
            return (diagnosis, None);
        }
        let effect = self.retire(id, StopCause::Unhealthy, now);
        self.fell(&UNWELL.into(), random, now);
        (diagnosis, effect)
    }

    /// An instance is asked whether it is well.
    pub(crate) fn asked(&mut self, id: InstanceId, now: Moment) {
        if let Some(berth) = self.seats.get_mut(&id) {
            berth.checkup.asked(now);
            berth.asked_busy = (berth.seat.instance.calls() > 0).then_some(now);
        }
    }

    /// What it is asked: who has calls is not given another one, but shows that it is alive.
    pub(crate) fn probe(&self, id: InstanceId) -> &Probe {
        let probe = &self.settings.health.probe;
        let berth = self.seats.get(&id);
        let is_busy = berth.is_some_and(|berth| berth.seat.instance.calls() > 0);
        match is_busy && !probe.costs_nothing() {
            true => &Probe::Auto,
            false => probe,
        }
    }

    /// How long it waits for an answer to that.
    pub(crate) fn patience(&self, id: InstanceId) -> Duration {
        let berth = self.seats.get(&id);
        berth.map_or(Duration::ZERO, |berth| berth.checkup.patience())
    }
}
