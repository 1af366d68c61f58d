//! Virtual clock.

use std::time::Duration;

use mcpact_engine::time::Moment;

/// Virtual time; it never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    now: Moment,
}

impl Clock {
    /// Current time.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// Advances to this moment; no effect if it has passed.
    pub fn advance_to(&mut self, moment: Moment) {
        self.now = self.now.max(moment);
    }

    /// Advances by this duration.
    pub fn pass(&mut self, wait: Duration) {
        self.now = self.now.after(wait);
    }
}
