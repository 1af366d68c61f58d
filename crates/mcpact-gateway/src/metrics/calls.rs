//! Counters and histograms.
//!
//! Metrics of every call take no lock and allocate only at the first call of a method.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use mcpact_spec::{Method, Revision};
use mcpact_translate::plan::Plan;

use crate::sync::lock;

mcpact_spec::stable_strings! {
    /// Outcome of a call: a label of `mcpact_requests_total`.
    pub(crate) enum Outcome {
        /// A result; a tool may report its own failure in it.
        Ok = "ok",
        /// An error of the server, or one about the request.
        Error = "error",
        /// Every instance is at its limit.
        Busy = "busy",
        /// The server cannot be reached or started, or negotiation failed.
        Unavailable = "unavailable",
        /// The connection broke or the response was unusable; the call may have had its effect.
        Lost = "lost",
        /// The server did not answer in time.
        Timeout = "timeout",
        /// The client cancelled the call.
        Cancelled = "cancelled",
    }
}

/// Counter with few label values, for rare events.
#[derive(Debug)]
pub(super) struct LabelCounter<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for LabelCounter<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Copy> LabelCounter<K> {
    pub(super) fn add(&self, key: K) {
        *lock(&self.0).entry(key).or_default() += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<K, u64> {
        lock(&self.0).clone()
    }
}

/// Upper bounds of the buckets in microseconds.
const BOUNDS: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Histogram of durations.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    overflow: AtomicU64,
    micros: AtomicU64,
}

/// Values of a histogram at one moment.
#[derive(Debug)]
pub(super) struct HistogramSnapshot {
    /// Upper bounds in seconds with cumulative counts.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) seconds: f64,
}

impl Histogram {
    fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        let bucket = self.buckets.get(at).unwrap_or(&self.overflow);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn snapshot(&self) -> HistogramSnapshot {
        let mut count = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets).map(|(bound, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            (*bound as f64 / 1e6, count)
        });
        let buckets = buckets.collect();
        HistogramSnapshot {
            buckets,
            count: count + self.overflow.load(Ordering::Relaxed),
            seconds: self.micros.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }
}

#[derive(Debug, Default)]
struct MethodMetrics {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    durations: Histogram,
}

/// Metrics of the calls of a server by method; the last element is for methods that no revision defines.
#[derive(Debug)]
pub(super) struct CallMetrics([OnceLock<Box<MethodMetrics>>; Method::ALL.len() + 1]);

impl Default for CallMetrics {
    fn default() -> Self {
        Self([const { OnceLock::new() }; Method::ALL.len() + 1])
    }
}

/// Measures a call until it is dropped; without an outcome the call counts as cancelled.
#[derive(Debug)]
pub(crate) struct CallTimer<'a> {
    metrics: Option<&'a MethodMetrics>,
    since: Instant,
    outcome: Outcome,
}

impl CallTimer<'_> {
    /// Sets the outcome of the call.
    pub(crate) const fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Discards the measurement: the call is counted elsewhere.
    pub(crate) const fn discard(&mut self) {
        self.metrics = None;
    }

    /// Returns the duration of the call so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics {
            metrics.outcomes[self.outcome as usize].fetch_add(1, Ordering::Relaxed);
            metrics.durations.add(self.since.elapsed());
        }
    }
}

impl CallMetrics {
    pub(super) fn start(&self, method: Option<Method>) -> CallTimer<'_> {
        let at = method.map_or(Method::ALL.len(), |method| method as usize);
        let slot = self.0.get(at);
        CallTimer {
            metrics: slot.map(|slot| &**slot.get_or_init(Box::default)),
            since: Instant::now(),
            outcome: Outcome::Cancelled,
        }
    }

    fn used(&self) -> impl Iterator<Item = (Option<Method>, &MethodMetrics)> {
        self.0.iter().enumerate().filter_map(|(at, slot)| {
            let method = Method::ALL.get(at).copied();
            Some((method, &**slot.get()?))
        })
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = (Option<Method>, &'static str, u64)> {
        self.used().flat_map(|(method, metrics)| {
            let all = Outcome::ALL.iter().zip(&metrics.outcomes);
            let all = all.map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)));
            let all = all.filter(|(_, count)| *count > 0);
            all.map(move |(outcome, count)| (method, outcome.as_str(), count))
        })
    }

    pub(super) fn durations(&self) -> impl Iterator<Item = (Option<Method>, HistogramSnapshot)> {
        self.used()
            .map(|(method, metrics)| (method, metrics.durations.snapshot()))
    }
}

/// Kinds of translation: a label of `mcpact_translations_total`.
pub(crate) const KINDS: [&str; 4] = ["pass", "raise", "lower", "emulate"];

const fn kind(plan: Plan) -> usize {
    match plan {
        Plan::Pass => 0,
        Plan::NewerServer => 1,
        Plan::OlderServer => 2,
        Plan::Emulate(_) => 3,
    }
}

/// Counters of translated requests by revision of the client, revision of the server and kind.
#[derive(Debug, Default)]
pub(super) struct TranslationCounters(
    [[[AtomicU64; KINDS.len()]; Revision::COUNT]; Revision::COUNT],
);

impl TranslationCounters {
    pub(super) fn add(&self, down: Revision, up: Revision, plan: Plan) {
        self.0[down as usize][up as usize][kind(plan)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counters above zero.
    pub(super) fn all(&self) -> Vec<(Revision, Revision, &'static str, u64)> {
        let mut all = Vec::new();
        for (down, row) in Revision::ALL.into_iter().zip(&self.0) {
            for (up, cells) in Revision::ALL.into_iter().zip(row) {
                for (kind, cell) in KINDS.into_iter().zip(cells) {
                    all.push((down, up, kind, cell.load(Ordering::Relaxed)));
                }
            }
        }
        all.retain(|(.., count)| *count > 0);
        all
    }
}
