//! Pauses that grow.

use core::time::Duration;

/// The pauses between attempts: each twice as long as the one before, up to a longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first pause.
    pub first: Duration,
    /// No pause is longer.
    pub longest: Duration,
}

impl Backoff {
    /// The pause after so many attempts that already paused.
    #[must_use]
    pub fn pause(self, attempts: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempts).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_below_the_longest() {
        let backoff = Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(15),
        };
        let seconds = [0, 1, 2, 31, 32, u32::MAX].map(|n| backoff.pause(n).as_secs());
        assert_eq!(seconds, [5, 10, 15, 15, 15, 15]);
    }
}
