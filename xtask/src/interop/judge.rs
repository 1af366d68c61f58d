//! Judgement of the report of a pair.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use mcpact_spec::{Era, Revision};

use super::feature::{Feature, Outcome, Told};
use super::manifest::Lack;
use super::pair::{Pair, Ran};

/// Lines of a log that are shown.
const LOG_LINES: usize = 12;

/// Report of a pair and its problems.
pub(super) struct Verdict<'a> {
    pub(super) pair: &'a Pair<'a>,
    cells: Vec<Cell<'a>>,
    trouble: Vec<String>,
    logs: Vec<PathBuf>,
}

/// Result of one feature.
pub(super) struct Cell<'a> {
    pub(super) feature: Feature,
    told: Option<Told>,
    expected: Option<&'a Lack>,
}

/// Mark of a cell in the table.
pub(super) enum Mark<'a> {
    Works,
    /// Not offered, for this reason.
    Absent(&'a str),
    /// Wrong, and how.
    Wrong(String),
    /// No result, which is an error too.
    Missing,
}

impl<'a> Verdict<'a> {
    /// Reads the report of the client.
    pub(super) fn new(pair: &'a Pair<'a>, ran: Ran) -> Self {
        let mut told: Vec<Told> = Vec::new();
        let mut trouble = Vec::from_iter(ran.trouble);
        for line in ran.output.lines() {
            match serde_json::from_str::<Told>(line) {
                Ok(one) if told.iter().any(|other| other.feature == one.feature) => {
                    trouble.push(format!("`{}` is reported twice", one.feature));
                }
                Ok(one) => told.push(one),
                Err(error) => trouble.push(format!("`{line}` is not a result: {error}")),
            }
        }
        let cell = |feature: Feature| Cell {
            feature,
            told: told.iter().find(|one| one.feature == feature).cloned(),
            expected: pair
                .absent
                .iter()
                .find(|entry| entry.features.contains(&feature))
                .copied(),
        };
        let cells: Vec<Cell<'_>> = Feature::ALL.into_iter().map(cell).collect();
        let mut verdict = Self {
            pair,
            cells,
            trouble,
            logs: ran.logs,
        };
        verdict.trouble.extend(verdict.wrong_revision());
        verdict
    }

    /// The cells, in the order of the table.
    pub(super) fn cells(&self) -> &[Cell<'a>] {
        &self.cells
    }

    /// Negotiated revision, if reported.
    pub(super) fn revision(&self) -> &str {
        let negotiated = self
            .cells
            .iter()
            .find(|cell| cell.feature == Feature::Negotiate);
        let told = negotiated.and_then(|cell| cell.told.as_ref());
        told.filter(|told| told.outcome == Outcome::Works)
            .map_or("-", |told| told.note.as_str())
    }

    fn wrong_revision(&self) -> Option<String> {
        let revision = self.revision();
        let is_right = match (self.pair.mode, Revision::parse(revision)) {
            (_, None) => revision == "-",
            ("legacy", Some(revision)) => revision.era() == Era::Legacy,
            ("modern", Some(revision)) => revision.era() == Era::Modern,
            ("auto", Some(_)) => true,
            (pinned, Some(revision)) => revision.as_str() == pinned,
        };
        (!is_right).then(|| format!("`{revision}` is not what the mode asks for"))
    }

    /// All problems, with the last log lines of both programs.
    pub(super) fn findings(&self) -> Vec<String> {
        let name = self.pair.name();
        let wrong = self.cells.iter().filter_map(|cell| match cell.mark() {
            Mark::Wrong(how) => Some(format!("{name}: {}: {how}", cell.feature)),
            Mark::Works | Mark::Absent(_) | Mark::Missing => None,
        });
        let trouble = self.trouble.iter().map(|line| format!("{name}: {line}"));
        let mut findings: Vec<String> = trouble.chain(wrong).collect();
        let missing = self
            .cells
            .iter()
            .filter(|cell| matches!(cell.mark(), Mark::Missing));
        let missing: Vec<String> = missing.map(|cell| cell.feature.to_string()).collect();
        if !missing.is_empty() {
            findings.push(format!("{name}: no result for {}", missing.join(", ")));
        }
        if !findings.is_empty() {
            findings.extend(self.last_log_lines());
        }
        findings
    }

    fn last_log_lines(&self) -> Vec<String> {
        let mut words = Vec::new();
        for log in &self.logs {
            let text = fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines.len().saturating_sub(LOG_LINES);
            if let Some(lines) = lines.get(last..).filter(|lines| !lines.is_empty()) {
                words.push(format!("  `{}` ends with:", log.display()));
                words.extend(lines.iter().map(|line| format!("    {line}")));
            }
        }
        words
    }
}

impl Cell<'_> {
    /// Mark in the table.
    pub(super) fn mark(&self) -> Mark<'_> {
        let Some(told) = &self.told else {
            return Mark::Missing;
        };
        match (told.outcome, self.expected) {
            (Outcome::Works, None) => Mark::Works,
            (Outcome::Works, Some(_)) => {
                Mark::Wrong("it works; its entry under `absent` is stale".to_owned())
            }
            (Outcome::Absent, Some(entry)) => Mark::Absent(&entry.reason),
            (Outcome::Absent, None) => {
                Mark::Wrong(format!("absent, but no entry expects that: {}", told.note))
            }
            (Outcome::Fails, _) => Mark::Wrong(told.note.clone()),
        }
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count =
            |is: fn(&Mark<'_>) -> bool| self.cells.iter().filter(|cell| is(&cell.mark())).count();
        let works = count(|mark| matches!(mark, Mark::Works));
        let wrong =
            count(|mark| matches!(mark, Mark::Wrong(_) | Mark::Missing)) + self.trouble.len();
        write!(
            f,
            "{}: {works} of {} work",
            self.pair.name(),
            self.cells.len()
        )?;
        match wrong {
            0 => Ok(()),
            wrong => write!(f, ", {wrong} failed"),
        }
    }
}

#[cfg(test)]
mod tests;
