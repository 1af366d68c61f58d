//! Backoff of recovery attempts that could not even start the server, such as one that is not approved yet.
//!
//! Nothing of the server has failed, so these attempts neither count against it nor delay callers. Failed starts are
//! the business of [`restart_policy`](super::restart_policy).

use mcpact_config::Restarts;
use mcpact_engine::time::Moment;

use super::restart_policy::pause;

/// Recovery attempts since the last start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recovery {
    attempts: u32,
    /// Time of the next attempt.
    due: Option<Moment>,
}

impl Recovery {
    /// Returns the earliest time of the next attempt.
    pub(super) const fn due(self) -> Option<Moment> {
        self.due
    }

    /// Schedules the first attempt after a start was not allowed.
    pub(super) fn schedule(&mut self, restarts: &Restarts, random: u32, now: Moment) {
        if self.due.is_none() {
            self.due = Some(now.after(pause(restarts, 0, random)));
        }
    }

    /// Schedules the next attempt, with a longer pause.
    pub(super) fn failed(&mut self, restarts: &Restarts, random: u32, now: Moment) {
        self.attempts = self.attempts.saturating_add(1);
        self.due = Some(now.after(pause(restarts, self.attempts, random)));
    }

    /// Forgets the attempts after a start.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn pauses_double_up_to_the_limit() {
        let restarts = Restarts {
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(5),
            failures: 3,
            window: Duration::from_secs(100),
            suspend: Duration::from_secs(60),
        };
        let mut recovery = Recovery::default();
        assert_eq!(recovery.due(), None);
        recovery.schedule(&restarts, u32::MAX, at(0));
        assert_eq!(recovery.due(), Some(at(1)));
        recovery.schedule(&restarts, u32::MAX, at(1));
        assert_eq!(recovery.due(), Some(at(1)), "calls do not postpone it");
        let mut now = at(1);
        for pause in [2, 4, 5, 5] {
            recovery.failed(&restarts, u32::MAX, now);
            now = now.after(Duration::from_secs(pause));
            assert_eq!(recovery.due(), Some(now));
        }
        recovery.reset();
        assert_eq!(recovery, Recovery::default());
    }
}
