//! Failures of starts, instances and calls, and their effect on the restart policy and the outage.

use mcpact_engine::time::Moment;

use super::InstanceSet;
use crate::supervisor::instance::{Event, InstanceId, InstanceState};
use crate::supervisor::restart_policy::State;
use mcpact::connection::FailureText;

impl InstanceSet {
    pub(super) const fn is_suspended(&self) -> bool {
        matches!(self.policy.state(), State::Suspended { .. })
    }

    /// Returns the failure that ended an instance.
    pub(in crate::supervisor) fn failure(&self, id: InstanceId) -> Option<FailureText> {
        match &self.find(id)?.state {
            InstanceState::Failed { why } => Some(why.clone()),
            _ => None,
        }
    }

    /// Records a failed start.
    pub(in crate::supervisor) fn start_failed(
        &mut self,
        id: InstanceId,
        why: FailureText,
        random: u32,
        now: Moment,
    ) {
        self.record_failed_start(&why, now);
        let _ = self.handle(id, Event::StartFailed(why), now);
        self.policy.reset_recovery();
        self.policy.failed(random, now);
    }

    /// Records a start that needs approval first. A recovery attempt checks again later.
    pub(in crate::supervisor) fn start_not_allowed(
        &mut self,
        why: &FailureText,
        random: u32,
        now: Moment,
    ) {
        self.record_failed_start(why, now);
        self.policy.schedule_recovery(random, now);
    }

    /// Begins an outage, unless another instance can serve.
    fn record_failed_start(&mut self, why: &FailureText, now: Moment) {
        if self.has_open_instance() {
            self.failures.record(why, now);
        } else {
            self.failures.begin_outage(why.clone(), now);
        }
    }

    /// Records the unexpected end of a connection. The failure counts at once: the process may take longer to exit, and
    /// callers could release the instance meanwhile.
    pub(in crate::supervisor) fn connection_lost(
        &mut self,
        id: InstanceId,
        why: &FailureText,
        random: u32,
        now: Moment,
    ) {
        if self.is_open(id) {
            self.disconnect(id, why, now);
            self.instance_failed(why, random, now);
        }
    }

    /// Records the failure of an open instance. It begins an outage if the server is suspended or has never answered a
    /// call. Otherwise the next call simply starts another instance.
    pub(super) fn instance_failed(&mut self, why: &FailureText, random: u32, now: Moment) {
        self.policy.failed(random, now);
        let is_useless = self.is_suspended() || !self.has_served;
        if is_useless && !self.has_open_instance() {
            self.failures.begin_outage(why.clone(), now);
        } else {
            self.failures.record(why, now);
        }
    }

    /// Turns the last failure into an outage, so that the server is retried without another call.
    pub(super) fn begin_outage(&mut self) {
        if !self.has_open_instance() {
            self.failures.begin_outage_from_last();
        }
    }

    /// Records that a result was served without this server. Its client does not ask again, so the server is retried if
    /// it has failed, or as soon as it fails.
    pub(in crate::supervisor) fn left_out(&mut self) {
        self.has_served = false;
        if self.policy.state() != State::Normal {
            self.begin_outage();
        }
    }
}
