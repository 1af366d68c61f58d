//! A clock that goes only when it is told to.

use std::time::Duration;

use mcpact_engine::time::Moment;

/// Virtual time; it never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    now: Moment,
}

impl Clock {
    /// The time.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// Goes on to this moment; one that has passed changes nothing.
    pub fn advance_to(&mut self, moment: Moment) {
        self.now = self.now.max(moment);
    }

    /// Goes on by this much.
    pub fn pass(&mut self, wait: Duration) {
        self.now = self.now.after(wait);
    }
}
