use proptest::prelude::*;

use super::StartDecision::{AwaitAttempt, Refuse, Start, Wait};
use super::*;

const SETTINGS: Restarts = Restarts {
    backoff: Duration::from_secs(1),
    backoff_max: Duration::from_secs(4),
    failures: 5,
    window: Duration::from_secs(100),
    suspend: Duration::from_secs(60),
};

/// Longest time that callers wait.
const PATIENCE: Duration = Duration::from_secs(3);

/// Random number that does not shorten a pause.
const NO_JITTER: u32 = u32::MAX;

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

/// Outcome of a start.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Started,
    Stable,
    Failed(u32),
    Ended,
    Cancelled,
}

impl RestartPolicy {
    fn request(&mut self, now: Moment) -> StartDecision {
        self.request_start(PATIENCE, now)
    }

    fn handle(mut self, outcome: Outcome, now: Moment) -> Self {
        match outcome {
            Outcome::Started => self.started(),
            Outcome::Stable => self.stable(),
            Outcome::Failed(random) => self.failed(random, now),
            Outcome::Ended => self.ended(now),
            Outcome::Cancelled => self.cancelled(now),
        }
        self
    }
}

fn after_failures(times: u64) -> RestartPolicy {
    (0..times).fold(RestartPolicy::new(SETTINGS), |policy, second| {
        policy.handle(Outcome::Failed(NO_JITTER), at(second))
    })
}

#[test]
fn backoff_doubles_until_the_server_is_suspended() {
    let states: Vec<State> = (1..=5).map(|times| after_failures(times).state()).collect();
    let backing_off = |until| State::BackingOff { until: at(until) };
    let expected = [1, 1 + 2, 2 + 4, 3 + 4].map(backing_off);
    assert_eq!(states[..4], expected);
    let suspended = State::Suspended {
        since: at(4),
        until: at(64),
        round: 0,
    };
    assert_eq!(states[4], suspended);
}

/// A caller waits only for what it can get in time.
#[test]
fn callers_wait_for_a_short_backoff_and_are_refused_during_a_long_one() {
    assert_eq!(after_failures(0).request(at(0)), Start);
    assert_eq!(after_failures(1).request(at(0)), Wait { until: at(1) });
    assert_eq!(after_failures(1).request(at(1)), Start);
    assert_eq!(after_failures(2).request(at(1)), Wait { until: at(3) });
    assert_eq!(after_failures(3).request(at(2)), Refuse { until: at(6) });
    assert_eq!(
        after_failures(3).request_start(2 * PATIENCE, at(2)),
        Wait { until: at(6) }
    );
    assert_eq!(after_failures(5).request(at(5)), Refuse { until: at(64) });
}

#[test]
fn one_start_is_attempted_after_a_suspension() {
    let mut policy = after_failures(5);
    assert_eq!(policy.request(at(64)), Start);
    assert_eq!(policy.request(at(64)), AwaitAttempt);
    let again = policy.clone().handle(Outcome::Failed(NO_JITTER), at(65));
    let longer = State::Suspended {
        since: at(65),
        until: at(65 + 120),
        round: 1,
    };
    assert_eq!(again.state(), longer);
    let mut cancelled = policy.clone().handle(Outcome::Cancelled, at(65));
    assert_eq!(cancelled.request(at(65)), Start);
    let mut probation = policy.handle(Outcome::Started, at(66));
    assert_eq!(probation.request(at(66)), Start);
    let normal = probation.clone().handle(Outcome::Stable, at(80));
    assert_eq!((normal.state(), normal.failures()), (State::Normal, 0));
    let mut failed = probation.handle(Outcome::Failed(NO_JITTER), at(70));
    assert!(matches!(failed.state(), State::Suspended { round: 1, .. }));
    failed.reset();
    assert_eq!(failed.request(at(70)), Start);
}

/// Starts as many instances as the policy allows at once.
fn starts_at(policy: &mut RestartPolicy, now: Moment) -> usize {
    (0..1000)
        .take_while(|_| policy.request(now) == Start)
        .count()
}

/// An instance that has answered calls is replaced at once when it ends. At most ten restarts start in ten seconds,
/// however often instances end.
#[test]
fn rate_of_restarts_is_limited() {
    let mut policy = RestartPolicy::new(SETTINGS);
    let mut restarts = Vec::new();
    for tick in 0..600 {
        let now = Moment::at(Duration::from_millis(100) * tick);
        if policy.request(now) == Start {
            restarts.push(now);
            policy = policy
                .handle(Outcome::Started, now)
                .handle(Outcome::Ended, now);
        }
        assert_eq!((policy.state(), policy.failures()), (State::Normal, 0));
    }
    // The first start replaces no instance.
    assert_eq!(
        restarts[..11].iter().filter(|now| **now < at(2)).count(),
        11
    );
    for window in restarts[1..].windows(MAX_RESTARTS + 1) {
        assert!(window[MAX_RESTARTS].since(window[0]) >= RESTART_WINDOW);
    }
    assert_eq!(restarts.len(), 1 + 60, "no longer than necessary");
}

#[test]
fn instances_that_ended_together_are_replaced_ten_at_a_time() {
    let mut policy = RestartPolicy::new(SETTINGS);
    for _ in 0..25 {
        policy = policy.handle(Outcome::Ended, at(0));
    }
    assert!(policy.has_failed());
    assert_eq!(starts_at(&mut policy, at(0)), 10);
    assert_eq!(policy.request(at(1)), Refuse { until: at(10) });
    assert_eq!(policy.request(at(7)), Wait { until: at(10) });
    assert_eq!(policy.next_start(), Some(at(10)));
    assert_eq!(starts_at(&mut policy, at(10)), 10);
    // The rest is replaced, and then starts are not restarts.
    assert_eq!(starts_at(&mut policy, at(20)), 1000);
    assert!(!policy.has_failed());
}

/// An unused instance does not limit later starts for ever, and a user can end the limit.
#[test]
fn unreplaced_instances_are_forgotten() {
    let mut policy = RestartPolicy::new(SETTINGS);
    for _ in 0..25 {
        policy = policy.handle(Outcome::Ended, at(0));
    }
    assert_eq!(starts_at(&mut policy, at(0)), 10);
    let mut reset = policy.clone();
    reset.reset();
    assert_eq!(starts_at(&mut reset, at(1)), 1000);
    assert_eq!(starts_at(&mut policy, at(100)), 1000);
}

/// A server that answers between its failures is never suspended; one that ends before it answers is.
#[test]
fn answer_resets_the_backoff() {
    let cases = [
        (&[Outcome::Ended; 8][..], State::Normal),
        (
            &[Outcome::Failed(NO_JITTER), Outcome::Stable][..],
            State::Normal,
        ),
        (
            &[Outcome::Stable, Outcome::Failed(NO_JITTER)][..],
            State::BackingOff { until: at(1) },
        ),
        (
            &[Outcome::Failed(NO_JITTER), Outcome::Ended][..],
            State::BackingOff { until: at(1) },
        ),
        (
            &[Outcome::Failed(NO_JITTER); 5][..],
            State::Suspended {
                since: at(0),
                until: at(60),
                round: 0,
            },
        ),
    ];
    for (outcomes, expected) in cases {
        let policy = RestartPolicy::new(SETTINGS);
        let policy = outcomes
            .iter()
            .fold(policy, |policy, outcome| policy.handle(*outcome, at(0)));
        assert_eq!(policy.state(), expected, "{outcomes:?}");
    }
}

/// Failures outside the window do not count, and a stable instance clears them.
#[test]
fn old_failures_are_forgotten() {
    let later = after_failures(4).handle(Outcome::Failed(NO_JITTER), at(200));
    assert_eq!(later.state(), State::BackingOff { until: at(201) });
    let normal = after_failures(4).handle(Outcome::Stable, at(5));
    assert_eq!((normal.state(), normal.failures()), (State::Normal, 0));
}

/// A server that never starts is started at most twelve times in five minutes, even with constant calls and the
/// shortest possible backoff.
#[test]
fn crash_loop_is_limited() {
    let settings = Restarts {
        backoff: Duration::from_millis(100),
        suspend: Duration::from_secs(30),
        ..SETTINGS
    };
    let mut policy = RestartPolicy::new(settings);
    let mut starts = 0;
    for tick in 0..30_000 {
        let now = Moment::at(Duration::from_millis(10) * tick);
        if policy.request(now) == Start {
            starts += 1;
            policy = policy.handle(Outcome::Failed(0), now);
        }
    }
    assert!((5..=12).contains(&starts), "{starts}");
}

#[test]
fn pauses_between_recovery_attempts_double_up_to_the_limit() {
    let mut policy = RestartPolicy::new(Restarts {
        backoff_max: Duration::from_secs(5),
        ..SETTINGS
    });
    let fresh = policy.clone();
    assert_eq!(policy.next_start(), None);
    policy.schedule_recovery(NO_JITTER, at(0));
    assert_eq!(policy.next_start(), Some(at(1)));
    policy.schedule_recovery(NO_JITTER, at(1));
    assert_eq!(policy.next_start(), Some(at(1)), "calls do not postpone it");
    let mut now = at(1);
    for pause in [2, 4, 5, 5] {
        policy.recovery_skipped(NO_JITTER, now);
        now = now.after(Duration::from_secs(pause));
        assert_eq!(policy.next_start(), Some(now));
    }
    policy.reset_recovery();
    assert_eq!(policy, fresh);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    RequestStart,
    Apply(Outcome),
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let outcome = prop_oneof![
        Just(Outcome::Started),
        Just(Outcome::Stable),
        Just(Outcome::Cancelled),
        Just(Outcome::Ended),
        any::<u32>().prop_map(Outcome::Failed),
    ];
    let act = prop_oneof![Just(Act::RequestStart), outcome.prop_map(Act::Apply)];
    proptest::collection::vec((0_u64..90_000, act), 0..200)
}

proptest! {
    /// The numbers of failures and restarts are bounded, and every refusal ends with an allowed start within the
    /// maximum suspension.
    #[test]
    fn every_refusal_ends(acts in acts()) {
        let limit = SETTINGS.suspend * MAX_SUSPENSION_FACTOR;
        let mut now = Moment::ZERO;
        let mut policy = RestartPolicy::new(SETTINGS);
        for (wait, act) in acts {
            now = now.after(Duration::from_millis(wait));
            match act {
                Act::RequestStart => { policy.request(now); }
                Act::Apply(outcome) => policy = policy.handle(outcome, now),
            }
            prop_assert!(policy.failures() <= SETTINGS.failures as usize);
            prop_assert!(policy.restarts.len() <= MAX_RESTARTS);
            match policy.clone().request(now) {
                Start => {}
                AwaitAttempt => {
                    let later = now.after(RESTART_WINDOW);
                    let open = [Outcome::Started, Outcome::Cancelled]
                        .map(|outcome| policy.clone().handle(outcome, now).request(later));
                    prop_assert_eq!(open, [Start; 2]);
                }
                Wait { until } | Refuse { until } => {
                    prop_assert!(until > now && until.since(now) <= limit);
                    prop_assert_eq!(policy.clone().request(until), Start);
                }
                StartDecision::Unstartable => prop_assert!(false, "no outcome leads to it"),
            }
        }
    }
}

/// Time alone cannot make a missing program start.
#[test]
fn unstartable_program_is_not_retried() {
    for failures in [0, 1, 5] {
        let mut policy = after_failures(failures);
        policy.unstartable();
        let late = policy.clone().handle(Outcome::Failed(NO_JITTER), at(9));
        for mut policy in [policy.clone(), late] {
            for now in [0, 100, 100_000] {
                assert_eq!(policy.request(at(now)), StartDecision::Unstartable);
            }
            assert_eq!((policy.next_start(), policy.failures()), (None, 0));
        }
        policy.reset();
        assert_eq!(policy.request(at(10)), Start);
    }
}
