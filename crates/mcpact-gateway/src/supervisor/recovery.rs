//! When it is looked again whether a server may be started, where no start was even begun.
//!
//! These looks have a pace of their own: nothing of the server has failed, so that they do not count against it
//! and do not make callers wait. Starts that fail are the restart policy's.

use mcpact_config::Restarts;
use mcpact_engine::time::Moment;

use super::restart_policy::pause;

/// The looks since a start was begun last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recovery {
    /// How many came to nothing.
    tries: u32,
    /// When the next one is, if one is due.
    due: Option<Moment>,
}

impl Recovery {
    /// Not before then.
    pub(super) const fn due(self) -> Option<Moment> {
        self.due
    }

    /// Somebody wanted a start and had none, after which the first look is soon.
    pub(super) fn begin(&mut self, restarts: &Restarts, random: u32, now: Moment) {
        if self.due.is_none() {
            self.due = Some(now.after(pause(restarts, 0, random)));
        }
    }

    /// A look came to nothing, and the next one is later.
    pub(super) fn failed(&mut self, restarts: &Restarts, random: u32, now: Moment) {
        self.tries = self.tries.saturating_add(1);
        self.due = Some(now.after(pause(restarts, self.tries, random)));
    }

    /// A start was begun.
    pub(super) fn over(&mut self) {
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

    /// Looks become rarer, up to a limit, until one succeeds.
    #[test]
    fn looks_become_rarer() {
        let restarts = Restarts {
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(5),
            failures: 3,
            window: Duration::from_secs(100),
            suspend: Duration::from_secs(60),
        };
        let mut recovery = Recovery::default();
        assert_eq!(recovery.due(), None);
        recovery.begin(&restarts, u32::MAX, at(0));
        assert_eq!(recovery.due(), Some(at(1)));
        recovery.begin(&restarts, u32::MAX, at(1));
        assert_eq!(recovery.due(), Some(at(1)), "callers do not put it off");
        let mut now = at(1);
        for pause in [2, 4, 5, 5] {
            recovery.failed(&restarts, u32::MAX, now);
            now = now.after(Duration::from_secs(pause));
            assert_eq!(recovery.due(), Some(now));
        }
        recovery.over();
        assert_eq!(recovery, Recovery::default());
    }
}
