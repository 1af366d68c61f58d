//! Evaluation of a measured interval.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Warm-up time before calls count.
pub const WARM_UP: Duration = Duration::from_millis(100);

/// Latencies of an interval, and its length.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Stretch {
    /// Nanoseconds from question to answer, in no order.
    pub latencies: Vec<u64>,
    /// Nanoseconds that all of it took.
    pub elapsed: u64,
    /// Calls before the stretch, which the subject has paid for, too.
    pub uncounted: u64,
    /// Nanoseconds of processor time, where the subject itself tells them.
    pub cpu: u64,
    /// Processor time of the load generator, as a share of one core.
    #[serde(default)]
    pub generator: f64,
}

/// Figures of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Answers per second.
    pub rate: f64,
    /// Half of the answers took no longer, in nanoseconds.
    pub p50: f64,
    /// All but one in a hundred took no longer, in nanoseconds.
    pub p99: f64,
    /// Processor time of the subject per response, in nanoseconds.
    pub cpu: f64,
    /// Processor time of the load generator, as a share of one core.
    pub generator: f64,
}

impl Stretch {
    /// Whole nanoseconds of a duration.
    #[must_use]
    pub fn nanoseconds(time: Duration) -> u64 {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Adds what another worker saw at the same time.
    pub fn join(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.uncounted += other.uncounted;
    }

    /// The numbers of a stretch during which the subject used this much processor time.
    #[must_use]
    pub fn sample(mut self, cpu: Duration) -> Sample {
        self.latencies.sort_unstable();
        let count = self.latencies.len().max(1);
        let at = |share: usize| {
            let place = (self.latencies.len() * share / 100).min(count - 1);
            self.latencies.get(place).map_or(0.0, |time| *time as f64)
        };
        Sample {
            rate: self.latencies.len() as f64 * 1e9 / self.elapsed.max(1) as f64,
            p50: at(50),
            p99: at(99),
            cpu: cpu.as_secs_f64() * 1e9 / (count as f64 + self.uncounted as f64),
            generator: self.generator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let stretch = Stretch {
            latencies: (1..=100).rev().collect(),
            elapsed: 1_000_000_000,
            uncounted: 100,
            ..Stretch::default()
        };
        let sample = stretch.sample(Duration::from_nanos(500));
        assert_eq!((sample.p50, sample.p99), (51.0, 100.0));
        assert_eq!((sample.rate, sample.cpu), (100.0, 2.5));
    }

    #[test]
    fn nothing_is_no_reason_to_stop() {
        assert_eq!(Stretch::default().sample(Duration::ZERO).p99, 0.0);
    }
}
