//! Other limits, while instances run.

use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;

use super::Fleet;
use crate::supervisor::instance::{Effect, InstanceId, StopCause};
use crate::supervisor::placement::{most, surplus};

impl Fleet {
    /// Other limits from here on; those that run go on, as many as there may be.
    pub(crate) fn retune(&mut self, settings: &RunSettings, now: Moment) {
        self.policy.retune(settings.restarts.clone());
        for berth in self.seats.values_mut() {
            berth.checkup.retune(settings.health.clone(), now);
        }
        self.settings = settings.clone();
    }

    /// Retires those that are more than there may be, and that nobody uses. Whose connections can be closed.
    pub(super) fn dismiss_all(&mut self, now: Moment) -> Vec<InstanceId> {
        let mut dismissed: Vec<InstanceId> = self.seats.keys().copied().collect();
        // The latest first: the oldest stay.
        dismissed.reverse();
        dismissed.retain(|id| self.dismiss(*id, now).is_some());
        dismissed
    }

    /// The same for one.
    pub(super) fn dismiss(&mut self, id: InstanceId, now: Moment) -> Option<Effect> {
        if self.seats.len() <= most(&self.settings) {
            return None;
        }
        let is_idle = self.seats.get(&id)?.seat.is_idle();
        let is_surplus = is_idle && surplus(&self.seats(), &self.settings).contains(&id);
        is_surplus.then(|| self.retire(id, StopCause::Room, now))?
    }
}
