use std::num::NonZeroUsize;
use std::time::Duration;

use super::super::instance::{Instance, InstanceState, StartCause, StopCause};
use super::Capacity::{Available, Full, StopFirst};
use super::*;

const NOW: Moment = Moment::at(Duration::from_secs(10));

fn record(id: u64, state: InstanceState) -> InstanceRecord {
    let used = Moment::at(Duration::from_secs(id));
    let mut instance = Instance::new(InstanceId(id), StartCause::MinReady, Moment::ZERO);
    instance.state = state;
    InstanceRecord::new(instance, InstanceSharing::Shared, &settings(), used)
}

fn busy(calls: usize) -> InstanceState {
    let calls = NonZeroUsize::new(calls).unwrap();
    InstanceState::Busy { calls }
}

fn draining() -> InstanceState {
    let cause = StopCause::Idle;
    InstanceState::Draining { calls: 1, cause }
}

fn failed() -> InstanceState {
    let why = "x".into();
    InstanceState::Failed { why }
}

fn settings() -> RunSettings {
    RunSettings {
        max_instances: 2,
        max_concurrent: 2,
        queue: 1,
        ..RunSettings::default()
    }
}

fn room<'a>(
    records: &'a [&'a InstanceRecord],
    settings: &'a RunSettings,
    queued: usize,
) -> Room<'a> {
    Room {
        records,
        settings,
        queued,
        now: NOW,
    }
}

/// A new connection, in the slot with this number.
const NEW: Placement = Placement::Open(99);

fn chosen(usable: &[&InstanceRecord], room: &Room<'_>) -> Placement {
    let usable: Vec<(usize, &InstanceRecord)> = usable.iter().copied().enumerate().collect();
    choose(&usable, 99, room)
}

#[test]
fn strategy_decides_sharing_and_number_of_instances() {
    let cases = [
        (Strategy::Stateless, SharingPolicy::SameAffinity, 2, 0),
        (Strategy::Stateful, SharingPolicy::Exclusive, 2, 0),
        (Strategy::Persistent, SharingPolicy::SameAffinity, 2, 1),
        (Strategy::Singleton, SharingPolicy::All, 1, 0),
    ];
    for (strategy, with, at_most, at_least) in cases {
        let settings = RunSettings {
            strategy,
            ..settings()
        };
        assert_eq!(sharing_policy(strategy), with);
        assert_eq!(
            (max_instances(&settings), min_instances(&settings)),
            (at_most, at_least)
        );
    }
}

/// A call prefers the instance with the fewest calls, then a new one, then it waits, then it is refused.
#[test]
fn call_goes_to_the_least_busy_instance() {
    let cases: &[(&[InstanceState], usize, Placement)] = &[
        (&[], 0, NEW),
        (&[InstanceState::Ready], 0, Placement::Lease(0)),
        (&[busy(1), InstanceState::Ready], 0, Placement::Lease(1)),
        (&[busy(1), busy(1)], 0, Placement::Lease(0)),
        (&[busy(2)], 0, NEW),
        (&[failed()], 0, NEW),
        (&[failed(), busy(2)], 0, Placement::Wait(None)),
        (
            &[busy(2), InstanceState::Starting],
            0,
            Placement::Wait(None),
        ),
        (&[busy(2), busy(2)], 0, Placement::Wait(None)),
        (&[busy(2), busy(2)], 1, Placement::Refuse),
        (&[draining()], 0, NEW),
        (&[draining(), draining()], 0, Placement::Wait(None)),
    ];
    for (states, queued, expected) in cases {
        let records: Vec<InstanceRecord> = (0..)
            .zip(states.iter().cloned())
            .map(|(id, state)| record(id, state))
            .collect();
        let records: Vec<&InstanceRecord> = records.iter().collect();
        let settings = settings();
        let choice = chosen(&records, &room(&records, &settings, *queued));
        assert_eq!(choice, *expected, "{states:?}");
    }
}

/// `max_instances` counts all instances. An idle one is stopped to free capacity, unless it is exclusive, has listeners
/// or another one is stopping already.
#[test]
fn capacity_is_limited_by_max_instances() {
    let own = |mut record: InstanceRecord| {
        record.sharing = InstanceSharing::Exclusive;
        record
    };
    let subscribed = |mut record: InstanceRecord| {
        record.has_listeners = true;
        record
    };
    let ready = |id| record(id, InstanceState::Ready);
    let cases = [
        (vec![], 0, Available),
        (vec![ready(1)], 0, Available),
        (vec![ready(1), ready(2)], 0, StopFirst(InstanceId(1))),
        (
            vec![record(1, busy(1)), ready(2)],
            9,
            StopFirst(InstanceId(2)),
        ),
        (vec![own(ready(1)), own(ready(2))], 0, Capacity::Wait(None)),
        (
            vec![subscribed(ready(1)), subscribed(ready(2))],
            0,
            Capacity::Wait(None),
        ),
        (
            vec![record(1, draining()), ready(2)],
            0,
            Capacity::Wait(None),
        ),
        (
            vec![record(1, draining()), record(2, draining())],
            1,
            Capacity::Wait(None),
        ),
        (vec![record(1, busy(1)), record(2, busy(1))], 1, Full),
    ];
    for (records, queued, expected) in cases {
        let records: Vec<&InstanceRecord> = records.iter().collect();
        assert_eq!(
            capacity(&records, &settings(), queued, NOW),
            expected,
            "{records:?}"
        );
    }
}

/// Instances that only wait for input have a limit of their own, and a call that waits takes no place from another.
#[test]
fn suspended_calls_leave_room_for_others() {
    let suspended = |id, calls, suspended| InstanceRecord {
        suspended,
        ..record(id, busy(calls))
    };
    let own = |record| InstanceRecord {
        sharing: InstanceSharing::Exclusive,
        ..record
    };
    let waits = |max_input_waits| RunSettings {
        max_input_waits,
        ..settings()
    };
    let singleton = RunSettings {
        strategy: Strategy::Singleton,
        ..settings()
    };
    let [first, second, third] = [1, 2, 3].map(|id| suspended(id, 1, 1));
    let [first, second, third] = [&first, &second, &third];
    let working = &suspended(4, 2, 1);
    let owned = &own(suspended(5, 1, 1));
    let cases: &[(&[&InstanceRecord], &RunSettings, Capacity)] = &[
        (&[first, second], &waits(16), Available),
        (&[first, second, third], &waits(2), Available),
        (&[first, second, third], &waits(1), Capacity::Wait(None)),
        (&[first, working], &waits(16), Available),
        (&[working, working], &waits(16), Capacity::Wait(None)),
        (&[owned, owned], &waits(16), Capacity::Wait(None)),
        (&[first], &singleton, Capacity::Wait(None)),
    ];
    for (records, settings, expected) in cases {
        assert_eq!(
            capacity(records, settings, 0, NOW),
            *expected,
            "{records:?}"
        );
        let surplus = surplus(records, settings);
        assert!(surplus.is_empty(), "{records:?}");
    }
    let settings = settings();
    let both = [first, working];
    assert_eq!(
        chosen(&both[1..], &room(&both, &settings, 0)),
        Placement::Lease(0)
    );
    // Answered, the newest ones are above the limit.
    let answered = [1, 2, 3].map(|id| suspended(id, 1, 0));
    let answered: Vec<&InstanceRecord> = answered.iter().collect();
    assert_eq!(surplus(&answered, &settings)[..], [InstanceId(3)]);
}

/// An instance that was started for a call is not stopped for another call, until the reservation ends.
#[test]
fn instance_is_reserved_for_the_call_that_started_it() {
    let at = |seconds| Moment::at(Duration::from_secs(seconds));
    let reserved = |id| {
        let mut record = record(id, InstanceState::Ready);
        record.awaits_call = true;
        record
    };
    let ready = |id| record(id, InstanceState::Ready);
    let cases = [
        (vec![reserved(7), reserved(8)], Some(at(12)), None),
        (vec![reserved(7), record(8, busy(1))], Some(at(12)), None),
        (vec![reserved(5), reserved(8)], None, Some(5)),
        (vec![reserved(7), ready(8)], None, Some(8)),
    ];
    for (records, until, stopped) in cases {
        let records: Vec<&InstanceRecord> = records.iter().collect();
        let expected = match stopped {
            Some(id) => StopFirst(InstanceId(id)),
            None => Capacity::Wait(until),
        };
        assert_eq!(
            capacity(&records, &settings(), 0, NOW),
            expected,
            "{records:?}"
        );
        let settings = settings();
        let choice = chosen(&[], &room(&records, &settings, 0));
        let expected = stopped.map_or(Placement::Wait(until), |_| NEW);
        assert_eq!(choice, expected, "{records:?}");
    }
}

const COMMON: OwnershipRelation = OwnershipRelation::Common;
const OWN: OwnershipRelation = OwnershipRelation::Own;
const FOREIGN: OwnershipRelation = OwnershipRelation::Foreign;
const LEFT: OwnershipRelation = OwnershipRelation::Left;

fn closed() -> SlotFacts {
    SlotFacts {
        open: None,
        has_tasks: false,
        permit: PermitState::Free,
    }
}

/// Creates a slot with the connection of this instance.
fn open(id: u64, relation: OwnershipRelation) -> SlotFacts {
    SlotFacts {
        open: Some((InstanceId(id), relation)),
        ..closed()
    }
}

fn with_task(id: u64, relation: OwnershipRelation) -> SlotFacts {
    SlotFacts {
        has_tasks: true,
        ..open(id, relation)
    }
}

fn taken(slot: SlotFacts) -> SlotFacts {
    let permit = PermitState::Taken;
    SlotFacts { permit, ..slot }
}

fn paused(slot: SlotFacts) -> SlotFacts {
    let permit = PermitState::Paused;
    SlotFacts { permit, ..slot }
}

fn pool(slots: &[SlotFacts], sharing: InstanceSharing) -> PoolFacts {
    PoolFacts {
        slots: slots.into(),
        sharing,
        max_slots: 2,
    }
}

/// Places a call among instances with these numbers of calls; the instance with number 0 is the first.
fn placed(purpose: Purpose, pool: &PoolFacts, calls: &[usize], queued: usize) -> Placement {
    let state = |calls: usize| match calls {
        0 => InstanceState::Ready,
        calls => busy(calls),
    };
    let records: Vec<InstanceRecord> = (0..)
        .zip(calls)
        .map(|(id, calls)| record(id, state(*calls)))
        .collect();
    let records: Vec<&InstanceRecord> = records.iter().collect();
    let settings = settings();
    place(purpose, pool, &room(&records, &settings, queued))
}

fn release(slots: &[usize]) -> Placement {
    Placement::Release(slots.into())
}

/// A call prefers the connection that its client owns, then the least busy common one, then a new one. The connections of
/// others are never used. They are released if their client has disconnected, or if there is no capacity for another.
#[test]
fn call_is_placed_in_a_shared_pool() {
    use Placement::{Lease, Open, Refuse, Wait};
    type Case<'a> = (&'a [SlotFacts], &'a [usize], usize, Placement);
    let cases: &[Case<'_>] = &[
        (&[closed()], &[], 0, Open(0)),
        (&[open(0, COMMON)], &[0], 0, Lease(0)),
        (&[open(0, COMMON), open(1, COMMON)], &[1, 0], 0, Lease(1)),
        (&[open(0, COMMON), open(1, OWN)], &[0, 1], 0, Lease(1)),
        (&[open(0, COMMON), open(1, OWN)], &[0, 2], 0, Wait(None)),
        (&[open(0, COMMON), open(1, OWN)], &[0, 2], 1, Refuse),
        (&[open(0, COMMON)], &[2], 0, Open(1)),
        (&[open(0, COMMON), closed()], &[2], 0, Open(1)),
        (&[open(0, COMMON), open(1, COMMON)], &[2, 2], 0, Wait(None)),
        (&[open(0, COMMON), open(1, COMMON)], &[2, 2], 1, Refuse),
        (&[open(0, FOREIGN)], &[0], 0, Open(1)),
        (&[open(0, FOREIGN)], &[1, 1], 0, release(&[0])),
        (&[open(0, FOREIGN), open(1, COMMON)], &[1, 2], 0, Wait(None)),
        (&[open(0, LEFT)], &[0], 0, release(&[0])),
        (&[open(0, LEFT), open(1, COMMON)], &[1, 1], 0, Lease(1)),
        (
            &[open(0, LEFT), open(1, FOREIGN)],
            &[1, 0],
            0,
            release(&[0]),
        ),
        (
            &[open(0, LEFT), open(1, FOREIGN)],
            &[1, 1],
            0,
            release(&[0, 1]),
        ),
        (&[with_task(0, LEFT)], &[0], 0, Open(1)),
        (&[with_task(0, FOREIGN)], &[1, 1], 0, Wait(None)),
        // The owned connection has ended meanwhile.
        (&[open(9, OWN), open(0, COMMON)], &[0], 0, Lease(1)),
    ];
    for (slots, calls, queued, expected) in cases {
        let pool = pool(slots, InstanceSharing::Shared);
        let placement = placed(Purpose::Call, &pool, calls, *queued);
        assert_eq!(placement, *expected, "{slots:?} {calls:?} {queued}");
    }
}

/// Calls of an exclusive or internal pool, and those that set state for notifications, use the first slot only.
#[test]
fn call_is_placed_on_the_home_connection() {
    use Placement::{Lease, Open, Refuse, Wait};
    let cases: &[(&[SlotFacts], &[usize], usize, Placement)] = &[
        (&[closed()], &[], 0, Open(0)),
        (&[closed(), open(0, COMMON)], &[0], 0, Open(0)),
        (&[open(0, COMMON), open(1, OWN)], &[1, 0], 0, Lease(0)),
        (&[open(0, COMMON), open(1, OWN)], &[2, 0], 0, Wait(None)),
        (&[open(0, COMMON), closed()], &[2], 1, Refuse),
        (&[open(0, OWN)], &[0], 0, Lease(0)),
        (
            &[open(0, FOREIGN), open(1, COMMON)],
            &[0, 0],
            0,
            release(&[0]),
        ),
        (&[open(0, LEFT)], &[0], 0, release(&[0])),
        (&[with_task(0, FOREIGN)], &[0], 0, release(&[0])),
        (&[open(9, COMMON)], &[0], 0, Open(0)),
    ];
    let uses = [
        (Purpose::Home, InstanceSharing::Shared),
        (Purpose::Home, InstanceSharing::Exclusive),
        (Purpose::Call, InstanceSharing::Exclusive),
        (Purpose::Call, InstanceSharing::Internal),
    ];
    for (slots, calls, queued, expected) in cases {
        for (purpose, sharing) in uses {
            let placement = placed(purpose, &pool(slots, sharing), calls, *queued);
            assert_eq!(placement, *expected, "{purpose:?} {sharing:?} {slots:?}");
        }
    }
}

/// A call that may cause questions takes the permit of a slot where no other such call runs.
#[test]
fn question_call_is_placed_on_a_free_slot() {
    use Placement::{Lease, Open, Wait};
    let common = open(0, COMMON);
    let other = open(1, COMMON);
    let cases: &[(&[SlotFacts], Placement)] = &[
        (&[closed()], Open(0)),
        (&[common], Lease(0)),
        (&[taken(common)], Open(1)),
        (&[taken(closed())], Open(1)),
        (&[taken(common), other], Lease(1)),
        (&[taken(common), closed()], Open(1)),
        (&[taken(common), taken(other)], Wait(None)),
        (&[common, open(1, OWN)], Lease(1)),
        (&[common, taken(open(1, OWN))], Lease(0)),
        (&[closed(), other], Lease(1)),
        // Another slot of the pool is no substitute for the paused home, but the home is one for a paused slot.
        (&[paused(common)], Wait(None)),
        (&[paused(common), other], Wait(None)),
        (&[common, paused(other)], Lease(0)),
        (&[taken(common), paused(other)], Wait(None)),
        (&[open(0, LEFT)], Open(0)),
        (&[open(0, LEFT), other], Lease(1)),
        // The connection of another client is replaced only if no other slot is free.
        (&[open(0, FOREIGN)], Open(1)),
        (&[open(0, FOREIGN), taken(other)], Open(0)),
        (&[open(0, FOREIGN), open(1, LEFT)], Open(1)),
    ];
    for (slots, expected) in cases {
        for sharing in [InstanceSharing::Shared, InstanceSharing::Exclusive] {
            let pool = pool(slots, sharing);
            let placement = placed(Purpose::QuestionCall, &pool, &[1, 1], 0);
            assert_eq!(placement, *expected, "{sharing:?} {slots:?}");
        }
    }
}

/// A slot whose call waits for input does not count in a shared pool.
#[test]
fn question_call_gets_another_slot_beside_suspended_ones() {
    use Placement::{Open, Wait};
    let waiting = |id| SlotFacts {
        permit: PermitState::Suspended,
        ..open(id, COMMON)
    };
    let busy = taken(open(2, COMMON));
    let cases: &[(&[SlotFacts], Placement, Placement)] = &[
        (&[waiting(0)], Open(1), Open(1)),
        (&[waiting(0), waiting(1)], Open(2), Wait(None)),
        (&[waiting(0), waiting(1), busy], Open(3), Wait(None)),
        (&[waiting(0), busy, busy], Wait(None), Wait(None)),
    ];
    for (slots, shared, exclusive) in cases {
        for (sharing, expected) in [
            (InstanceSharing::Shared, shared),
            (InstanceSharing::Exclusive, exclusive),
        ] {
            let pool = pool(slots, sharing);
            let placement = placed(Purpose::QuestionCall, &pool, &[1, 1, 1], 0);
            assert_eq!(placement, *expected, "{sharing:?} {slots:?}");
        }
    }
}

/// Without a call, the load of a connection does not matter.
#[test]
fn description_is_read_on_any_connection() {
    use Placement::{Lease, Open};
    let cases: &[(&[SlotFacts], Placement)] = &[
        (&[closed()], Open(0)),
        (&[closed(), open(0, COMMON)], Lease(1)),
        (&[open(0, COMMON), open(1, OWN)], Lease(1)),
        (&[open(0, FOREIGN), open(1, COMMON)], Lease(1)),
        (&[open(0, FOREIGN)], release(&[0])),
        (&[with_task(0, FOREIGN)], Open(1)),
        (&[open(0, LEFT)], release(&[0])),
    ];
    for (slots, expected) in cases {
        let pool = pool(slots, InstanceSharing::Shared);
        let placement = placed(Purpose::Description, &pool, &[2, 2], 0);
        assert_eq!(placement, *expected, "{slots:?}");
    }
}

/// No user gets or releases more than it may, whatever the purpose, the sharing and the load.
#[test]
fn no_placement_uses_the_connection_of_another_client() {
    let relations = [None, Some(COMMON), Some(OWN), Some(FOREIGN), Some(LEFT)];
    let slot = |id, relation: Option<OwnershipRelation>| {
        relation.map_or_else(closed, |relation| open(id, relation))
    };
    let purposes = [
        Purpose::Call,
        Purpose::QuestionCall,
        Purpose::Home,
        Purpose::Description,
    ];
    let sharings = [
        InstanceSharing::Exclusive,
        InstanceSharing::Shared,
        InstanceSharing::Internal,
    ];
    let permits = [
        PermitState::Free,
        PermitState::Taken,
        PermitState::Suspended,
        PermitState::Paused,
    ];
    let mut all = Vec::new();
    for first in relations {
        for second in relations {
            for permit in permits {
                for has_tasks in [false, true] {
                    let second = slot(1, second);
                    let first = SlotFacts {
                        permit,
                        has_tasks,
                        ..slot(0, first)
                    };
                    all.push([first, second]);
                }
            }
        }
    }
    for slots in &all {
        for (purpose, sharing) in purposes
            .iter()
            .flat_map(|purpose| sharings.map(|sharing| (*purpose, sharing)))
        {
            for calls in [[0, 0], [1, 2], [2, 2]] {
                let pool = pool(slots, sharing);
                let what = format!("{purpose:?} {pool:?} {calls:?}");
                match placed(purpose, &pool, &calls, 0) {
                    Placement::Lease(slot) => {
                        let (_, relation) = slots[slot].open.unwrap();
                        assert!(matches!(relation, COMMON | OWN), "{what}");
                        let is_free = slots[slot].permit == PermitState::Free;
                        assert!(is_free || purpose != Purpose::QuestionCall, "{what}");
                    }
                    Placement::Release(released) => {
                        assert!(!released.is_empty(), "{what}");
                        for slot in released {
                            let (_, relation) = slots[slot].open.unwrap();
                            assert!(matches!(relation, FOREIGN | LEFT), "{what}");
                            let is_shared = sharing == InstanceSharing::Shared;
                            let is_at_home = match purpose {
                                Purpose::Home => true,
                                Purpose::Call => !is_shared,
                                Purpose::QuestionCall | Purpose::Description => false,
                            };
                            assert!(is_at_home || !slots[slot].has_tasks, "{what}");
                        }
                    }
                    Placement::Open(slot) => assert!(slot <= slots.len(), "{what}"),
                    Placement::Wait(_) | Placement::Refuse => {}
                }
            }
        }
    }
}
