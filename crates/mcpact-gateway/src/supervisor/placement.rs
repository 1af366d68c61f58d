//! Placement: which connection of a pool is leased, and whether another instance may start. Pure.

use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::time::Moment;
use smallvec::SmallVec;

use super::instance::InstanceId;
use super::record::InstanceRecord;

/// List of the usual number of instances, built for every call.
pub(crate) type Few<T> = SmallVec<[T; 4]>;

/// Clients that may use an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceSharing {
    /// One client, which may keep state in the instance.
    Exclusive,
    /// All clients with the same affinity.
    Shared,
    /// No client: the gateway fetches lists that many clients see.
    Internal,
}

/// Clients that share an instance of a legacy server or of a child process. Instances of a modern server at a URL are
/// shared by all, because it does not learn who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharingPolicy {
    /// Every client with a session has its own.
    Exclusive,
    /// Clients with the same capabilities share.
    SameAffinity,
    /// All clients share.
    All,
}

/// Returns the sharing policy of a strategy.
pub(crate) const fn sharing_policy(strategy: Strategy) -> SharingPolicy {
    match strategy {
        Strategy::Stateful => SharingPolicy::Exclusive,
        Strategy::Stateless | Strategy::Persistent => SharingPolicy::SameAffinity,
        Strategy::Singleton => SharingPolicy::All,
    }
}

/// Returns the maximum number of instances.
pub(crate) const fn max_instances(settings: &RunSettings) -> usize {
    match settings.strategy {
        Strategy::Singleton => 1,
        _ => settings.max_instances,
    }
}

/// Returns the maximum number of instances beside [`max_instances`] that only wait for input.
pub(super) const fn max_input_waits(settings: &RunSettings) -> usize {
    match settings.strategy {
        Strategy::Singleton => 0,
        _ => settings.max_input_waits,
    }
}

/// Returns the number of instances that only wait for input.
pub(super) fn suspended(records: &[&InstanceRecord]) -> usize {
    let suspended = records.iter().filter(|record| record.is_suspended());
    suspended.count()
}

/// Returns the number of instances that count towards [`max_instances`].
fn counted(records: &[&InstanceRecord], settings: &RunSettings) -> usize {
    records.len() - suspended(records).min(max_input_waits(settings))
}

/// Returns the number of instances that are kept running.
pub(crate) fn min_instances(settings: &RunSettings) -> usize {
    let wanted = match settings.strategy {
        Strategy::Persistent => settings.min_ready.max(1),
        _ => settings.min_ready,
    };
    wanted.min(max_instances(settings))
}

/// Capacity for another instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capacity {
    /// Below the limit.
    Available,
    /// Available after this idle instance has stopped.
    StopFirst(InstanceId),
    /// Available when another instance stops, or at this time.
    Wait(Option<Moment>),
    /// At the limit, and the queue is full.
    Full,
}

/// Returns the capacity for another instance while `queued` calls wait.
pub(super) fn capacity(
    records: &[&InstanceRecord],
    settings: &RunSettings,
    queued: usize,
    now: Moment,
) -> Capacity {
    // A failed instance counts until its process has exited.
    if counted(records, settings) < max_instances(settings) {
        return Capacity::Available;
    }
    let stopping = records
        .iter()
        .filter(|record| !record.instance.is_running())
        .count();
    // An exclusive instance may hold state, so it is not stopped in favour of another client.
    let idle = records
        .iter()
        .filter(|record| record.is_idle() && record.sharing != InstanceSharing::Exclusive);
    // The call that waited for a start is served by it. Otherwise calls could stop each other's instances for ever.
    let (reserved, free): (Vec<&&InstanceRecord>, Vec<_>) =
        idle.partition(|record| record.reserved_until(now).is_some());
    match free.into_iter().min_by_key(|record| record.last_used) {
        Some(idle) if stopping == 0 => Capacity::StopFirst(idle.instance.id),
        // A call may wait for the instance that is being stopped for it, even if the queue is disabled.
        Some(_) | None if queued < settings.queue.max(stopping) => {
            let until = reserved.iter().filter_map(|one| one.reserved_until(now));
            Capacity::Wait(until.min())
        }
        Some(_) | None => Capacity::Full,
    }
}

/// Returns the instances above the limit, after the limit was lowered or input has arrived. They get no calls and stop
/// when idle. The oldest instances and exclusive ones stay.
pub(super) fn surplus(records: &[&InstanceRecord], settings: &RunSettings) -> Few<InstanceId> {
    if counted(records, settings) <= max_instances(settings) {
        return Few::new();
    }
    let running = records
        .iter()
        .filter(|record| record.instance.is_running() && !record.is_suspended());
    let (exclusive, shared): (Vec<&&InstanceRecord>, Vec<_>) =
        running.partition(|record| record.sharing == InstanceSharing::Exclusive);
    let limit = max_instances(settings).saturating_sub(exclusive.len());
    let ids = shared.into_iter().map(|record| record.instance.id);
    ids.skip(limit).collect()
}

/// Ownership of a connection, as seen by a user that needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnershipRelation {
    /// No owner.
    Common,
    /// Owned by this user, which prefers it.
    Own,
    /// Owned by another client.
    Foreign,
    /// Owned by a client that has disconnected.
    Left,
}

impl OwnershipRelation {
    /// Returns true if the user may use the connection.
    pub(crate) const fn is_admitted(self) -> bool {
        matches!(self, Self::Common | Self::Own)
    }

    /// Returns true if the connection is released when this user needs one.
    pub(crate) const fn is_released(self, has_capacity: bool) -> bool {
        match self {
            Self::Common | Self::Own => false,
            Self::Foreign => !has_capacity,
            Self::Left => true,
        }
    }
}

/// Purpose of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call.
    Call,
    /// A call that may cause questions: only one at a time per connection.
    QuestionCall,
    /// A call on the first slot: the home of the client, or the slot of its permit.
    Home,
    /// No call.
    Description,
}

/// Permit for the one call of a slot that may cause questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermitState {
    /// No such call.
    Free,
    /// Such a call runs.
    Taken,
    /// Such a call waits for the input of its client.
    Suspended,
    /// Such a call was cancelled a moment ago: the server may still send questions for it.
    Paused,
}

/// Slot of a pool, as seen by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotFacts {
    /// The open connection.
    pub(crate) open: Option<(InstanceId, OwnershipRelation)>,
    /// Tasks of clients run on the connection.
    pub(crate) has_tasks: bool,
    pub(crate) permit: PermitState,
}

impl SlotFacts {
    fn relation(&self) -> Option<OwnershipRelation> {
        self.open.map(|(_, relation)| relation)
    }

    /// Returns the instance of the connection if the user may use it.
    fn admitted(&self) -> Option<InstanceId> {
        let (id, relation) = self.open?;
        relation.is_admitted().then_some(id)
    }

    /// Returns the order of preference for a user.
    fn preference(&self) -> u8 {
        match self.relation() {
            Some(OwnershipRelation::Own) => 0,
            Some(OwnershipRelation::Common) => 1,
            Some(OwnershipRelation::Left) | None => 2,
            Some(OwnershipRelation::Foreign) => 3,
        }
    }
}

/// Pool of connections, as seen by a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolFacts {
    pub(crate) slots: Few<SlotFacts>,
    pub(crate) sharing: InstanceSharing,
    /// Number of slots up to which calls that may cause questions get another one.
    pub(crate) max_slots: usize,
}

impl PoolFacts {
    /// Returns the slots with open connections that the user may use.
    fn admitted(&self) -> impl Iterator<Item = (usize, InstanceId)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, facts)| Some((slot, facts.admitted()?)))
    }

    /// Returns the instance of the open connection of a slot.
    pub(super) fn instance(&self, slot: usize) -> Option<InstanceId> {
        self.slots.get(slot)?.open.map(|(id, _)| id)
    }

    /// Returns the slot with an open connection that the user prefers.
    pub(crate) fn nearest(&self) -> Option<usize> {
        let admitted = self.admitted().map(|(slot, _)| slot);
        admitted.min_by_key(|slot| self.slots[*slot].preference())
    }

    /// Returns true if another client owns a connection.
    pub(super) fn has_other_owner(&self) -> bool {
        let mut relations = self.slots.iter().filter_map(SlotFacts::relation);
        relations.any(|relation| !relation.is_admitted())
    }

    /// Returns the first slot without an open connection, or a new one.
    fn closed(&self) -> usize {
        let closed = self.slots.iter().position(|slot| slot.open.is_none());
        closed.unwrap_or(self.slots.len())
    }
}

/// Capacity of a server for calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'a> {
    pub(super) records: &'a [&'a InstanceRecord],
    pub(super) settings: &'a RunSettings,
    /// Number of other queued calls.
    pub(super) queued: usize,
    pub(super) now: Moment,
}

impl Room<'_> {
    fn record(&self, id: InstanceId) -> Option<&InstanceRecord> {
        let mut records = self.records.iter().copied();
        records.find(|record| record.instance.id == id)
    }

    /// Returns true if another instance may start, now or after an idle one has stopped.
    pub(super) fn may_start(&self) -> bool {
        let capacity = capacity(self.records, self.settings, 0, self.now);
        matches!(capacity, Capacity::Available | Capacity::StopFirst(_))
    }
}

/// Decision about a lease. Slots have numbers; the number after the last one is a new slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Lease the open connection of this slot.
    Lease(usize),
    /// Open a connection in this slot.
    Open(usize),
    /// Release the connections of these slots, then decide again.
    Release(Few<usize>),
    /// Wait for a change, or until this time.
    Wait(Option<Moment>),
    /// Refuse: the queue is full.
    Refuse,
}

/// Decides which connection of a pool a user gets. A user never gets the connection of another client.
pub(super) fn place(purpose: Purpose, pool: &PoolFacts, room: &Room<'_>) -> Placement {
    match (purpose, pool.sharing) {
        (Purpose::Call, InstanceSharing::Shared) => place_call(pool, room),
        (Purpose::Call | Purpose::Home, _) => place_at_home(pool, room),
        (Purpose::QuestionCall, _) => place_question_call(pool, room),
        (Purpose::Description, _) => place_description(pool, room),
    }
}

fn place_call(pool: &PoolFacts, room: &Room<'_>) -> Placement {
    let is_own = |slot: &SlotFacts| slot.relation() == Some(OwnershipRelation::Own);
    if let Some(own) = pool.slots.iter().position(is_own)
        && let Some(placement) = place_on(own, pool, room)
    {
        return placement;
    }
    let release = released(pool, room);
    if !release.is_empty() {
        return Placement::Release(release);
    }
    let usable: Few<(usize, &InstanceRecord)> = pool
        .admitted()
        .filter_map(|(slot, id)| Some((slot, room.record(id)?)))
        .collect();
    choose(&usable, pool.closed(), room)
}

fn place_at_home(pool: &PoolFacts, room: &Room<'_>) -> Placement {
    let has_other_owner = |slot: &SlotFacts| slot.open.is_some() && slot.admitted().is_none();
    match place_on(0, pool, room) {
        Some(placement) => placement,
        None if pool.slots.first().is_some_and(has_other_owner) => {
            Placement::Release(Few::from_iter([0]))
        }
        None => Placement::Open(0),
    }
}

/// Places a call on the open connection of a slot, if the user may use it.
fn place_on(slot: usize, pool: &PoolFacts, room: &Room<'_>) -> Option<Placement> {
    let id = pool.slots.get(slot)?.admitted()?;
    match admission(room.record(id), room.settings, room.queued) {
        CallAdmission::Started => Some(Placement::Lease(slot)),
        CallAdmission::Wait => Some(Placement::Wait(None)),
        CallAdmission::Refuse => Some(Placement::Refuse),
        CallAdmission::Retired => None,
    }
}

/// Chooses the slot whose permit the call takes.
fn place_question_call(pool: &PoolFacts, room: &Room<'_>) -> Placement {
    let has_paused = |slot: &SlotFacts| slot.permit == PermitState::Paused;
    // A call waits for the pause of its home rather than going to another server, which lacks its state.
    if pool.slots.first().is_some_and(has_paused) {
        return Placement::Wait(None);
    }
    let suspended = |slot: &&SlotFacts| slot.permit == PermitState::Suspended;
    let suspended = match pool.sharing {
        // Another instance lacks the state of the client.
        InstanceSharing::Exclusive => 0,
        InstanceSharing::Shared | InstanceSharing::Internal => {
            let suspended = pool.slots.iter().filter(suspended).count();
            suspended.min(max_input_waits(room.settings))
        }
    };
    let may_add = pool.slots.len() - suspended < pool.max_slots;
    let is_foreign = |slot: &SlotFacts| slot.relation() == Some(OwnershipRelation::Foreign);
    let surplus = surplus(room.records, room.settings);
    let is_surplus = |slot: &SlotFacts| slot.open.is_some_and(|(id, _)| surplus.contains(&id));
    let slots = pool.slots.iter().enumerate();
    let best = slots
        .filter(|(_, slot)| slot.permit == PermitState::Free && !(may_add && is_foreign(slot)))
        .filter(|(_, slot)| !is_surplus(slot))
        .min_by_key(|(_, slot)| slot.preference());
    match best {
        Some((slot, facts)) if facts.admitted().is_some() => Placement::Lease(slot),
        Some((slot, _)) => Placement::Open(slot),
        None if may_add => Placement::Open(pool.slots.len()),
        None => Placement::Wait(None),
    }
}

fn place_description(pool: &PoolFacts, room: &Room<'_>) -> Placement {
    if let Some(slot) = pool.nearest() {
        return Placement::Lease(slot);
    }
    let release = released(pool, room);
    match release.is_empty() {
        true => Placement::Open(pool.closed()),
        false => Placement::Release(release),
    }
}

/// Returns the slots to release for a user that has no connection: those of disconnected clients, and without capacity
/// those of other clients.
fn released(pool: &PoolFacts, room: &Room<'_>) -> Few<usize> {
    if pool.admitted().next().is_some() || !pool.has_other_owner() {
        return Few::new();
    }
    let has_capacity = room.may_start();
    let is_released = |relation: OwnershipRelation| relation.is_released(has_capacity);
    let slots = pool.slots.iter().enumerate();
    slots
        .filter(|(_, facts)| !facts.has_tasks && facts.relation().is_some_and(is_released))
        .map(|(slot, _)| slot)
        .collect()
}

/// Decision about a call on one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallAdmission {
    /// The call may start.
    Started,
    /// Wait until another call ends.
    Wait,
    /// The instance accepts no calls; another one may.
    Retired,
    /// The queue is full.
    Refuse,
}

/// Decides about a call on one instance while `queued` other calls wait.
pub(super) fn admission(
    record: Option<&InstanceRecord>,
    settings: &RunSettings,
    queued: usize,
) -> CallAdmission {
    match record {
        Some(record) if record.instance.is_open() => {
            if record.active_calls() < settings.max_concurrent {
                CallAdmission::Started
            } else if queued < settings.queue {
                CallAdmission::Wait
            } else {
                CallAdmission::Refuse
            }
        }
        Some(_) | None => CallAdmission::Retired,
    }
}

/// Chooses among the slots whose connections a call may use, or the slot for a new connection.
fn choose(usable: &[(usize, &InstanceRecord)], closed: usize, room: &Room<'_>) -> Placement {
    let settings = room.settings;
    let surplus = surplus(room.records, settings);
    let free = usable
        .iter()
        .map(|(slot, record)| (*slot, *record, record.unresponsive_since.is_some()))
        .filter(|(_, record, _)| record.instance.is_open())
        .filter(|(_, record, _)| record.active_calls() < settings.max_concurrent)
        .filter(|(_, record, _)| !surplus.contains(&record.instance.id))
        .min_by_key(|(_, record, is_unresponsive)| {
            (*is_unresponsive, record.active_calls(), record.instance.id)
        });
    // The usual case, decided first because the capacity costs more than the rest.
    if let Some((slot, _, false)) = free {
        return Placement::Lease(slot);
    }
    match (free, capacity(room.records, settings, 0, room.now)) {
        // A new instance is better than one that may hang.
        (_, Capacity::Available | Capacity::StopFirst(_)) => Placement::Open(closed),
        (Some((slot, ..)), _) => Placement::Lease(slot),
        (None, Capacity::Wait(until)) if room.queued < settings.queue => Placement::Wait(until),
        (None, Capacity::Wait(_) | Capacity::Full) => Placement::Refuse,
    }
}

#[cfg(test)]
mod tests;
