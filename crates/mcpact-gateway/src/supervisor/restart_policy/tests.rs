use proptest::prelude::*;

use super::*;

const SETTINGS: Restarts = Restarts {
    backoff: Duration::from_secs(1),
    backoff_max: Duration::from_secs(4),
    failures: 5,
    window: Duration::from_secs(100),
    suspend: Duration::from_secs(60),
};

/// No pause is shortened.
const WHOLE: u32 = u32::MAX;

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn fallen(times: u64) -> RestartPolicy {
    (0..times).fold(RestartPolicy::new(SETTINGS), |policy, second| {
        policy.handle(Outcome::Failed(WHOLE), at(second))
    })
}

/// Pauses double up to the longest, and too many failures suspend.
#[test]
fn pauses_double_until_it_is_suspended() {
    let states: Vec<State> = (1..=5).map(|times| fallen(times).state()).collect();
    let pausing = |until| State::Pausing { until: at(until) };
    let expected = [pausing(1), pausing(1 + 2), pausing(2 + 4), pausing(3 + 4)];
    assert_eq!(states[..4], expected);
    let suspended = State::Suspended {
        since: at(4),
        until: at(64),
        round: 0,
    };
    assert_eq!(states[4], suspended);
}

/// A short pause is waited for, a longer one is told at once.
#[test]
fn a_short_pause_is_worth_waiting_for() {
    assert_eq!(fallen(0).ask(at(0)), Verdict::Start);
    assert_eq!(fallen(1).ask(at(0)), Verdict::Wait { until: at(1) });
    assert_eq!(fallen(1).ask(at(1)), Verdict::Start);
    assert_eq!(fallen(2).ask(at(1)), Verdict::Wait { until: at(3) });
    assert_eq!(fallen(3).ask(at(2)), Verdict::Refuse { until: at(6) });
    assert_eq!(fallen(5).ask(at(5)), Verdict::Refuse { until: at(64) });
}

/// After a suspension one is tried, and the others wait for what comes of it.
#[test]
fn one_is_tried_after_a_suspension() {
    let mut policy = fallen(5);
    assert_eq!(policy.ask(at(64)), Verdict::Start);
    assert_eq!(policy.ask(at(64)), Verdict::Follow);
    let again = policy.clone().handle(Outcome::Failed(WHOLE), at(65));
    let longer = State::Suspended {
        since: at(65),
        until: at(65 + 120),
        round: 1,
    };
    assert_eq!(again.state(), longer);
    let mut given_up = policy.clone().handle(Outcome::GivenUp, at(65));
    assert_eq!(given_up.ask(at(65)), Verdict::Start);
    let mut proving = policy.handle(Outcome::Agreed, at(66));
    assert_eq!(proving.ask(at(66)), Verdict::Start);
    let calm = proving.clone().handle(Outcome::Lasted, at(80));
    assert_eq!(calm, RestartPolicy::new(SETTINGS));
    let fell = proving.handle(Outcome::Failed(WHOLE), at(70));
    assert!(matches!(fell.state(), State::Suspended { round: 1, .. }));
    assert_eq!(fell.reset().ask(at(70)), Verdict::Start);
}

/// Failures that are long ago do not count, and an instance that lasted makes them forgotten.
#[test]
fn old_failures_are_forgotten() {
    let later = fallen(4).handle(Outcome::Failed(WHOLE), at(200));
    assert_eq!(later.state(), State::Pausing { until: at(201) });
    let calm = fallen(4).handle(Outcome::Lasted, at(5));
    assert_eq!((calm.state(), calm.failures()), (State::Calm, 0));
}

/// A server that never starts is started at most twelve times in five minutes,
/// even if somebody asks all the time and every pause is as short as it can be.
#[test]
fn a_crash_loop_is_slow() {
    let settings = Restarts {
        backoff: Duration::from_millis(100),
        suspend: Duration::from_secs(30),
        ..SETTINGS
    };
    let mut policy = RestartPolicy::new(settings);
    let mut starts = 0;
    for tick in 0..30_000 {
        let now = Moment::at(Duration::from_millis(10) * tick);
        if policy.ask(now) == Verdict::Start {
            starts += 1;
            policy = policy.handle(Outcome::Failed(0), now);
        }
    }
    assert!((5..=12).contains(&starts), "{starts}");
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Ask,
    Tell(Outcome),
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let outcome = prop_oneof![
        Just(Outcome::Agreed),
        Just(Outcome::Lasted),
        Just(Outcome::GivenUp),
        any::<u32>().prop_map(Outcome::Failed),
    ];
    let act = prop_oneof![Just(Act::Ask), outcome.prop_map(Act::Tell)];
    proptest::collection::vec((0_u64..90_000, act), 0..200)
}

proptest! {
    /// Whatever happens: the failures are bounded, a refusal has an end that is not too far away, and at
    /// that end it may be started.
    #[test]
    fn nothing_is_refused_for_ever(acts in acts()) {
        let longest = SETTINGS.suspend * LONGEST_SUSPENSION;
        let mut now = Moment::ZERO;
        let mut policy = RestartPolicy::new(SETTINGS);
        for (wait, act) in acts {
            now = now.after(Duration::from_millis(wait));
            match act {
                Act::Ask => { policy.ask(now); }
                Act::Tell(outcome) => policy = policy.handle(outcome, now),
            }
            prop_assert!(policy.failures() <= SETTINGS.failures as usize);
            match policy.clone().ask(now) {
                Verdict::Start => {}
                Verdict::Follow => {
                    let open = [Outcome::Agreed, Outcome::GivenUp]
                        .map(|outcome| policy.clone().handle(outcome, now).ask(now));
                    prop_assert_eq!(open, [Verdict::Start; 2]);
                }
                Verdict::Wait { until } | Verdict::Refuse { until } => {
                    prop_assert!(until > now && until.since(now) <= longest);
                    prop_assert_eq!(policy.clone().ask(until), Verdict::Start);
                }
            }
        }
    }
}
