//! Placement: which instance serves a call, and whether another instance may start.

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
        Strategy::Stateless | Strategy::Stateful | Strategy::Persistent => settings.max_instances,
    }
}

/// Returns the number of instances that are kept running.
pub(crate) fn min_instances(settings: &RunSettings) -> usize {
    let wanted = match settings.strategy {
        Strategy::Persistent => settings.min_ready.max(1),
        Strategy::Stateless | Strategy::Stateful | Strategy::Singleton => settings.min_ready,
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
    if records.len() < max_instances(settings) {
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

/// Returns the instances above the limit, after the limit was lowered. They get no calls and stop when idle.
/// The oldest instances and exclusive ones stay.
pub(super) fn surplus(records: &[&InstanceRecord], settings: &RunSettings) -> Few<InstanceId> {
    let is_exclusive = |record: &&&InstanceRecord| record.sharing == InstanceSharing::Exclusive;
    let running = || records.iter().filter(|record| record.instance.is_running());
    let exclusive = running().filter(is_exclusive).count();
    let shared = running().filter(|record| !is_exclusive(record));
    let ids = shared.map(|record| record.instance.id);
    ids.skip(max_instances(settings).saturating_sub(exclusive))
        .collect()
}

/// Destination of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This instance.
    Use(InstanceId),
    /// A new instance.
    Start,
    /// The first instance with a free place; check again at this time.
    Wait(Option<Moment>),
    /// None: the queue is full.
    Refuse,
}

/// Chooses among the instances that a call may use, out of all instances of the server.
pub(super) fn choose(
    usable: &[&InstanceRecord],
    all: &[&InstanceRecord],
    settings: &RunSettings,
    queued: usize,
    now: Moment,
) -> Choice {
    let surplus = surplus(all, settings);
    let free = usable
        .iter()
        .map(|record| (&record.instance, record.unresponsive_since.is_some()))
        .filter(|(instance, _)| instance.is_open() && instance.calls() < settings.max_concurrent)
        .filter(|(instance, _)| !surplus.contains(&instance.id))
        .min_by_key(|(instance, is_unresponsive)| {
            (*is_unresponsive, instance.calls(), instance.id)
        });
    let is_starting = usable.iter().any(|record| record.instance.is_starting());
    let capacity = capacity(all, settings, 0, now);
    let may_start =
        !is_starting && matches!(capacity, Capacity::Available | Capacity::StopFirst(_));
    match free {
        // A new instance is better than one that may hang.
        Some((instance, is_unresponsive)) if !is_unresponsive || !may_start => {
            return Choice::Use(instance.id);
        }
        Some(_) | None if may_start => return Choice::Start,
        Some(_) | None => {}
    }
    match capacity {
        _ if queued >= settings.queue => Choice::Refuse,
        Capacity::Wait(until) => Choice::Wait(until),
        Capacity::Available | Capacity::StopFirst(_) | Capacity::Full => Choice::Wait(None),
    }
}

#[cfg(test)]
mod tests;
