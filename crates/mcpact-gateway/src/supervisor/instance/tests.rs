use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn disconnected() -> Event {
    Event::Disconnected("z".into())
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

/// Transition table; `!` closes the connection.
#[test]
fn transitions_follow_the_table() {
    let events = [
        Event::Spawned(7),
        Event::Ready(Revision::V2026_07_28),
        Event::CallStarted,
        Event::CallEnded,
        Event::Retire(StopCause::Room),
        Event::StartFailed("y".into()),
        disconnected(),
    ];
    let rows: Vec<String> = all_states()
        .into_iter()
        .map(|state| {
            let cells = events.iter().map(|event| {
                let (next, closes) = after(state.clone(), event.clone());
                let mark = if closes { "!" } else { "" };
                if next == state && !closes {
                    String::from("-")
                } else {
                    format!("{}{mark}", shown(&next))
                }
            });
            let cells: Vec<String> = cells.collect();
            format!("{}: {}", shown(&state), cells.join(", "))
        })
        .collect();
    // spawned, ready, call started, call ended, retire, start failed, disconnected
    let expected = [
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
    assert_eq!(rows, expected);
}

/// `since` is the time of the last state change; process id and revision are kept.
#[test]
fn instance_keeps_times_and_facts() {
    let mut instance = Instance::new(InstanceId(1), StartCause::Request, at(1));
    for (event, second) in [
        (Event::Spawned(7), 2),
        (Event::Ready(Revision::V2026_07_28), 3),
        (Event::CallStarted, 4),
        (Event::CallStarted, 5),
        (Event::CallEnded, 6),
    ] {
        assert!(!instance.handle(event, at(second)));
    }
    assert_eq!((instance.since, instance.started), (at(4), at(1)));
    assert_eq!((instance.calls(), instance.pid), (1, Some(7)));
    assert_eq!(instance.revision, Some(Revision::V2026_07_28));
    let _ = instance.handle(Event::CallEnded, at(7));
    assert_eq!((instance.since, instance.is_open()), (at(7), true));
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => Just(Event::Spawned(1)),
        1 => Just(Event::Ready(Revision::V2026_07_28)),
        3 => Just(Event::CallStarted),
        3 => Just(Event::CallEnded),
        1 => Just(Event::Retire(StopCause::Idle)),
        1 => Just(Event::StartFailed("".into())),
        1 => Just(disconnected()),
    ]
}

proptest! {
    /// Model: a counter that changes only while the instance is open or draining.
    #[test]
    fn instance_counts_calls_and_closes_when_drained(events in proptest::collection::vec(event(), 0..60)) {
        let mut instance = Instance::new(InstanceId(1), StartCause::Request, Moment::ZERO);
        let mut calls = 0_usize;
        for event in events {
            let before = instance.clone();
            let closes = instance.handle(event.clone(), Moment::ZERO);
            match event {
                Event::CallStarted if before.is_open() => calls += 1,
                Event::CallEnded => calls = calls.saturating_sub(1),
                Event::Disconnected(_) => calls = 0,
                _ => {}
            }
            prop_assert_eq!(instance.calls(), calls);
            if closes {
                prop_assert_eq!(instance.state.as_str(), "draining");
                prop_assert_eq!(calls, 0);
            }
            prop_assert!(!before.is_over() || instance == before);
        }
    }
}
