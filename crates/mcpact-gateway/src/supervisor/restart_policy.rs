//! Restart policy of one server: a limited rate of restarts, exponential backoff, then a circuit breaker. Pure.
//!
//! An instance that has answered a call is replaced at once when it ends: only the rate limits its restarts. A failed
//! start, and the end of an instance before its first answer, cause a backoff and count for the circuit breaker.

use std::collections::VecDeque;
use std::time::Duration;

use mcpact_config::Restarts;
use mcpact_engine::time::Moment;

/// Maximum number of restarts within [`RESTART_WINDOW`].
const MAX_RESTARTS: usize = 10;

/// Time in which restarts are limited.
pub(super) const RESTART_WINDOW: Duration = Duration::from_secs(10);

/// Limit of a suspension, as a multiple of the first one.
const MAX_SUSPENSION_FACTOR: u32 = 16;

/// The restart policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestartPolicy {
    settings: Restarts,
    state: State,
    /// Times of recent failures, at most as many as suspend the server.
    failures: VecDeque<Moment>,
    /// Times of the latest restarts, at most [`MAX_RESTARTS`].
    restarts: VecDeque<Moment>,
    /// Number of ended instances that were not replaced yet.
    unreplaced: u32,
    /// Time of the latest end of an instance.
    last_end: Moment,
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
///
/// A program that cannot be started leads from any state to `Unstartable`, and back to `Normal` once it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No recent failures. Restarts are limited by their rate only.
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
    /// No starts until the program of the server can be started, or the config changes.
    Unstartable,
}

/// Decision about a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartDecision {
    /// Start now.
    Start,
    /// Wait for the end of a backoff, or for the rate limit of restarts.
    Wait {
        /// Time of the next start.
        until: Moment,
    },
    /// Wait for the outcome of the start in progress.
    AwaitAttempt,
    /// Do not wait.
    Refuse {
        /// Time of the next start.
        until: Moment,
    },
    /// Do not wait: the program cannot be started.
    Unstartable,
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
            restarts: VecDeque::new(),
            unreplaced: 0,
            last_end: Moment::ZERO,
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

    /// Returns true if instances have failed and were not replaced, or a failure is recent.
    pub(super) fn has_failed(&self) -> bool {
        self.state != State::Normal || self.unreplaced > 0
    }

    /// Returns the earliest time of a start without a call.
    pub(super) fn next_start(&self) -> Option<Moment> {
        self.paused_until().max(self.recovery_due)
    }

    /// Returns the end of the backoff, the suspension or the wait for the rate limit.
    pub(super) fn paused_until(&self) -> Option<Moment> {
        let pause = match self.state {
            State::BackingOff { until } | State::Suspended { until, .. } => Some(until),
            State::Normal
            | State::Probing { .. }
            | State::Probation { .. }
            | State::Unstartable => None,
        };
        let is_limited = self.unreplaced > 0 && self.restarts.len() >= MAX_RESTARTS;
        let oldest = self.restarts.front().filter(|_| is_limited);
        pause.max(oldest.map(|oldest| oldest.after(RESTART_WINDOW)))
    }

    /// Decides about a start for a caller that waits for at most `patience`. A caller that gets
    /// [`StartDecision::Start`] must start an instance.
    pub(super) fn request_start(&mut self, patience: Duration, now: Moment) -> StartDecision {
        let is_suspended = matches!(self.state, State::Suspended { .. });
        match self.state {
            State::Probing { .. } => return StartDecision::AwaitAttempt,
            State::Unstartable => return StartDecision::Unstartable,
            _ => {}
        }
        if now.since(self.last_end) >= self.settings.window {
            self.unreplaced = 0;
        }
        if let Some(until) = self.paused_until().filter(|until| *until > now) {
            return match !is_suspended && until.since(now) <= patience {
                true => StartDecision::Wait { until },
                false => StartDecision::Refuse { until },
            };
        }
        if let State::Suspended { round, .. } = self.state {
            self.state = State::Probing { round };
        }
        if self.unreplaced > 0 {
            self.unreplaced -= 1;
            // The oldest is out of the window.
            if self.restarts.len() >= MAX_RESTARTS {
                self.restarts.pop_front();
            }
            self.restarts.push_back(now);
        }
        StartDecision::Start
    }

    /// Records that an instance is ready.
    pub(super) const fn started(&mut self) {
        if let State::Probing { round } = self.state {
            self.state = State::Probation { round };
        }
    }

    /// Records that an instance is stable, or has answered its first call.
    pub(super) fn stable(&mut self) {
        if !matches!(self.state, State::Probing { .. }) {
            self.state = State::Normal;
            self.failures.clear();
        }
    }

    /// Records the end of an instance that has answered a call.
    pub(super) const fn ended(&mut self, now: Moment) {
        self.unreplaced = self.unreplaced.saturating_add(1);
        self.last_end = now;
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

    /// Records that an instance failed to start, or ended before it answered a call. The random number spreads the
    /// backoff.
    pub(super) fn failed(&mut self, random: u32, now: Moment) {
        self.ended(now);
        match self.state {
            State::Probing { round } | State::Probation { round } => {
                self.suspend(round.saturating_add(1), random, now);
            }
            // The instance was started before the suspension.
            State::Suspended { .. } | State::Unstartable => {}
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

    /// Records that the program cannot be started. Only a look at the file system shows a change, so starts are not
    /// retried.
    pub(super) fn unstartable(&mut self) {
        self.reset();
        self.reset_recovery();
        self.state = State::Unstartable;
    }

    pub(super) fn is_unstartable(&self) -> bool {
        self.state == State::Unstartable
    }

    /// Forgets all failures.
    pub(super) fn reset(&mut self) {
        self.state = State::Normal;
        self.failures.clear();
        self.unreplaced = 0;
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
