use std::num::NonZeroUsize;
use std::time::Duration;

use super::super::instance::{InstanceState, StartCause, StopCause};
use super::*;

const NOW: Moment = Moment::at(Duration::from_secs(10));

pub(super) fn seat(id: u64, state: InstanceState) -> Seat {
    let used = Moment::at(Duration::from_secs(id));
    let mut instance = Instance::new(InstanceId(id), StartCause::Request, Moment::ZERO);
    instance.state = state;
    Seat {
        instance,
        tenant: Tenant::Shared,
        is_held: false,
        silent: None,
        used,
        is_awaited: false,
    }
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

/// Who shares what under each strategy, and how many there may and must be.
#[test]
fn strategies() {
    let sheet = [
        (Strategy::Stateless, Sharing::Kind, 2, 0),
        (Strategy::Stateful, Sharing::Nobody, 2, 0),
        (Strategy::Persistent, Sharing::Kind, 2, 1),
        (Strategy::Singleton, Sharing::Everybody, 1, 0),
    ];
    for (strategy, with, at_most, at_least) in sheet {
        let settings = RunSettings {
            strategy,
            ..settings()
        };
        assert_eq!(sharing(strategy), with);
        assert_eq!((most(&settings), least(&settings)), (at_most, at_least));
    }
}

/// A call goes to the instance with the fewest calls, then to a new one, then it waits, then it is
/// refused.
#[test]
fn where_a_call_goes() {
    let sheet: &[(&[InstanceState], usize, Choice)] = &[
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
    for (states, queued, expected) in sheet {
        let seats: Vec<Seat> = (0..)
            .zip(states.iter().cloned())
            .map(|(id, state)| seat(id, state))
            .collect();
        let seats: Vec<&Seat> = seats.iter().collect();
        let choice = choose(&seats, &seats, &settings(), *queued, NOW);
        assert_eq!(choice, *expected, "{states:?}");
    }
}

/// `max_instances` holds over all kinds of clients; one that nobody uses makes room, but not one that
/// is a client's own, that is held awake, or beside one that is going already.
#[test]
fn room_for_another() {
    let own = |mut seat: Seat| {
        seat.tenant = Tenant::Own;
        seat
    };
    let held = |mut seat: Seat| {
        seat.is_held = true;
        seat
    };
    let ready = |id| seat(id, InstanceState::Ready);
    let sheet = [
        (vec![], 0, Room::Start),
        (vec![ready(1)], 0, Room::Start),
        (vec![ready(1), ready(2)], 0, Room::StopFirst(InstanceId(1))),
        (
            vec![seat(1, busy(1)), ready(2)],
            9,
            Room::StopFirst(InstanceId(2)),
        ),
        (vec![own(ready(1)), own(ready(2))], 0, Room::Wait(None)),
        (vec![held(ready(1)), held(ready(2))], 0, Room::Wait(None)),
        (vec![seat(1, draining()), ready(2)], 0, Room::Wait(None)),
        (
            vec![seat(1, draining()), seat(2, draining())],
            1,
            Room::Wait(None),
        ),
        (vec![seat(1, busy(1)), seat(2, busy(1))], 1, Room::Refuse),
    ];
    for (seats, queued, expected) in sheet {
        let seats: Vec<&Seat> = seats.iter().collect();
        assert_eq!(
            room(&seats, &settings(), queued, NOW),
            expected,
            "{seats:?}"
        );
    }
}

/// An instance that was started for a call is not ended for another before that one has begun, unless it does not
/// come; whoever waits looks again then.
#[test]
fn who_waited_for_a_start_is_served_by_it() {
    let at = |seconds| Moment::at(Duration::from_secs(seconds));
    let awaited = |id| {
        let mut seat = seat(id, InstanceState::Ready);
        seat.is_awaited = true;
        seat
    };
    let ready = |id| seat(id, InstanceState::Ready);
    let sheet = [
        (vec![awaited(7), awaited(8)], Some(at(12)), None),
        (vec![awaited(7), seat(8, busy(1))], Some(at(12)), None),
        (vec![awaited(5), awaited(8)], None, Some(5)),
        (vec![awaited(7), ready(8)], None, Some(8)),
    ];
    for (seats, until, stopped) in sheet {
        let seats: Vec<&Seat> = seats.iter().collect();
        let expected = match stopped {
            Some(id) => Room::StopFirst(InstanceId(id)),
            None => Room::Wait(until),
        };
        assert_eq!(room(&seats, &settings(), 0, NOW), expected, "{seats:?}");
        let choice = choose(&[], &seats, &settings(), 0, NOW);
        let expected = stopped.map_or(Choice::Wait(until), |_| Choice::Start);
        assert_eq!(choice, expected, "{seats:?}");
    }
}
