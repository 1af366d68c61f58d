//! Which instance serves whom, and whether there is room for another one.

use std::time::Duration;

use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::time::Moment;
use smallvec::SmallVec;

use super::instance::{Instance, InstanceId};

/// As many as a server usually has instances, which are gathered for every call.
pub(crate) type Few<T> = SmallVec<[T; 4]>;

/// Who may use an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// One client, whose state may be in it.
    Own,
    /// All clients that are told the same.
    Shared,
    /// No client: only what is shown to many is fetched from it.
    Nobody,
}

/// With whom a client shares its instance of a legacy server, or of a program. (A modern server at an address is not
/// told who asks: its instances are for everybody.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// With nobody, if it has a session.
    Nobody,
    /// With those who declare the same.
    Kind,
    /// With everybody.
    Everybody,
}

/// What a strategy means for sharing.
pub(crate) const fn sharing(strategy: Strategy) -> Sharing {
    match strategy {
        Strategy::Stateful => Sharing::Nobody,
        Strategy::Stateless | Strategy::Persistent => Sharing::Kind,
        Strategy::Singleton => Sharing::Everybody,
    }
}

/// How many instances there may be.
pub(crate) const fn most(settings: &RunSettings) -> usize {
    match settings.strategy {
        Strategy::Singleton => 1,
        Strategy::Stateless | Strategy::Stateful | Strategy::Persistent => settings.max_instances,
    }
}

/// How many instances are kept running.
pub(crate) fn least(settings: &RunSettings) -> usize {
    let wanted = match settings.strategy {
        Strategy::Persistent => settings.min_ready.max(1),
        Strategy::Stateless | Strategy::Stateful | Strategy::Singleton => settings.min_ready,
    };
    wanted.min(most(settings))
}

/// What is known about an instance besides its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) instance: Instance,
    pub(crate) tenant: Tenant,
    /// Whether somebody waits to hear something from it.
    pub(crate) is_held: bool,
    /// Since when it does not answer whether it is well, while it has calls.
    pub(crate) silent: Option<Moment>,
    /// When a call last began or ended.
    pub(crate) used: Moment,
    /// Whether it was started for a call that has not begun.
    pub(crate) is_awaited: bool,
}

/// How long an instance is kept for the call that it was started for, whose client may have gone.
const FIRST_CALL: Duration = Duration::from_secs(5);

impl Seat {
    /// Until when it is kept for the call that it was started for, if it is.
    fn kept_until(&self, now: Moment) -> Option<Moment> {
        let until = self.used.after(FIRST_CALL);
        (self.is_awaited && now < until).then_some(until)
    }

    /// Whether it can go without anybody noticing.
    pub(crate) const fn is_idle(&self) -> bool {
        self.instance.is_open() && self.instance.calls() == 0 && !self.is_held
    }
}

/// Whether another instance may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is room.
    Start,
    /// There will be, once this one has gone.
    StopFirst(InstanceId),
    /// When another one goes, or at this moment.
    Wait(Option<Moment>),
    /// Too many wait already.
    Refuse,
}

/// Whether another instance may be started while so many calls wait.
pub(crate) fn room(seats: &[&Seat], settings: &RunSettings, queued: usize, now: Moment) -> Room {
    // What has failed has its seat until its process is gone.
    if seats.len() < most(settings) {
        return Room::Start;
    }
    let is_going = |seat: &&&Seat| !seat.instance.is_open() && !seat.instance.is_starting();
    let going = seats.iter().filter(is_going).count();
    // What a client has in an instance of its own is not taken away for another client.
    let idle = seats
        .iter()
        .filter(|seat| seat.is_idle() && seat.tenant != Tenant::Own);
    // Whoever has waited for a start is served by it: calls that end each other's instances would all wait for ever.
    let (kept, free): (Vec<&&Seat>, Vec<_>) = idle.partition(|seat| seat.kept_until(now).is_some());
    match free.into_iter().min_by_key(|seat| seat.used) {
        Some(idle) if going == 0 => Room::StopFirst(idle.instance.id),
        // For whom room is being made, that one waits for it even where nobody else may wait.
        Some(_) | None if queued < settings.queue.max(going) => {
            Room::Wait(kept.iter().filter_map(|seat| seat.kept_until(now)).min())
        }
        Some(_) | None => Room::Refuse,
    }
}

/// Those that are more than there may be since other limits hold: they get no calls, and go when they have none.
/// The oldest stay, and what a client has for itself.
pub(crate) fn surplus(seats: &[&Seat], settings: &RunSettings) -> Few<InstanceId> {
    let runs = |seat: &&&Seat| seat.instance.is_open() || seat.instance.is_starting();
    let is_own = |seat: &&&Seat| seat.tenant == Tenant::Own;
    let own = seats.iter().filter(runs).filter(is_own).count();
    let shared = seats.iter().filter(runs).filter(|seat| !is_own(seat));
    let ids = shared.map(|seat| seat.instance.id);
    ids.skip(most(settings).saturating_sub(own)).collect()
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// To this instance.
    Use(InstanceId),
    /// To another instance, which is to be started.
    Start,
    /// To whichever has room first; it is looked again at this moment.
    Wait(Option<Moment>),
    /// Nowhere: too many wait already.
    Refuse,
}

/// Where a call goes that may use `mine`, of all instances of the server.
pub(crate) fn choose(
    mine: &[&Seat],
    all: &[&Seat],
    settings: &RunSettings,
    queued: usize,
    now: Moment,
) -> Choice {
    let surplus = surplus(all, settings);
    let free = mine
        .iter()
        .filter(|seat| seat.instance.is_open() && seat.instance.calls() < settings.max_concurrent)
        .filter(|seat| !surplus.contains(&seat.instance.id))
        .min_by_key(|seat| {
            (
                seat.silent.is_some(),
                seat.instance.calls(),
                seat.instance.id,
            )
        });
    let is_starting = mine.iter().any(|seat| seat.instance.is_starting());
    let room = room(all, settings, 0, now);
    let may_start = !is_starting && matches!(room, Room::Start | Room::StopFirst(_));
    match free {
        // Rather another one than one that may be stuck.
        Some(seat) if seat.silent.is_none() || !may_start => return Choice::Use(seat.instance.id),
        Some(_) | None if may_start => return Choice::Start,
        Some(_) | None => {}
    }
    match room {
        _ if queued >= settings.queue => Choice::Refuse,
        Room::Wait(until) => Choice::Wait(until),
        Room::Start | Room::StopFirst(_) | Room::Refuse => Choice::Wait(None),
    }
}

#[cfg(test)]
mod tests;
