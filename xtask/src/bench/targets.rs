//! Performance targets, as ratios of two numbers of the same run.

use super::rows::Measured;

/// A promise: `slow` takes at least `factor` times what `fast` takes.
struct Target {
    what: &'static str,
    fast: &'static str,
    slow: &'static str,
    factor: f64,
}

const TARGETS: &[Target] = &[
    Target {
        what: "envelope of 400 B at least 3 times faster than a tree",
        fast: "call-legacy/envelope",
        slow: "call-legacy/serde-value",
        factor: 3.0,
    },
    Target {
        what: "envelope of 1 MiB (blocks) at least 3 times faster than a tree",
        fast: "result-blocks/envelope",
        slow: "result-blocks/serde-value",
        factor: 3.0,
    },
    Target {
        what: "envelope of 1 MiB (text) at least 3 times faster than a tree",
        fast: "result-text/envelope",
        slow: "result-text/serde-value",
        factor: 3.0,
    },
    Target {
        what: "envelope of 1 MiB (escaped quotes) at least 3 times faster than a tree",
        fast: "result-quotes/envelope",
        slow: "result-quotes/serde-value",
        factor: 3.0,
    },
    Target {
        what: "gate check cheaper than the envelope of 400 B",
        fast: "gate/call",
        slow: "call-legacy/envelope",
        factor: 1.0,
    },
    Target {
        what: "modern classification (stream) cheaper than the envelope of 400 B",
        fast: "classify/stream",
        slow: "call-legacy/envelope",
        factor: 1.0,
    },
    Target {
        what: "modern classification (HTTP) cheaper than the envelope of 400 B",
        fast: "classify/http",
        slow: "call-legacy/envelope",
        factor: 1.0,
    },
];

/// A target and how close the run came.
pub(super) struct Judgement {
    pub(super) what: &'static str,
    /// The ratio that is promised.
    pub(super) promised: f64,
    /// The ratio of the fastest samples, which decides: a busy machine disturbs it least.
    pub(super) fastest: f64,
    /// The ratio of the medians.
    pub(super) median: f64,
    /// The ratio of the instructions.
    pub(super) instructions: Option<f64>,
}

impl Judgement {
    pub(super) fn is_met(&self) -> bool {
        self.fastest >= self.promised
    }
}

/// Compares the numbers with the targets. Targets without measured rows are left out.
pub(super) fn judge(measured: &[Measured]) -> Vec<Judgement> {
    let find = |name: &str| measured.iter().find(|m| m.row.time == name);
    TARGETS
        .iter()
        .filter_map(|target| {
            let (fast, slow) = (find(target.fast)?, find(target.slow)?);
            Some(Judgement {
                what: target.what,
                promised: target.factor,
                fastest: slow.fastest / fast.fastest,
                median: slow.median / fast.median,
                instructions: slow
                    .instructions
                    .zip(fast.instructions)
                    .map(|(slow, fast)| slow / fast),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn measured(nanoseconds: impl Fn(&str) -> f64) -> Vec<Measured> {
        ROWS.iter()
            .map(|row| Measured {
                row,
                median: 1.0,
                fastest: nanoseconds(row.time),
                bytes: None,
                instructions: None,
            })
            .collect()
    }

    #[test]
    fn every_target_compares_two_rows() {
        assert_eq!(judge(&measured(|_| 1.0)).len(), TARGETS.len());
    }

    #[test]
    fn a_target_is_met_by_the_ratio_of_one_run() {
        let slow_tree = |name: &str| {
            if name.ends_with("serde-value") {
                3.0
            } else {
                1.0
            }
        };
        assert!(judge(&measured(slow_tree)).iter().all(Judgement::is_met));
        let quick_tree = |name: &str| {
            if name.ends_with("serde-value") {
                2.9
            } else {
                1.0
            }
        };
        let missed = judge(&measured(quick_tree));
        assert_eq!(missed.iter().filter(|j| !j.is_met()).count(), 4);
    }
}
