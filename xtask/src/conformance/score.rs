//! Score of a requirement set: passed scenarios and failures.

use std::fmt;

use mcpact_spec::Revision;

use super::leg::Leg;
use super::requirement_set::RequirementSet;
use super::results::Results;
use super::strict::{self, Fault};

/// The score of one leg under one revision.
pub(super) struct Score {
    pub(super) leg: Leg,
    pub(super) revision: Revision,
    scored: Vec<Judged>,
    not_scored: Vec<Judged>,
}

/// A scenario and what keeps it from counting.
struct Judged {
    scenario: String,
    faults: Vec<Fault>,
}

/// A scenario that does not count.
pub(super) struct Shortfall<'a> {
    judged: &'a Judged,
    mark: &'static str,
}

impl Score {
    /// Judges every scenario of the set.
    pub(super) fn new(
        leg: Leg,
        revision: Revision,
        set: &RequirementSet,
        results: &Results,
    ) -> Self {
        let judged = |scenario: &String| Judged {
            scenario: scenario.clone(),
            faults: strict::judge(leg, scenario, results.of(scenario)),
        };
        Self {
            leg,
            revision,
            scored: set.scored.iter().map(judged).collect(),
            not_scored: set.not_scored.iter().map(judged).collect(),
        }
    }

    /// The scenarios that do not count, scored ones first.
    pub(super) fn shortfalls(&self) -> impl Iterator<Item = Shortfall<'_>> {
        let scored = self.scored.iter().map(|judged| (judged, ""));
        let not_scored = self
            .not_scored
            .iter()
            .map(|judged| (judged, "not scored, "));
        scored
            .chain(not_scored)
            .filter(|(judged, _)| !judged.faults.is_empty())
            .map(|(judged, mark)| Shortfall { judged, mark })
    }
}

impl Shortfall<'_> {
    /// The name of the scenario.
    pub(super) fn scenario(&self) -> &str {
        &self.judged.scenario
    }
}

impl fmt::Display for Shortfall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.judged.faults.iter().map(Fault::to_string).collect();
        write!(f, "{}: {}{}", self.scenario(), self.mark, faults.join("; "))
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.leg, self.revision.as_str())?;
        let (passed, strictly) = counts(&self.scored);
        write!(f, "{passed}/{} scored, ", self.scored.len())?;
        write!(f, "{strictly} strictly; ")?;
        let (passed, strictly) = counts(&self.not_scored);
        write!(f, "not scored {passed}/{}, ", self.not_scored.len())?;
        write!(f, "{strictly} strictly")
    }
}

/// Passed scenarios by the suite's rule and by ours.
fn counts(judged: &[Judged]) -> (usize, usize) {
    let passes = |judged: &&Judged| !judged.faults.iter().any(Fault::fails_suite);
    let counts = |judged: &&Judged| judged.faults.is_empty();
    (
        judged.iter().filter(passes).count(),
        judged.iter().filter(counts).count(),
    )
}

#[cfg(test)]
impl Score {
    /// A score in which these scenarios fall short and no others exist.
    pub(super) fn with_failing(leg: Leg, revision: Revision, scenarios: &[&str]) -> Self {
        let set = RequirementSet {
            scored: scenarios.iter().copied().map(str::to_owned).collect(),
            not_scored: Vec::new(),
        };
        Self::new(leg, revision, &set, &Results::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rules_are_counted_separately() {
        let judged = |scenario: &str, faults| Judged {
            scenario: scenario.to_owned(),
            faults,
        };
        let score = Score {
            leg: Leg::Server,
            revision: Revision::V2025_11_25,
            scored: vec![
                judged("ping", Vec::new()),
                judged("tools-list", vec![Fault::EmptyList("tools")]),
                judged("prompts-list", vec![Fault::NoResult]),
            ],
            not_scored: vec![judged("server-sse-polling", vec![Fault::Vacuous])],
        };
        assert_eq!(
            score.to_string(),
            "server 2025-11-25: 2/3 scored, 1 strictly; not scored 1/1, 0 strictly"
        );
        let shortfalls: Vec<String> = score.shortfalls().map(|s| s.to_string()).collect();
        assert_eq!(
            shortfalls,
            [
                "tools-list: the list of tools is empty",
                "prompts-list: no result",
                "server-sse-polling: not scored, nothing was checked but the schema",
            ]
        );
    }
}
