//! Time as an argument.

use core::time::Duration;

/// A point on the owner's clock; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The owner's zero.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// So long after the owner's zero.
    #[must_use]
    pub const fn at(since_zero: Duration) -> Self {
        Self(since_zero)
    }

    /// The moment this much later; the end of time when there is no such moment.
    #[must_use]
    pub const fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }

    /// Time since `earlier`; zero if it is in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
