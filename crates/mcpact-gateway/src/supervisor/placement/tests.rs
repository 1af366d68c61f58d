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
    let cases: &[(&[InstanceState], usize, Choice)] = &[
        (&[], 0, Choice::Start),
        (&[InstanceState::Ready], 0, Choice::Use(InstanceId(0))),
        (
            &[busy(1), InstanceState::Ready],
            0,
            Choice::Use(InstanceId(1)),
        ),
        (&[busy(1), busy(1)], 0, Choice::Use(InstanceId(0))),
        (&[busy(2)], 0, Choice::Start),
        (&[failed()], 0, Choice::Start),
        (&[failed(), busy(2)], 0, Choice::Wait(None)),
        (&[busy(2), InstanceState::Starting], 0, Choice::Wait(None)),
        (&[InstanceState::Starting], 0, Choice::Wait(None)),
        (&[InstanceState::Handshaking], 1, Choice::Refuse),
        (&[busy(2), busy(2)], 0, Choice::Wait(None)),
        (&[busy(2), busy(2)], 1, Choice::Refuse),
        (&[draining()], 0, Choice::Start),
        (&[draining(), draining()], 0, Choice::Wait(None)),
    ];
    for (states, queued, expected) in cases {
        let records: Vec<InstanceRecord> = (0..)
            .zip(states.iter().cloned())
            .map(|(id, state)| record(id, state))
            .collect();
        let records: Vec<&InstanceRecord> = records.iter().collect();
        let choice = choose(&records, &records, &settings(), *queued, NOW);
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
        let choice = choose(&[], &records, &settings(), 0, NOW);
        let expected = stopped.map_or(Choice::Wait(until), |_| Choice::Start);
        assert_eq!(choice, expected, "{records:?}");
    }
}
