//! Judgement of a row.

use serde::Deserialize;

/// Rule for a value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    /// More is a failure.
    AtMost(f64),
    /// Less is a failure.
    AtLeast(f64),
    /// More is a failure on a machine that does nothing else.
    Within(f64),
    /// For reading only.
    Shown,
}

/// One number of a row.
#[derive(Debug, Deserialize)]
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) seen: f64,
    pub(super) unit: String,
    pub(super) limit: Limit,
}

/// A fault and what came of it.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) fault: String,
    pub(super) seconds: f64,
    pub(super) figures: Vec<Figure>,
    /// Reason for an early end.
    pub(super) broke: Option<String>,
}

impl Figure {
    /// Returns `true` if the value is within bounds.
    pub(super) fn is_good(&self, quick: bool) -> bool {
        match self.limit {
            Limit::AtMost(most) => self.seen <= most,
            Limit::AtLeast(least) => self.seen >= least,
            Limit::Within(most) => quick || self.seen <= most,
            Limit::Shown => true,
        }
    }
}

impl Row {
    /// Violations, one line each.
    pub(super) fn findings(&self, quick: bool) -> Vec<String> {
        let bad = self.figures.iter().filter(|figure| !figure.is_good(quick));
        let bad = bad.map(|figure| {
            let (what, seen, unit) = (&figure.what, figure.seen, &figure.unit);
            format!("{}: {what}: {seen} {unit} ({:?})", self.id, figure.limit)
        });
        let broke = self.broke.iter();
        let broke = broke.map(|why| format!("{}: it ended early: {why}", self.id));
        bad.chain(broke).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Limit, Row};

    fn row(limit: &str, seen: f64) -> Row {
        let text = format!(
            r#"{{"id":"F01","fault":"a","seconds":1.0,"broke":null,
                "figures":[{{"what":"b","seen":{seen},"unit":"","limit":{limit}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn counts_are_judged_always_and_times_on_a_quiet_machine() {
        let bad = |limit, seen, quick| row(limit, seen).findings(quick).len();
        assert_eq!(bad(r#"{"at_most":0.0}"#, 1.0, true), 1);
        assert_eq!(bad(r#"{"at_most":1.0}"#, 1.0, true), 0);
        assert_eq!(bad(r#"{"at_least":1.0}"#, 0.0, true), 1);
        assert_eq!(bad(r#"{"within":1.0}"#, 2.0, true), 0);
        assert_eq!(bad(r#"{"within":1.0}"#, 2.0, false), 1);
        assert_eq!(bad(r#""shown""#, 2.0, false), 0);
    }

    #[test]
    fn a_row_that_ended_early_is_a_failure() {
        let mut row = row(r#""shown""#, 0.0);
        row.broke = Some(String::from("no"));
        assert_eq!(row.findings(true), ["F01: it ended early: no"]);
        assert!(matches!(row.figures[0].limit, Limit::Shown));
    }
}
