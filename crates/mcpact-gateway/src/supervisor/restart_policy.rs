//! Restart policy of one server: exponential backoff, then a circuit breaker. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use mcpact_config::Restarts;
use mcpact_engine::time::Moment;

/// Uptime after which an instance is stable and earlier failures are forgotten.
pub(super) const STABLE_AFTER: Duration = Duration::from_secs(10);

/// Longest backoff that callers wait for. After a longer one they are refused at once.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Limit of a suspension, as a multiple of the first one.
const MAX_SUSPENSION_FACTOR: u32 = 16;

/// The restart policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestartPolicy {
    settings: Restarts,
    state: State,
    /// Times of recent failures, at most as many as suspend the server.
    failures: VecDeque<Moment>,
}

/// ```text
///            failed                       too many failures
///  Normal ───────────▶ BackingOff ───────────────────────────▶ Suspended ◀──────┐
///   ▲                    │  ▲ failed                              │ start after  │ failed
///   │       stable       │  └─ (start after the backoff)          ▼ suspension   │
///   ├────────────────────┘                                     Probing ─────────┤
///   │                                                              │ started      │
///   │                             stable                           ▼              │
///   └────────────────────────────────────────────────────────── Probation ──────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No recent failures.
    Normal,
    /// No starts for a short time.
    BackingOff {
        /// End of the backoff.
        until: Moment,
    },
    /// No starts for a long time.
    Suspended {
        /// Start of the suspension.
        since: Moment,
        /// End of the suspension.
        until: Moment,
        /// Number of earlier suspensions in a row.
        round: u32,
    },
    /// One start is in progress after a suspension; no other is allowed.
    Probing {
        /// Number of earlier suspensions in a row.
        round: u32,
    },
    /// That instance runs, and must become stable.
    Probation {
        /// Number of earlier suspensions in a row.
        round: u32,
    },
}

/// Decision about a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartDecision {
    /// Start now.
    Start,
    /// Wait for the end of a short backoff.
    Wait {
        /// End of the backoff.
        until: Moment,
    },
    /// Wait for the outcome of the start in progress.
    AwaitAttempt,
    /// Do not wait.
    Refuse {
        /// Time of the next start.
        until: Moment,
    },
}

/// Outcome of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The instance is ready.
    Started,
    /// The instance is stable.
    Stable,
    /// The instance failed to start, or failed later. The random number spreads the backoff.
    Failed(u32),
    /// The gateway cancelled the start.
    Cancelled,
}

impl RestartPolicy {
    /// Replaces the settings. Recorded failures still count.
    pub(super) fn update_settings(&mut self, settings: Restarts) {
        self.settings = settings;
    }

    pub(super) const fn new(settings: Restarts) -> Self {
        Self {
            settings,
            state: State::Normal,
            failures: VecDeque::new(),
        }
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Returns the number of recent failures.
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Returns the end of the backoff or suspension.
    pub(super) const fn next_start(&self) -> Option<Moment> {
        match self.state {
            State::BackingOff { until } | State::Suspended { until, .. } => Some(until),
            State::Normal | State::Probing { .. } | State::Probation { .. } => None,
        }
    }

    /// Decides about a start. A caller that gets [`StartDecision::Start`] must start an instance.
    pub(super) fn request_start(&mut self, now: Moment) -> StartDecision {
        match self.state {
            State::Normal | State::Probation { .. } => StartDecision::Start,
            State::BackingOff { until } if now >= until => StartDecision::Start,
            State::BackingOff { until } if until.since(now) <= MAX_WAIT => {
                StartDecision::Wait { until }
            }
            State::BackingOff { until } => StartDecision::Refuse { until },
            State::Suspended { until, round, .. } if now >= until => {
                self.state = State::Probing { round };
                StartDecision::Start
            }
            State::Suspended { until, .. } => StartDecision::Refuse { until },
            State::Probing { .. } => StartDecision::AwaitAttempt,
        }
    }

    /// Applies an outcome.
    pub(super) fn handle(self, outcome: Outcome, now: Moment) -> Self {
        match (self.state, outcome) {
            (State::Probing { round }, Outcome::Started) => {
                self.in_state(State::Probation { round })
            }
            (_, Outcome::Started) => self,
            (State::Probing { .. }, Outcome::Stable) => self,
            (_, Outcome::Stable) => Self::new(self.settings),
            (State::Probing { round }, Outcome::Cancelled) => {
                // The next caller may start at once.
                self.in_state(State::Suspended {
                    since: now,
                    until: now,
                    round,
                })
            }
            (_, Outcome::Cancelled) => self,
            (State::Probing { round } | State::Probation { round }, Outcome::Failed(random)) => {
                self.suspended(round.saturating_add(1), random, now)
            }
            // The instance was started before the suspension.
            (State::Suspended { .. }, Outcome::Failed(_)) => self,
            (State::Normal | State::BackingOff { .. }, Outcome::Failed(random)) => {
                self.failed(random, now)
            }
        }
    }

    /// Forgets all failures.
    pub(super) fn reset(self) -> Self {
        Self::new(self.settings)
    }

    fn in_state(self, state: State) -> Self {
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
        self.in_state(State::BackingOff { until })
    }

    fn suspended(self, round: u32, random: u32, now: Moment) -> Self {
        let first = self.settings.suspend;
        let limit = first.saturating_mul(MAX_SUSPENSION_FACTOR);
        let pause = doubled(first, round).min(limit);
        let until = now.after(jittered(pause, random));
        self.in_state(State::Suspended {
            since: now,
            until,
            round,
        })
    }
}

/// Returns the backoff after a number of failures.
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

/// Returns between half of the pause and all of it, so that servers that failed together do not restart together.
fn jittered(pause: Duration, random: u32) -> Duration {
    let half = pause / 2;
    let share = half.as_nanos() * u128::from(random) / u128::from(u32::MAX);
    half.saturating_add(Duration::from_nanos(
        u64::try_from(share).unwrap_or(u64::MAX),
    ))
}

#[cfg(test)]
mod tests;
