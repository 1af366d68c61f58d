//! When a server that failed may be started again.

use std::collections::VecDeque;
use std::time::Duration;

use mcpact_config::Restarts;
use mcpact_engine::time::Moment;

/// An instance that lived this long was a good one: what failed before it is forgotten.
pub(crate) const LASTED: Duration = Duration::from_secs(10);

/// A pause that is waited for rather than told.
const SHORT: Duration = Duration::from_secs(2);

/// A suspension is at most this many times as long as the first.
const LONGEST_SUSPENSION: u32 = 16;

/// The breaker of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestartPolicy {
    settings: Restarts,
    state: State,
    /// When it failed lately, at most as often as suspends it.
    failures: VecDeque<Moment>,
}

/// ```text
///          failed                     failed too often
///  Calm ───────────▶ Pausing ───────────────────────────▶ Suspended ◀───────┐
///   ▲                  │  ▲ failed                           │ asked, later │ failed
///   │      lasted      │  │                                  ▼              │
///   ├──────────────────┘  └─ (asked after the pause)       Trying ──────────┤
///   │                                                        │ agreed       │
///   │                            lasted                      ▼              │
///   └───────────────────────────────────────────────────── Proving ─────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing failed lately.
    Calm,
    /// It is left alone for a moment.
    Pausing {
        /// Until then.
        until: Moment,
    },
    /// It is left alone for long.
    Suspended {
        /// Since then.
        since: Moment,
        /// Until then.
        until: Moment,
        /// How often in a row.
        round: u32,
    },
    /// One instance is started after a suspension; nobody else may start one.
    Trying {
        /// How often it was suspended in a row.
        round: u32,
    },
    /// That instance has agreed, and must last.
    Proving {
        /// How often it was suspended in a row.
        round: u32,
    },
}

/// Whether it may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Yes.
    Start,
    /// In a moment, which is worth waiting for.
    Wait {
        /// The moment.
        until: Moment,
    },
    /// Somebody is trying; what comes of it is worth waiting for.
    Follow,
    /// Not soon.
    Refuse {
        /// When it may be tried again.
        until: Moment,
    },
}

/// What happened to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is ready.
    Agreed,
    /// It lived long enough.
    Lasted,
    /// It did not start, or did not last. The number is random.
    Failed(u32),
    /// Its start was given up for reasons of ours.
    GivenUp,
}

impl RestartPolicy {
    /// Other limits from here on; what failed counts as before.
    pub(crate) fn retune(&mut self, settings: Restarts) {
        self.settings = settings;
    }

    pub(crate) const fn new(settings: Restarts) -> Self {
        Self {
            settings,
            state: State::Calm,
            failures: VecDeque::new(),
        }
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// How many failures count.
    pub(crate) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Until when it is left alone, if it is.
    pub(crate) const fn free_at(&self) -> Option<Moment> {
        match self.state {
            State::Pausing { until } | State::Suspended { until, .. } => Some(until),
            State::Calm | State::Trying { .. } | State::Proving { .. } => None,
        }
    }

    /// Whether an instance may be started; whoever hears [`Verdict::Start`] starts one.
    pub(crate) fn ask(&mut self, now: Moment) -> Verdict {
        match self.state {
            State::Calm | State::Proving { .. } => Verdict::Start,
            State::Pausing { until } if now >= until => Verdict::Start,
            State::Pausing { until } if until.since(now) <= SHORT => Verdict::Wait { until },
            State::Pausing { until } => Verdict::Refuse { until },
            State::Suspended { until, round, .. } if now >= until => {
                self.state = State::Trying { round };
                Verdict::Start
            }
            State::Suspended { until, .. } => Verdict::Refuse { until },
            State::Trying { .. } => Verdict::Follow,
        }
    }

    /// Goes on after what happened.
    pub(crate) fn handle(self, outcome: Outcome, now: Moment) -> Self {
        match (self.state, outcome) {
            (State::Trying { round }, Outcome::Agreed) => self.at(State::Proving { round }),
            (_, Outcome::Agreed) => self,
            (State::Trying { .. }, Outcome::Lasted) => self,
            (_, Outcome::Lasted) => Self::new(self.settings),
            (State::Trying { round }, Outcome::GivenUp) => {
                // The next one may try at once.
                self.at(State::Suspended {
                    since: now,
                    until: now,
                    round,
                })
            }
            (_, Outcome::GivenUp) => self,
            (State::Trying { round } | State::Proving { round }, Outcome::Failed(random)) => {
                self.suspended(round.saturating_add(1), random, now)
            }
            // One that was started before the suspension.
            (State::Suspended { .. }, Outcome::Failed(_)) => self,
            (State::Calm | State::Pausing { .. }, Outcome::Failed(random)) => {
                self.failed(random, now)
            }
        }
    }

    /// Forgets everything, because a person wants it tried again.
    pub(crate) fn reset(self) -> Self {
        Self::new(self.settings)
    }

    fn at(self, state: State) -> Self {
        Self { state, ..self }
    }

    fn failed(mut self, random: u32, now: Moment) -> Self {
        let window = self.settings.window;
        self.failures.retain(|failure| now.since(*failure) < window);
        self.failures.push_back(now);
        let count = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
        if count >= self.settings.failures {
            return self.suspended(0, random, now);
        }
        let until = now.after(pause(&self.settings, count - 1, random));
        self.at(State::Pausing { until })
    }

    fn suspended(self, round: u32, random: u32, now: Moment) -> Self {
        let first = self.settings.suspend;
        let longest = first.saturating_mul(LONGEST_SUSPENSION);
        let pause = doubled(first, round).min(longest);
        let until = now.after(jittered(pause, random));
        self.at(State::Suspended {
            since: now,
            until,
            round,
        })
    }
}

/// The pause before the next start, after so many others.
pub(super) fn pause(restarts: &Restarts, times: u32, random: u32) -> Duration {
    jittered(
        doubled(restarts.backoff, times).min(restarts.backoff_max),
        random,
    )
}

fn doubled(pause: Duration, times: u32) -> Duration {
    let factor = 1_u32.checked_shl(times).unwrap_or(u32::MAX);
    pause.saturating_mul(factor)
}

/// Between half of the pause and the whole, so that servers that fell together do not get up together.
fn jittered(pause: Duration, random: u32) -> Duration {
    let half = pause / 2;
    let share = half.as_nanos() * u128::from(random) / u128::from(u32::MAX);
    half.saturating_add(Duration::from_nanos(
        u64::try_from(share).unwrap_or(u64::MAX),
    ))
}

#[cfg(test)]
mod tests;
