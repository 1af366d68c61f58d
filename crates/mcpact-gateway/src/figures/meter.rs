//! Counters on the way of every call: atomics in arrays, no lock, nothing allocated but the first time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mcpact_spec::{Method, Revision};
use mcpact_translate::plan::Plan;

use crate::error::ServeError;

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

impl Outcome {
    /// Outcome of a request, by the variant of its error.
    pub(crate) fn of(served: Result<(), &ServeError>) -> Self {
        match served {
            Ok(()) => Self::Ok,
            Err(ServeError::Upstream(error)) => error.kind.outcome(),
            // A refusal of the gateway is about the request, and so is a response of the server.
            Err(ServeError::Response(_) | ServeError::Refused(_)) => Self::Error,
        }
    }
}

/// The upper bounds of the buckets, in microseconds.
const BOUNDS: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// How often something took how long.
#[derive(Debug, Default)]
struct Latency {
    buckets: [AtomicU64; BOUNDS.len()],
    longer: AtomicU64,
    micros: AtomicU64,
}

/// The same, at one moment.
#[derive(Debug)]
pub(super) struct Spread {
    /// Upper bounds in seconds, and how many took no longer.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) seconds: f64,
}

impl Latency {
    fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < micros);
        let bucket = self.buckets.get(at).unwrap_or(&self.longer);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn spread(&self) -> Spread {
        let mut count = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets).map(|(bound, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            (*bound as f64 / 1e6, count)
        });
        let buckets = buckets.collect();
        Spread {
            buckets,
            count: count + self.longer.load(Ordering::Relaxed),
            seconds: self.micros.load(Ordering::Relaxed) as f64 / 1e6,
        }
    }
}

#[derive(Debug, Default)]
struct Counted {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    latency: Latency,
}

/// The calls of a server, by method; the last place is for methods that no revision defines.
#[derive(Debug)]
pub(super) struct Calls([OnceLock<Box<Counted>>; Method::ALL.len() + 1]);

impl Default for Calls {
    fn default() -> Self {
        Self([const { OnceLock::new() }; Method::ALL.len() + 1])
    }
}

/// A call that goes on. Dropped without an outcome, it was cancelled.
#[derive(Debug)]
pub(crate) struct Routed<'a> {
    counted: Option<&'a Counted>,
    since: Instant,
    outcome: Outcome,
}

impl Routed<'_> {
    /// How it ended.
    pub(crate) const fn ended(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// It is counted by somebody else.
    pub(crate) const fn forget(&mut self) {
        self.counted = None;
    }

    /// How long it has taken.
    pub(crate) fn took(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Routed<'_> {
    fn drop(&mut self) {
        if let Some(counted) = self.counted {
            counted.outcomes[self.outcome as usize].fetch_add(1, Ordering::Relaxed);
            counted.latency.add(self.since.elapsed());
        }
    }
}

impl Calls {
    pub(super) fn routed(&self, method: Option<Method>) -> Routed<'_> {
        let at = method.map_or(Method::ALL.len(), |method| method as usize);
        Routed {
            counted: self
                .0
                .get(at)
                .map(|place| &**place.get_or_init(Box::default)),
            since: Instant::now(),
            outcome: Outcome::Cancelled,
        }
    }

    fn known(&self) -> impl Iterator<Item = (Option<Method>, &Counted)> {
        self.0.iter().enumerate().filter_map(|(at, place)| {
            let method = Method::ALL.get(at).copied();
            Some((method, &**place.get()?))
        })
    }

    pub(super) fn outcomes(&self) -> impl Iterator<Item = (Option<Method>, &'static str, u64)> {
        self.known().flat_map(|(method, counted)| {
            let all = Outcome::ALL.iter().zip(&counted.outcomes);
            let all = all.map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)));
            let all = all.filter(|(_, count)| *count > 0);
            all.map(move |(outcome, count)| (method, outcome.as_str(), count))
        })
    }

    pub(super) fn latencies(&self) -> impl Iterator<Item = (Option<Method>, Spread)> {
        self.known()
            .map(|(method, counted)| (method, counted.latency.spread()))
    }
}

/// Translations of requests between two revisions: a label of `mcpact_translations_total`.
pub(crate) const KINDS: [&str; 4] = ["pass", "raise", "lower", "emulate"];

const fn kind(plan: Plan) -> usize {
    match plan {
        Plan::Pass => 0,
        Plan::NewerServer => 1,
        Plan::OlderServer => 2,
        Plan::Emulate(_) => 3,
    }
}

/// How often requests crossed between which revisions, and how.
#[derive(Debug, Default)]
pub(super) struct Crossings([[[AtomicU64; KINDS.len()]; Revision::COUNT]; Revision::COUNT]);

/// One row of it.
#[derive(Debug)]
pub(super) struct Crossed {
    pub(super) down: Revision,
    pub(super) up: Revision,
    pub(super) kind: &'static str,
    pub(super) count: u64,
}

impl Crossings {
    pub(super) fn add(&self, down: Revision, up: Revision, plan: Plan) {
        self.0[down as usize][up as usize][kind(plan)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<Crossed> {
        let mut all = Vec::new();
        for (down, row) in Revision::ALL.into_iter().zip(&self.0) {
            for (up, cells) in Revision::ALL.into_iter().zip(row) {
                for (kind, cell) in KINDS.into_iter().zip(cells) {
                    let count = cell.load(Ordering::Relaxed);
                    if count > 0 {
                        all.push(Crossed {
                            down,
                            up,
                            kind,
                            count,
                        });
                    }
                }
            }
        }
        all
    }
}
