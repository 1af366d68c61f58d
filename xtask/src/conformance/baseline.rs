//! Known failures, with reasons.

use mcpact_spec::Revision;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::leg::Leg;
use super::score::Score;
use crate::checkout::Checkout;
use crate::failure::Failure;

const FILE: &str = "conformance-baseline.toml";

/// `conformance-baseline.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    #[serde(default)]
    expected: Vec<Entry>,
}

/// Scenarios that are expected to fall short.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    leg: Leg,
    #[serde(deserialize_with = "known_revision")]
    revision: Revision,
    /// A name, or the beginning of names with `*` after it.
    scenario: String,
    #[serde(deserialize_with = "some_words")]
    pub(super) reason: String,
}

impl Baseline {
    /// Reads the file of the checkout.
    pub(super) fn read(checkout: &Checkout) -> Result<Self, Failure> {
        toml::from_str(&checkout.read(FILE)?).map_err(|source| Failure::Toml {
            path: checkout.path(FILE),
            source,
        })
    }

    /// The entry that expects the scenario to fall short.
    pub(super) fn entry_for(&self, score: &Score, scenario: &str) -> Option<&Entry> {
        let fits = |entry: &&Entry| entry.is_about(score) && entry.names(scenario);
        self.expected.iter().find(fits)
    }

    /// Failures without an entry.
    pub(super) fn unexpected(&self, scores: &[Score]) -> Vec<String> {
        let in_score = |score| {
            let shortfalls = Score::shortfalls(score);
            let unexpected = shortfalls.filter(|s| self.entry_for(score, s.scenario()).is_none());
            unexpected.map(|s| format!("{} {} {s}", score.leg, score.revision.as_str()))
        };
        scores.iter().flat_map(in_score).collect()
    }

    /// Entries without a failure. Entries about a set that did not run are kept.
    pub(super) fn stale(&self, scores: &[Score]) -> Vec<String> {
        let stale = self.expected.iter().filter(|entry| entry.is_stale(scores));
        let told = stale.map(|entry| {
            let (revision, scenario) = (entry.revision.as_str(), &entry.scenario);
            format!("{} {revision} `{scenario}`: stale in `{FILE}`", entry.leg)
        });
        told.collect()
    }
}

impl Entry {
    fn is_about(&self, score: &Score) -> bool {
        self.leg == score.leg && self.revision == score.revision
    }

    fn names(&self, scenario: &str) -> bool {
        match self.scenario.strip_suffix('*') {
            Some(beginning) => scenario.starts_with(beginning),
            None => scenario == self.scenario,
        }
    }

    fn is_stale(&self, scores: &[Score]) -> bool {
        let mut about = scores
            .iter()
            .filter(|score| self.is_about(score))
            .peekable();
        let has_run = about.peek().is_some();
        let is_needed = about.any(|score| score.shortfalls().any(|s| self.names(s.scenario())));
        has_run && !is_needed
    }
}

fn known_revision<'de, D: Deserializer<'de>>(input: D) -> Result<Revision, D::Error> {
    let text = String::deserialize(input)?;
    super::revision(&text).map_err(D::Error::custom)
}

fn some_words<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let text = String::deserialize(input)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("every entry needs a reason"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: Revision = Revision::V2026_07_28;
    const LEGACY: Revision = Revision::V2025_11_25;

    fn entry(leg: &str, revision: &str, scenario: &str, reason: &str) -> String {
        format!(
            "[[expected]]\nleg = \"{leg}\"\nrevision = \"{revision}\"\nscenario = \"{scenario}\"\nreason = \"{reason}\"\n"
        )
    }

    fn baseline(scenario: &str) -> Baseline {
        toml::from_str(&entry("client", "2026-07-28", scenario, "later")).unwrap()
    }

    fn failing(scenarios: &[&str]) -> [Score; 1] {
        [Score::with_failing(Leg::Client, MODERN, scenarios)]
    }

    #[test]
    fn expected_failures_are_not_findings() {
        let scores = failing(&["auth/dpop", "auth/iss-supported"]);
        for pattern in ["auth/*", "*"] {
            assert!(baseline(pattern).unexpected(&scores).is_empty());
            assert!(baseline(pattern).stale(&scores).is_empty());
        }
    }

    #[test]
    fn unexpected_failures_are_findings() {
        let scores = failing(&["auth/dpop", "tools_call"]);
        assert_eq!(
            baseline("auth/*").unexpected(&scores),
            ["client 2026-07-28 tools_call: no result"]
        );
        assert_eq!(Baseline::default().unexpected(&scores).len(), 2);
    }

    #[test]
    fn a_name_without_star_is_the_whole_name() {
        let scores = failing(&["auth/dpop", "auth/dpop-nonce"]);
        assert_eq!(
            baseline("auth/dpop").unexpected(&scores),
            ["client 2026-07-28 auth/dpop-nonce: no result"]
        );
    }

    #[test]
    fn an_entry_that_nothing_needs_is_stale() {
        assert_eq!(
            baseline("auth/*").stale(&failing(&["tools_call"])),
            ["client 2026-07-28 `auth/*`: stale in `conformance-baseline.toml`"]
        );
    }

    #[test]
    fn an_entry_counts_for_its_own_set_only() {
        let other = [Score::with_failing(Leg::Client, LEGACY, &["auth/dpop"])];
        assert_eq!(
            baseline("auth/*").unexpected(&other),
            ["client 2025-11-25 auth/dpop: no result"]
        );
        let other = [Score::with_failing(Leg::Server, MODERN, &["auth/dpop"])];
        assert_eq!(
            baseline("auth/*").unexpected(&other),
            ["server 2026-07-28 auth/dpop: no result"]
        );
        assert!(baseline("auth/*").stale(&other).is_empty());
        assert!(baseline("auth/*").stale(&[]).is_empty());
    }

    #[test]
    fn entries_need_a_reason_a_leg_and_a_revision_of_the_suite() {
        for (text, complaint) in [
            (entry("client", "2026-07-28", "a", " "), "needs a reason"),
            (entry("client", "2024-11-05", "a", "b"), "2025-11-25"),
            (entry("proxy", "2026-07-28", "a", "b"), "proxy"),
            ("[[expected]]\nleg = \"client\"\n".to_owned(), "missing"),
            ("[[accepted]]\n".to_owned(), "accepted"),
        ] {
            let refused = toml::from_str::<Baseline>(&text).err().unwrap().to_string();
            assert!(refused.contains(complaint), "{refused}");
        }
    }
}
