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
    /// Number of skipped recovery attempts since the last start.
    skipped: u32,
    /// Time of the next recovery attempt, if one was scheduled or skipped.
    recovery_due: Option<Moment>,
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
            skipped: 0,
            recovery_due: None,
        }
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Returns the number of recent failures.
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// Returns the earliest time of a start without a call.
    pub(super) fn next_start(&self) -> Option<Moment> {
        let pause = match self.state {
            State::BackingOff { until } | State::Suspended { until, .. } => Some(until),
            State::Normal | State::Probing { .. } | State::Probation { .. } => None,
        };
        pause.max(self.recovery_due)
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

    /// Records that an instance is ready.
    pub(super) const fn started(&mut self) {
        if let State::Probing { round } = self.state {
            self.state = State::Probation { round };
        }
    }

    /// Records that an instance is stable.
    pub(super) fn stable(&mut self) {
        if !matches!(self.state, State::Probing { .. }) {
            self.reset();
        }
    }

    /// Records that the gateway cancelled a start.
    pub(super) const fn cancelled(&mut self, now: Moment) {
        if let State::Probing { round } = self.state {
            // The next caller may start at once.
            self.state = State::Suspended {
                since: now,
                until: now,
                round,
            };
        }
    }

    /// Records that an instance failed to start, or failed later. The random number spreads the backoff.
    pub(super) fn failed(&mut self, random: u32, now: Moment) {
        match self.state {
            State::Probing { round } | State::Probation { round } => {
                self.suspend(round.saturating_add(1), random, now);
            }
            // The instance was started before the suspension.
            State::Suspended { .. } => {}
            State::Normal | State::BackingOff { .. } => {
                let window = self.settings.window;
                self.failures.retain(|failure| now.since(*failure) < window);
                self.failures.push_back(now);
                let count = u32::try_from(self.failures.len()).unwrap_or(u32::MAX);
                if count >= self.settings.failures {
                    return self.suspend(0, random, now);
                }
                let until = now.after(self.backoff(count - 1, random));
                self.state = State::BackingOff { until };
            }
        }
    }

    /// Forgets all failures.
    pub(super) fn reset(&mut self) {
        self.state = State::Normal;
        self.failures.clear();
    }

    /// Schedules the first recovery attempt after a start was not allowed.
    pub(super) fn schedule_recovery(&mut self, random: u32, now: Moment) {
        if self.recovery_due.is_none() {
            self.recovery_due = Some(now.after(self.backoff(0, random)));
        }
    }

    /// Records a recovery attempt that could not even start the server, such as one that is not approved yet. It
    /// neither counts as a failure nor delays callers.
    pub(super) fn recovery_skipped(&mut self, random: u32, now: Moment) {
        self.skipped = self.skipped.saturating_add(1);
        self.recovery_due = Some(now.after(self.backoff(self.skipped, random)));
    }

    /// Forgets the skipped recovery attempts after a start.
    pub(super) const fn reset_recovery(&mut self) {
        self.skipped = 0;
        self.recovery_due = None;
    }

    fn suspend(&mut self, round: u32, random: u32, now: Moment) {
        let first = self.settings.suspend;
        let limit = first.saturating_mul(MAX_SUSPENSION_FACTOR);
        let pause = doubled(first, round).min(limit);
        self.state = State::Suspended {
            since: now,
            until: now.after(jittered(pause, random)),
            round,
        };
    }

    /// Returns the backoff after a number of failures.
    fn backoff(&self, times: u32, random: u32) -> Duration {
        let pause = doubled(self.settings.backoff, times);
        jittered(pause.min(self.settings.backoff_max), random)
    }
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
