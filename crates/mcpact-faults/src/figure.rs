//! Measured values of a row, with their limits.

use std::time::Duration;

use serde::Serialize;

/// Limit of a value.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// More is a failure.
    AtMost(f64),
    /// Less is a failure.
    AtLeast(f64),
    /// A machine that does something else at the same time may exceed it; a quick run does not judge it.
    Within(f64),
    /// For reading only.
    Shown,
}

/// One number of a row.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    what: String,
    seen: f64,
    unit: &'static str,
    limit: Limit,
}

/// Report of a row.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    id: &'static str,
    fault: &'static str,
    seconds: f64,
    figures: Vec<Figure>,
    /// Error that ended the row.
    broke: Option<String>,
}

/// The figures of a row, as they come.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    fn add(&mut self, what: impl Into<String>, seen: f64, unit: &'static str, limit: Limit) {
        self.0.push(Figure {
            what: what.into(),
            seen,
            unit,
            limit,
        });
    }

    /// Something that must not happen, and how often it did.
    pub(crate) fn none(&mut self, what: impl Into<String>, seen: usize) {
        self.add(what, seen as f64, "", Limit::AtMost(0.0));
    }

    /// At most so many.
    pub(crate) fn at_most(&mut self, what: impl Into<String>, seen: usize, most: usize) {
        self.add(what, seen as f64, "", Limit::AtMost(most as f64));
    }

    /// At least so many.
    pub(crate) fn at_least(&mut self, what: impl Into<String>, seen: usize, least: usize) {
        self.add(what, seen as f64, "", Limit::AtLeast(least as f64));
    }

    /// A time, and how long it may be on a machine that does nothing else.
    pub(crate) fn within(&mut self, what: impl Into<String>, seen: Duration, most: Duration) {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let limit = Limit::Within(milliseconds(most));
        self.add(what, milliseconds(seen), "ms", limit);
    }

    /// Memory in bytes, and how much it may be.
    pub(crate) fn memory(&mut self, what: impl Into<String>, seen: u64, most: u64) {
        let mebibytes = |bytes: u64| bytes as f64 / 1_048_576.0;
        let limit = Limit::AtMost(mebibytes(most));
        self.add(what, mebibytes(seen), "MiB", limit);
    }

    /// A ratio, which the machine influences.
    pub(crate) fn ratio(&mut self, what: impl Into<String>, seen: f64, most: f64) {
        self.add(what, seen, "×", Limit::Within(most));
    }

    /// Bytes for each of something.
    pub(crate) fn bytes_each(&mut self, what: impl Into<String>, seen: f64, most: f64) {
        self.add(what, seen, "B", Limit::AtMost(most));
    }

    /// A number for reading only.
    pub(crate) fn shown(&mut self, what: impl Into<String>, seen: f64, unit: &'static str) {
        self.add(what, seen, unit, Limit::Shown);
    }

    /// The report of a row.
    pub(crate) fn report(
        self,
        id: &'static str,
        fault: &'static str,
        took: Duration,
        broke: Option<String>,
    ) -> Report {
        Report {
            id,
            fault,
            seconds: took.as_secs_f64(),
            figures: self.0,
            broke,
        }
    }
}
