//! Who is missing, and who is tried again although nobody calls.

use mcpact_engine::time::Moment;

use super::{Berth, Fleet};
use crate::error::FailureText;
use crate::supervisor::instance::{Event, Instance, InstanceId, StartCause};
use crate::supervisor::placement::least;
use crate::supervisor::restart_policy::{Outcome, State};

/// Instances that are to be started without being called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanting {
    /// None.
    Nobody,
    /// None before this moment.
    Later(Moment),
    /// One after the other, for this reason.
    Now(StartCause),
}

impl Fleet {
    /// Who is to be started without being called.
    pub(super) fn wanting(&self, now: Moment) -> Wanting {
        let Some(cause) = self.lacks() else {
            return Wanting::Nobody;
        };
        // Who may not be started yet is not missed.
        match self.policy.free_at().max(self.recovery.due()) {
            Some(until) if until > now => Wanting::Later(until),
            Some(_) | None => Wanting::Now(cause),
        }
    }

    /// Why an instance should be started, if one should.
    fn lacks(&self) -> Option<StartCause> {
        if self.is_closed {
            return None;
        }
        let alive =
            |berth: &&Berth| berth.seat.instance.is_open() || berth.seat.instance.is_starting();
        let alive = self.seats.values().filter(alive).count();
        if alive < least(&self.settings) {
            return Some(match alive < self.settings.min_ready {
                true => StartCause::MinReady,
                false => StartCause::Persistent,
            });
        }
        let is_down = alive == 0 && (self.mishaps.stands().is_some() || self.is_suspended());
        (is_down && self.settings.recovers).then_some(StartCause::Recovery)
    }

    /// Whether somebody tries what failed lately: one start shows whether it fails still, and the others wait for
    /// what comes of it.
    pub(super) fn is_tried(&self) -> bool {
        let has_failed = matches!(self.policy.state(), State::Pausing { .. });
        let mut instances = self.seats.values().map(|berth| &berth.seat.instance);
        has_failed && !self.is_awake() && instances.any(Instance::is_starting)
    }

    /// A start came to nothing.
    pub(crate) fn failed(&mut self, id: InstanceId, why: FailureText, random: u32, now: Moment) {
        self.no_start(&why, now);
        let _ = self.handle(id, Event::Failed(why), now);
        self.recovery.over();
        // Whoever wanted it: a server is not better for having been tried unasked.
        self.outcome(Outcome::Failed(random), now);
    }

    /// A start was not even tried, for somebody has to agree to it; it is looked again whether somebody has.
    pub(crate) fn not_allowed(&mut self, why: &FailureText, random: u32, now: Moment) {
        self.no_start(why, now);
        self.recovery.begin(&self.settings.restarts, random, now);
    }

    /// A start that nobody had asked for was not even begun; the next try is later.
    pub(crate) fn not_begun(&mut self, random: u32, now: Moment) {
        self.recovery.failed(&self.settings.restarts, random, now);
    }
}
