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
    Cancelled,
}

impl RestartPolicy {
    fn handle(mut self, outcome: Outcome, now: Moment) -> Self {
        match outcome {
            Outcome::Started => self.started(),
            Outcome::Stable => self.stable(),
            Outcome::Failed(random) => self.failed(random, now),
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

#[test]
fn callers_wait_for_a_short_backoff_and_are_refused_after_a_long_one() {
    assert_eq!(after_failures(0).request_start(at(0)), Start);
    assert_eq!(
        after_failures(1).request_start(at(0)),
        Wait { until: at(1) }
    );
    assert_eq!(after_failures(1).request_start(at(1)), Start);
    assert_eq!(
        after_failures(2).request_start(at(1)),
        Wait { until: at(3) }
    );
    assert_eq!(
        after_failures(3).request_start(at(2)),
        Refuse { until: at(6) }
    );
    assert_eq!(
        after_failures(5).request_start(at(5)),
        Refuse { until: at(64) }
    );
}

#[test]
fn one_start_is_attempted_after_a_suspension() {
    let mut policy = after_failures(5);
    assert_eq!(policy.request_start(at(64)), Start);
    assert_eq!(policy.request_start(at(64)), AwaitAttempt);
    let again = policy.clone().handle(Outcome::Failed(NO_JITTER), at(65));
    let longer = State::Suspended {
        since: at(65),
        until: at(65 + 120),
        round: 1,
    };
    assert_eq!(again.state(), longer);
    let mut cancelled = policy.clone().handle(Outcome::Cancelled, at(65));
    assert_eq!(cancelled.request_start(at(65)), Start);
    let mut probation = policy.handle(Outcome::Started, at(66));
    assert_eq!(probation.request_start(at(66)), Start);
    let normal = probation.clone().handle(Outcome::Stable, at(80));
    assert_eq!(normal, RestartPolicy::new(SETTINGS));
    let mut failed = probation.handle(Outcome::Failed(NO_JITTER), at(70));
    assert!(matches!(failed.state(), State::Suspended { round: 1, .. }));
    failed.reset();
    assert_eq!(failed.request_start(at(70)), Start);
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
        if policy.request_start(now) == Start {
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
        any::<u32>().prop_map(Outcome::Failed),
    ];
    let act = prop_oneof![Just(Act::RequestStart), outcome.prop_map(Act::Apply)];
    proptest::collection::vec((0_u64..90_000, act), 0..200)
}

proptest! {
    /// The number of failures is bounded, and every refusal ends with an allowed start within the maximum suspension.
    #[test]
    fn every_refusal_ends(acts in acts()) {
        let limit = SETTINGS.suspend * MAX_SUSPENSION_FACTOR;
        let mut now = Moment::ZERO;
        let mut policy = RestartPolicy::new(SETTINGS);
        for (wait, act) in acts {
            now = now.after(Duration::from_millis(wait));
            match act {
                Act::RequestStart => { policy.request_start(now); }
                Act::Apply(outcome) => policy = policy.handle(outcome, now),
            }
            prop_assert!(policy.failures() <= SETTINGS.failures as usize);
            match policy.clone().request_start(now) {
                Start => {}
                AwaitAttempt => {
                    let open = [Outcome::Started, Outcome::Cancelled]
                        .map(|outcome| policy.clone().handle(outcome, now).request_start(now));
                    prop_assert_eq!(open, [Start; 2]);
                }
                Wait { until } | Refuse { until } => {
                    prop_assert!(until > now && until.since(now) <= limit);
                    prop_assert_eq!(policy.clone().request_start(until), Start);
                }
            }
        }
    }
}
