//! All instances of one server, and every decision about them: facts and a time go in, actions come out.

mod overview;
mod retuning;
mod wanting;
mod wellness;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use self::wanting::Wanting;
pub(crate) use self::wellness::UNWELL;
use super::health::Checkup;
use super::idle;
use super::instance::{
    Effect, Event, Farewell, Instance, InstanceId, InstanceState, StartCause, Step, StopCause,
};
use super::mishaps::Mishaps;
use super::placement::{Choice, Room, Seat, Tenant, choose, room};
use super::recovery::Recovery;
use super::restart_policy::{LASTED, Outcome, RestartPolicy, Verdict};
use crate::error::FailureText;

/// How many instances that are over are remembered.
const REMEMBERED: usize = 8;

/// The instances of a server.
#[derive(Debug)]
pub(crate) struct Fleet {
    settings: RunSettings,
    seats: BTreeMap<InstanceId, Berth>,
    over: VecDeque<Instance>,
    policy: RestartPolicy,
    last_id: u64,
    /// How many calls wait for an instance.
    queued: usize,
    mishaps: Mishaps,
    recovery: Recovery,
    /// Whether it has answered anything but whether it is well, since somebody last had to do without it.
    has_served: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct Berth {
    seat: Seat,
    checkup: Checkup,
    /// When it was last asked whether it is well, if it had calls then.
    asked_busy: Option<Moment>,
    has_lasted: bool,
}

/// Whether whoever asks is counted among those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It has just come.
    Arriving,
    /// It waits.
    Waiting,
}

/// Whether an instance may be started now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Yes, under this number.
    Start(InstanceId),
    /// Not before something changes, or this moment comes.
    Wait {
        /// The moment, if one is known.
        until: Option<Moment>,
        /// Whose connection is to be closed meanwhile.
        close: Option<InstanceId>,
    },
    /// No.
    Refuse(Refusal),
}

/// Why a call is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All instances have as many calls as they may, and as many wait as may.
    Busy,
    /// It failed too often lately.
    Suspended {
        /// How often.
        failures: usize,
        /// For how long it is left alone.
        wait: Duration,
    },
    /// It is not served any more.
    Closed,
}

/// How a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// The server has answered it.
    Answered,
    /// Nobody waits for the answer any more.
    GivenUp,
}

/// Whether a call may begin on an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It has begun.
    Entered,
    /// When another call ends.
    Wait,
    /// The instance takes no calls any more; there may be another.
    Retired,
    /// Too many wait.
    Refuse,
}

/// What is to be done in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Whose connections can be closed.
    pub(crate) close: Vec<InstanceId>,
    /// Who is asked whether it is well.
    pub(crate) ask: Vec<InstanceId>,
    /// Why an instance is to be started without being called, if one is.
    pub(crate) start: Option<StartCause>,
    /// When the next round is.
    pub(crate) next: Option<Moment>,
}

impl Fleet {
    pub(crate) fn new(settings: RunSettings) -> Self {
        let policy = RestartPolicy::new(settings.restarts.clone());
        Self {
            settings,
            seats: BTreeMap::new(),
            over: VecDeque::new(),
            policy,
            last_id: 0,
            queued: 0,
            mishaps: Mishaps::default(),
            recovery: Recovery::default(),
            has_served: false,
            is_closed: false,
        }
    }

    pub(crate) const fn settings(&self) -> &RunSettings {
        &self.settings
    }

    fn seats(&self) -> Vec<&Seat> {
        self.seats.values().map(|berth| &berth.seat).collect()
    }

    /// Whether somebody may start an instance.
    pub(crate) fn admit(
        &mut self,
        tenant: Tenant,
        cause: StartCause,
        line: Line,
        now: Moment,
    ) -> Admission {
        if self.is_closed {
            return Admission::Refuse(Refusal::Closed);
        }
        // The room first: whoever may start after a suspension must.
        let waiting = |until, close| Admission::Wait { until, close };
        match room(&self.seats(), &self.settings, self.others(line), now) {
            Room::Start => {}
            Room::StopFirst(id) => {
                let effect = self.retire(id, StopCause::Room, now);
                return waiting(None, effect.map(|_| id));
            }
            Room::Wait(until) => return waiting(until, None),
            Room::Refuse => return Admission::Refuse(Refusal::Busy),
        }
        match self.policy.ask(now) {
            Verdict::Start if !self.is_tried() => {}
            Verdict::Start | Verdict::Follow => return waiting(None, None),
            Verdict::Wait { until } => return waiting(Some(until), None),
            Verdict::Refuse { until } => {
                self.missed_while_resting();
                return Admission::Refuse(Refusal::Suspended {
                    failures: self.policy.failures(),
                    wait: until.since(now),
                });
            }
        }
        self.last_id += 1;
        let id = InstanceId(self.last_id);
        let seat = Seat {
            instance: Instance::new(id, cause, now),
            tenant,
            is_held: false,
            silent: None,
            used: now,
            is_awaited: cause == StartCause::Request,
        };
        let berth = Berth {
            seat,
            checkup: Checkup::new(self.settings.health.clone(), now),
            asked_busy: None,
            has_lasted: false,
        };
        self.seats.insert(id, berth);
        Admission::Start(id)
    }

    /// How many others wait.
    const fn others(&self, line: Line) -> usize {
        match line {
            Line::Arriving => self.queued,
            Line::Waiting => self.queued.saturating_sub(1),
        }
    }

    /// Where a call goes that may use these instances.
    pub(crate) fn choose(&self, mine: &[InstanceId], line: Line, now: Moment) -> Choice {
        let seats: Vec<&Seat> = mine
            .iter()
            .filter_map(|id| self.seats.get(id).map(|berth| &berth.seat))
            .collect();
        let others = self.others(line);
        choose(&seats, &self.seats(), &self.settings, others, now)
    }

    /// Whether another instance may be started, now or once one that nobody uses has gone.
    pub(crate) fn has_room(&self, now: Moment) -> bool {
        let room = room(&self.seats(), &self.settings, 0, now);
        matches!(room, Room::Start | Room::StopFirst(_))
    }

    fn handle(&mut self, id: InstanceId, event: Event, now: Moment) -> Option<Effect> {
        let berth = self.seats.get_mut(&id)?;
        let Step { next, effect } = berth.seat.instance.clone().handle(event, now);
        berth.seat.instance = next;
        effect
    }

    /// A process runs.
    pub(crate) fn spawned(&mut self, id: InstanceId, pid: u32, now: Moment) {
        let _ = self.handle(id, Event::Spawned(pid), now);
    }

    /// There is an agreement.
    pub(crate) fn agreed(&mut self, id: InstanceId, revision: Revision, now: Moment) {
        let _ = self.handle(id, Event::Agreed(revision), now);
        self.outcome(Outcome::Agreed, now);
        self.mishaps.over();
        self.recovery.over();
        if let Some(berth) = self.seats.get_mut(&id) {
            berth.seat.used = now;
            berth.checkup = Checkup::new(self.settings.health.clone(), now);
        }
    }

    /// Who may use it, once that is known.
    pub(crate) fn let_to(&mut self, id: InstanceId, tenant: Tenant) {
        if let Some(berth) = self.seats.get_mut(&id) {
            berth.seat.tenant = tenant;
        }
    }

    fn outcome(&mut self, outcome: Outcome, now: Moment) {
        self.policy = self.policy.clone().handle(outcome, now);
    }

    /// A start was given up, because nobody waits for it any more.
    pub(crate) fn given_up(&mut self, id: InstanceId, now: Moment) {
        let _ = self.retire(id, StopCause::Released, now);
        self.outcome(Outcome::GivenUp, now);
    }

    /// It takes no calls from now on. Whether its connection can be closed at once.
    pub(crate) fn retire(
        &mut self,
        id: InstanceId,
        cause: StopCause,
        now: Moment,
    ) -> Option<Effect> {
        self.handle(id, Event::Retire(cause), now)
    }

    /// The connection is gone, and the process with it. What became of the instance.
    pub(crate) fn gone(
        &mut self,
        id: InstanceId,
        why: &FailureText,
        random: u32,
        now: Moment,
    ) -> Option<Instance> {
        let instance = &self.seats.get(&id)?.seat.instance;
        let fell = instance.is_open() || instance.is_starting();
        self.over_with(id, why, now);
        if fell {
            self.fell(why, random, now);
        }
        let instance = self.seats.remove(&id)?.seat.instance;
        self.over.truncate(REMEMBERED - 1);
        self.over.push_front(instance.clone());
        Some(instance)
    }

    fn over_with(&mut self, id: InstanceId, why: &FailureText, now: Moment) {
        self.mark_lasted(now);
        let _ = self.handle(id, Event::Gone(why.clone()), now);
    }

    /// A call wants to begin.
    pub(crate) fn enter(&mut self, id: InstanceId, line: Line, now: Moment) -> Entry {
        let others = self.others(line);
        let Some(berth) = self.seats.get_mut(&id) else {
            return Entry::Retired;
        };
        if !berth.seat.instance.is_open() {
            return Entry::Retired;
        }
        if berth.seat.instance.calls() >= self.settings.max_concurrent {
            return if others < self.settings.queue {
                Entry::Wait
            } else {
                Entry::Refuse
            };
        }
        berth.seat.used = now;
        berth.seat.is_awaited = false;
        let _ = self.handle(id, Event::Enters, now);
        Entry::Entered
    }

    /// A call has ended.
    pub(crate) fn leave(
        &mut self,
        id: InstanceId,
        parting: Parting,
        now: Moment,
    ) -> Option<Effect> {
        if let Some(berth) = self.seats.get_mut(&id) {
            berth.seat.used = now;
            if berth.seat.silent.is_some() {
                // What kept it busy may be what kept it from answering.
                berth.checkup.hurry(now);
            }
            if parting == Parting::Answered {
                berth.seat.silent = None;
                self.has_served = true;
            }
        }
        let effect = self.handle(id, Event::Leaves, now);
        effect.or_else(|| self.dismiss(id, now))
    }

    /// Whether somebody waits to hear something from it.
    pub(crate) fn set_held(&mut self, id: InstanceId, is_held: bool) {
        if let Some(berth) = self.seats.get_mut(&id) {
            berth.seat.is_held = is_held;
        }
    }

    /// Whether it takes calls.
    pub(crate) fn is_open(&self, id: InstanceId) -> bool {
        let berth = self.seats.get(&id);
        berth.is_some_and(|berth| berth.seat.instance.is_open())
    }

    /// How many calls an instance has.
    pub(crate) fn calls(&self, id: InstanceId) -> usize {
        let berth = self.seats.get(&id);
        berth.map_or(0, |berth| berth.seat.instance.calls())
    }

    /// Whether any instance takes calls.
    pub(crate) fn is_awake(&self) -> bool {
        self.seats.keys().any(|id| self.is_open(*id))
    }

    /// Why it was ended on purpose, if it was.
    pub(crate) fn retired(&self, id: InstanceId) -> Option<StopCause> {
        match self.known(id)?.state {
            InstanceState::Draining { cause, .. } | InstanceState::Stopped { cause } => Some(cause),
            _ => None,
        }
    }

    fn known(&self, id: InstanceId) -> Option<&Instance> {
        match self.seats.get(&id) {
            Some(berth) => Some(&berth.seat.instance),
            None => self.over.iter().find(|instance| instance.id == id),
        }
    }

    /// Whether nothing runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// A call waits from now on, unless too many do.
    pub(crate) fn queue(&mut self) -> Result<(), Refusal> {
        if self.queued >= self.settings.queue {
            return Err(Refusal::Busy);
        }
        self.queued += 1;
        Ok(())
    }

    /// A call does not wait any more.
    pub(crate) const fn unqueue(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    fn mark_lasted(&mut self, now: Moment) {
        let mut has_lasted = false;
        for berth in self.seats.values_mut() {
            let instance = &berth.seat.instance;
            if !berth.has_lasted && instance.is_open() && now.since(instance.started) >= LASTED {
                berth.has_lasted = true;
                has_lasted = true;
            }
        }
        if has_lasted {
            self.outcome(Outcome::Lasted, now);
        }
    }

    /// Looks at everybody: who is idle, who is due to be asked, who is missing.
    pub(crate) fn round(&mut self, now: Moment) -> Round {
        self.mark_lasted(now);
        let mut round = Round::default();
        let idle::Plan { stop, next } = idle::plan(&self.seats(), &self.settings, now);
        round.next = next;
        round.close = self.dismiss_all(now);
        for id in stop {
            if self.retire(id, StopCause::Idle, now).is_some() {
                round.close.push(id);
            }
        }
        let mut sooner = |moment: Moment| {
            round.next = Some(round.next.map_or(moment, |next| next.min(moment)));
        };
        for (id, berth) in &self.seats {
            let instance = &berth.seat.instance;
            if let InstanceState::Draining { .. } = instance.state {
                let late = instance.since.after(self.settings.drain);
                if late <= now {
                    round.close.push(*id);
                } else {
                    sooner(late);
                }
            }
            if instance.is_open() && !berth.has_lasted {
                sooner(instance.started.after(LASTED));
            }
            if !instance.is_open() {
                continue;
            }
            if berth.checkup.due() <= now {
                round.ask.push(*id);
            } else {
                sooner(berth.checkup.due());
            }
        }
        match self.wanting(now) {
            Wanting::Nobody => {}
            Wanting::Later(until) => sooner(until),
            Wanting::Now(cause) => round.start = Some(cause),
        }
        round
    }

    /// Nobody is let in any more. How many wait.
    pub(crate) const fn turn_away(&mut self) -> usize {
        self.is_closed = true;
        self.queued
    }

    /// Nobody is served any more. Whose connections can be closed at once.
    pub(crate) fn close(&mut self, farewell: Farewell, now: Moment) -> Vec<InstanceId> {
        self.is_closed = true;
        let mut closing: Vec<InstanceId> = self.seats.keys().copied().collect();
        closing.retain(|id| {
            let is_free = self.retire(*id, StopCause::Shutdown, now).is_some();
            is_free || farewell == Farewell::Short
        });
        closing
    }

    /// Forgets what failed.
    pub(crate) fn forgive(&mut self) {
        self.policy = self.policy.clone().reset();
    }
}

#[cfg(test)]
mod tests;
