use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn gone() -> Event {
    Event::Gone("z".into())
}

fn all_states() -> Vec<InstanceState> {
    let two = NonZeroUsize::new(2).unwrap();
    vec![
        InstanceState::Starting,
        InstanceState::Handshaking,
        InstanceState::Ready,
        InstanceState::Busy {
            calls: NonZeroUsize::MIN,
        },
        InstanceState::Busy { calls: two },
        InstanceState::Draining {
            calls: 1,
            cause: StopCause::Idle,
        },
        InstanceState::Draining {
            calls: 0,
            cause: StopCause::Idle,
        },
        InstanceState::Stopped {
            cause: StopCause::Idle,
        },
        InstanceState::Failed { why: "x".into() },
    ]
}

fn shown(state: &InstanceState) -> String {
    match state {
        InstanceState::Busy { calls } => format!("busy {calls}"),
        InstanceState::Draining { calls, .. } => format!("draining {calls}"),
        other => other.as_str().to_owned(),
    }
}

/// What every event makes of every state; `!` closes the connection.
#[test]
fn every_event_in_every_state() {
    let events = [
        Event::Spawned(7),
        Event::Agreed(Revision::V2026_07_28),
        Event::Enters,
        Event::Leaves,
        Event::Retire(StopCause::Room),
        Event::Failed("y".into()),
        gone(),
    ];
    let rows: Vec<String> = all_states()
        .into_iter()
        .map(|state| {
            let cells = events.iter().map(|event| {
                let (next, effect) = after(state.clone(), event.clone());
                let mark = if effect.is_some() { "!" } else { "" };
                if next == state && effect.is_none() {
                    String::from("-")
                } else {
                    format!("{}{mark}", shown(&next))
                }
            });
            let cells: Vec<String> = cells.collect();
            format!("{}: {}", shown(&state), cells.join(", "))
        })
        .collect();
    // spawned, agreed, enters, leaves, retire, failed, gone
    let sheet = [
        "starting: handshaking, ready, -, -, draining 0!, failed, failed",
        "handshaking: -, ready, -, -, draining 0!, failed, failed",
        "ready: -, -, busy 1, -, draining 0!, -, failed",
        "busy 1: -, -, busy 2, ready, draining 1, -, failed",
        "busy 2: -, -, busy 3, busy 1, draining 2, -, failed",
        "draining 1: -, -, -, draining 0!, -, -, stopped",
        "draining 0: -, -, -, draining 0!, -, -, stopped",
        "stopped: -, -, -, -, -, -, -",
        "failed: -, -, -, -, -, -, -",
    ];
    assert_eq!(rows, sheet);
}

/// The time of a state is that of its beginning, and what is known stays.
#[test]
fn times_and_facts() {
    let start = Instance::new(InstanceId(1), StartCause::Request, at(1));
    let steps = [
        (Event::Spawned(7), 2),
        (Event::Agreed(Revision::V2026_07_28), 3),
        (Event::Enters, 4),
        (Event::Enters, 5),
        (Event::Leaves, 6),
    ];
    let busy = steps.into_iter().fold(start, |instance, (event, second)| {
        instance.handle(event, at(second)).next
    });
    assert_eq!((busy.since, busy.started, busy.calls()), (at(4), at(1), 1));
    assert_eq!(
        (busy.pid, busy.revision),
        (Some(7), Some(Revision::V2026_07_28))
    );
    let ready = busy.handle(Event::Leaves, at(7)).next;
    assert_eq!((ready.since, ready.is_open()), (at(7), true));
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => Just(Event::Spawned(1)),
        1 => Just(Event::Agreed(Revision::V2026_07_28)),
        3 => Just(Event::Enters),
        3 => Just(Event::Leaves),
        1 => Just(Event::Retire(StopCause::Idle)),
        1 => Just(Event::Failed("".into())),
        1 => Just(gone()),
    ]
}

proptest! {
    /// A simple model: a counter that moves only while the instance is open or drains, and one close.
    #[test]
    fn calls_are_counted_and_it_closes_when_empty(events in proptest::collection::vec(event(), 0..60)) {
        let mut instance = Instance::new(InstanceId(1), StartCause::Request, Moment::ZERO);
        let mut calls = 0_usize;
        for event in events {
            let before = instance.clone();
            let Step { next, effect } = instance.handle(event.clone(), Moment::ZERO);
            match event {
                Event::Enters if before.is_open() => calls += 1,
                Event::Leaves => calls = calls.saturating_sub(1),
                Event::Gone(_) => calls = 0,
                _ => {}
            }
            prop_assert_eq!(next.calls(), calls);
            if effect.is_some() {
                prop_assert_eq!(next.state.as_str(), "draining");
                prop_assert_eq!(calls, 0);
            }
            prop_assert!(!before.is_over() || next == before);
            instance = next;
        }
    }
}
