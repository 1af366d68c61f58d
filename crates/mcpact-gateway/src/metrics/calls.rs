//! Counters and histograms.
//!
//! Metrics of every call take no lock and allocate only at the first call of a method.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use mcpact_spec::{Method, Revision};
use mcpact_translate::plan::Plan;

use super::{Exposition, label};
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

/// Counter with `N` labels of few values, for rare events.
#[derive(Debug, Default)]
pub(super) struct LabelCounter<const N: usize>(Mutex<BTreeMap<[&'static str; N], u64>>);

impl<const N: usize> LabelCounter<N> {
    pub(super) fn add(&self, values: [&'static str; N]) {
        *lock(&self.0).entry(values).or_default() += 1;
    }

    /// Writes a row per combination of values: the labels `first`, then the values under `names`.
    pub(super) fn write(&self, out: &mut Exposition, first: &[(&str, &str)], names: [&str; N]) {
        for (values, count) in lock(&self.0).iter() {
            let labels = names.into_iter().zip(values.iter().copied());
            let labels: Vec<_> = first.iter().copied().chain(labels).collect();
            out.row(&labels, count);
        }
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

impl Histogram {
    fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        let bucket = self.buckets.get(at).unwrap_or(&self.overflow);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self, out: &mut Exposition, labels: &[(&str, &str)]) {
        let mut count = 0;
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            count += bucket.load(Ordering::Relaxed);
            out.bucket(labels, *bound as f64 / 1e6, count);
        }
        count += self.overflow.load(Ordering::Relaxed);
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        out.total(labels, seconds, count);
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

/// Measures a call. Dropped without an outcome, the call counts as cancelled.
#[derive(Debug)]
pub(crate) struct CallTimer<'a> {
    metrics: Option<&'a MethodMetrics>,
    since: Instant,
}

impl CallTimer<'_> {
    /// Counts the call with this outcome. Returns its duration.
    pub(crate) fn finish(mut self, outcome: Outcome) -> Duration {
        let duration = self.since.elapsed();
        self.count(outcome, duration);
        duration
    }

    /// Discards the measurement: the call is counted elsewhere.
    pub(crate) fn discard(mut self) {
        self.metrics = None;
    }

    fn count(&mut self, outcome: Outcome, duration: Duration) {
        if let Some(metrics) = self.metrics.take() {
            metrics.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
            metrics.durations.add(duration);
        }
    }
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        if self.metrics.is_some() {
            self.count(Outcome::Cancelled, self.since.elapsed());
        }
    }
}

impl CallMetrics {
    pub(super) fn start(&self, method: Option<Method>) -> CallTimer<'_> {
        let at = method.map_or(Method::ALL.len(), |method| method as usize);
        CallTimer {
            metrics: Some(&**self.0[at].get_or_init(Box::default)),
            since: Instant::now(),
        }
    }

    /// Returns the metrics of the called methods, with their label values.
    fn used(&self) -> impl Iterator<Item = (&'static str, &MethodMetrics)> {
        self.0.iter().enumerate().filter_map(|(at, slot)| {
            let method = Method::ALL.get(at).copied();
            Some((label(method), &**slot.get()?))
        })
    }

    pub(super) fn write_outcomes(&self, out: &mut Exposition, server: &str) {
        for (method, metrics) in self.used() {
            for (outcome, count) in Outcome::ALL.iter().zip(&metrics.outcomes) {
                let labels = [
                    ("server", server),
                    ("method", method),
                    ("outcome", outcome.as_str()),
                ];
                out.row_above_zero(&labels, count);
            }
        }
    }

    pub(super) fn write_durations(&self, out: &mut Exposition, server: &str) {
        for (method, metrics) in self.used() {
            let labels = [("server", server), ("method", method)];
            metrics.durations.write(out, &labels);
        }
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

    pub(super) fn write(&self, out: &mut Exposition, server: &str) {
        for (down, row) in Revision::ALL.into_iter().zip(&self.0) {
            for (up, cells) in Revision::ALL.into_iter().zip(row) {
                for (kind, cell) in KINDS.into_iter().zip(cells) {
                    let labels = [
                        ("server", server),
                        ("client_revision", down.as_str()),
                        ("server_revision", up.as_str()),
                        ("kind", kind),
                    ];
                    out.row_above_zero(&labels, cell);
                }
            }
        }
    }
}
