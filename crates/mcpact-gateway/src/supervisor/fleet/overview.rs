//! How everything is.

use mcpact_engine::time::Moment;

use super::Fleet;
use crate::supervisor::instance::Instance;
use crate::supervisor::status::{InstanceStatus, Mishap, ServerState, ServerStatus};

impl Fleet {
    /// How everything is.
    pub(crate) fn status(&self, now: Moment) -> ServerStatus {
        let running = self.seats.values().map(|berth| &berth.seat.instance);
        let shown = |instance: &Instance| InstanceStatus::of(instance, now);
        ServerStatus {
            state: ServerState::of(running.clone(), self.policy.state(), now),
            instances: running.map(shown).collect(),
            over: self.over.iter().map(shown).collect(),
            queued: self.queued,
            starts: self.last_id,
            failures: self.policy.failures(),
            last_error: self.last_error.as_ref().map(|(why, when)| Mishap {
                why: why.clone(),
                age: now.since(*when),
            }),
        }
    }
}
