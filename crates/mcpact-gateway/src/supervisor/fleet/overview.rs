//! How everything is.

use std::time::Duration;

use mcpact_engine::time::Moment;

use super::Fleet;
use super::wanting::Wanting;
use crate::error::FailureText;
use crate::supervisor::instance::{Instance, InstanceId, InstanceState};
use crate::supervisor::mishaps::Mishaps;
use crate::supervisor::restart_policy::{Outcome, State};
use crate::supervisor::status::{InstanceStatus, ServerState, ServerStatus};

impl Fleet {
    /// How long ago an instance was started.
    pub(crate) fn age(&self, id: InstanceId, now: Moment) -> Option<Duration> {
        let berth = self.seats.get(&id)?;
        Some(now.since(berth.seat.instance.started))
    }

    /// How many failures count at the moment.
    pub(crate) fn failures(&self) -> usize {
        self.policy.failures()
    }

    /// How everything is.
    pub(crate) fn status(&self, now: Moment) -> ServerStatus {
        let seats = self.seats.values().map(|berth| &berth.seat);
        let running = seats.clone().map(|seat| &seat.instance);
        let shown = |instance: &Instance| InstanceStatus::of(instance, now);
        ServerStatus {
            state: ServerState::of(running, self.policy.state(), now),
            instances: seats
                .map(|seat| InstanceStatus::running(seat, now))
                .collect(),
            over: self.over.iter().map(shown).collect(),
            queued: self.queued,
            starts: self.starts(),
            failures: self.policy.failures() + self.mishaps.missed(),
            tried_in: match self.wanting(now) {
                Wanting::Later(until) => Some(until.since(now)),
                Wanting::Nobody | Wanting::Now(_) => None,
            },
            last_error: self.mishaps.last(now),
            stands: self.mishaps.standing_one(now),
        }
    }

    /// How many instances were ever started.
    pub(crate) const fn starts(&self) -> u64 {
        self.last_id
    }

    /// What went wrong last.
    pub(crate) fn last_error(&self) -> Option<&FailureText> {
        self.mishaps.why()
    }

    /// What still goes wrong.
    pub(in crate::supervisor) const fn mishaps(&self) -> &Mishaps {
        &self.mishaps
    }

    /// A call did not reach the server.
    pub(crate) fn missed(&mut self, why: FailureText, now: Moment) {
        self.mishaps.miss(why, now);
    }

    /// A call reached the server. Whether something stood until then.
    pub(crate) fn reached(&mut self) -> bool {
        self.mishaps.over()
    }

    /// A start failed; where another instance serves, the server can be used all the same.
    pub(super) fn no_start(&mut self, why: &FailureText, now: Moment) {
        if self.is_awake() {
            self.mishaps.happened(why, now);
        } else {
            self.mishaps.stand(why.clone(), now);
        }
    }

    /// Why an instance ended by itself, if it did.
    pub(crate) fn failure(&self, id: InstanceId) -> Option<FailureText> {
        match &self.known(id)?.state {
            InstanceState::Failed { why } => Some(why.clone()),
            _ => None,
        }
    }

    /// The connection of an instance has ended, which nobody wanted. That counts from now on: its process may take a
    /// moment longer, in which others could let go of it.
    pub(crate) fn lost(&mut self, id: InstanceId, why: &FailureText, random: u32, now: Moment) {
        if self.is_open(id) {
            self.over_with(id, why, now);
            self.fell(why, random, now);
        }
    }

    /// An instance that could be used has failed. The next call may do better, unless the server is left alone
    /// for long, or has done no good: then it cannot be used, which nobody would know otherwise who does
    /// not call it.
    pub(super) fn fell(&mut self, why: &FailureText, random: u32, now: Moment) {
        self.outcome(Outcome::Failed(random), now);
        let is_useless = self.is_suspended() || !self.has_served;
        if is_useless && !self.is_awake() {
            self.mishaps.stand(why.clone(), now);
        } else {
            self.mishaps.happened(why, now);
        }
    }

    /// Somebody wanted it while it is left alone, and is not to wait for another who wants it afterwards.
    pub(super) fn missed_while_resting(&mut self) {
        if !self.is_awake() {
            self.mishaps.stay();
        }
    }

    /// Somebody has to do without it who does not ask again: it is of no use until it answers, and is tried again
    /// if it has failed, or as soon as it is known that it has.
    pub(crate) fn did_without(&mut self) {
        self.has_served = false;
        if self.policy.state() != State::Calm {
            self.missed_while_resting();
        }
    }

    pub(super) const fn is_suspended(&self) -> bool {
        matches!(self.policy.state(), State::Suspended { .. })
    }
}
