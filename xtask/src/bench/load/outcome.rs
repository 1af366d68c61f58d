//! Comparison of the findings with the goals.

use super::goals::{Against, Bound, Figure, GOALS, Goal, MEMORY, MemoryGoal, REASONS};
use super::{Findings, Row, Sample};
use crate::bench::markdown::time;

/// Share of a core above which the load generator limits what it measures.
pub(super) const GENERATOR_LIMIT: f64 = 0.4;

/// Subjects that are not relays of other projects.
const OURS: &[&str] = &["direct", "floor", "bridge", "serve", "ours"];

/// Figures of all rounds in three numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

/// Result of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed,
    /// The load generator used too much of a core.
    Void,
}

/// A goal and what was measured.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) what: String,
    pub(super) goal: String,
    pub(super) best: String,
    pub(super) median: String,
    pub(super) spread: String,
    /// Median share of a core of the load generator, of the busier side of a ratio.
    pub(super) generator: Option<f64>,
    pub(super) verdict: Verdict,
}

impl Spread {
    /// Returns `None` without rounds.
    pub(super) fn of(mut all: Vec<f64>) -> Option<Self> {
        all.sort_unstable_by(f64::total_cmp);
        Some(Self {
            low: *all.first()?,
            median: *all.get(all.len() / 2)?,
            high: *all.last()?,
        })
    }

    pub(super) fn spelled(self, unit: impl Fn(f64) -> String) -> String {
        format!("{}–{}", unit(self.low), unit(self.high))
    }
}

impl Row {
    pub(super) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(figure).collect())
    }

    /// Ratio to another row in each round.
    pub(super) fn ratio(&self, other: &Self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        let rounds = self.rounds.iter().zip(&other.rounds);
        let ratios = rounds.map(|(one, other)| figure(one) / figure(other).max(f64::MIN_POSITIVE));
        Spread::of(ratios.collect())
    }

    pub(super) fn generator(&self) -> f64 {
        let share = self.spread(|sample| sample.generator);
        share.map_or(0.0, |share| share.median)
    }
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Void => "void",
        }
    }
}

impl Outcome {
    /// Reason from the table, for goals that are not met.
    pub(super) fn reason(&self) -> &'static str {
        if self.verdict == Verdict::Met {
            return "";
        }
        let found = REASONS
            .iter()
            .find(|(start, _)| self.what.starts_with(start));
        found.map_or("", |(_, reason)| reason)
    }
}

/// Compares the findings with the goals; what was not measured is left out.
pub(super) fn judge(findings: &Findings) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for goal in GOALS {
        let each = goal.contests.iter();
        outcomes.extend(each.filter_map(|contest| outcome(findings, goal, contest)));
    }
    outcomes.extend(MEMORY.iter().filter_map(|goal| memory(findings, goal)));
    outcomes
}

fn outcome(findings: &Findings, goal: &Goal, contest: &str) -> Option<Outcome> {
    let row = findings.find(contest, goal.open, goal.subject)?;
    let base = match goal.against {
        Against::Nothing => None,
        Against::Subject(name) => Some(findings.find(contest, goal.open, name)?),
        Against::FastestPeer => Some(fastest_peer(findings, contest, goal.open)?),
    };
    let figure = |sample: &Sample| match goal.figure {
        Figure::Rate => sample.rate,
        Figure::P50 => sample.p50,
        Figure::Cpu | Figure::Peak => sample.cpu,
    };
    let spread = match (goal.figure, base) {
        (Figure::Peak, _) => Spread::of(vec![row.resident?])?,
        (_, Some(base)) => row.ratio(base, figure)?,
        (_, None) => row.spread(figure)?,
    };
    let generator = base.map_or(0.0, Row::generator).max(row.generator());
    let unit = |value: f64| match (goal.figure, base) {
        (_, Some(_)) => format!("{value:.2}x"),
        (Figure::Peak, None) => megabytes(value),
        (_, None) => time(value),
    };
    let name = match goal.figure {
        Figure::Rate => "rate",
        Figure::P50 => "p50",
        Figure::Cpu => "CPU per call",
        Figure::Peak => "peak memory",
    };
    let against = base.map_or_else(String::new, |base| format!(" / {}", base.subject));
    let what = format!(
        "{contest}, {} open: {name} of {}{against}",
        goal.open, goal.subject
    );
    Some(judged(what, goal.bound, spread, Some(generator), unit))
}

fn memory(findings: &Findings, goal: &MemoryGoal) -> Option<Outcome> {
    let mut weights = findings.weights.iter();
    let weight = weights.find(|one| one.subject == goal.subject && one.what == goal.what)?;
    let spread = Spread::of(weight.rounds.clone())?;
    let what = format!("memory: {}, {}", goal.subject, goal.what);
    Some(judged(what, Bound::AtMost(goal.bytes), spread, None, bytes))
}

/// Judges by the median; the best round is the lowest or the highest one.
fn judged(
    what: String,
    bound: Bound,
    spread: Spread,
    generator: Option<f64>,
    unit: impl Fn(f64) -> String,
) -> Outcome {
    let (goal, best, is_met) = match bound {
        Bound::AtLeast(least) => (
            format!("≥ {}", unit(least)),
            spread.high,
            spread.median >= least,
        ),
        Bound::AtMost(most) => (
            format!("≤ {}", unit(most)),
            spread.low,
            spread.median <= most,
        ),
    };
    let is_void = generator.is_some_and(|share| share > GENERATOR_LIMIT);
    Outcome {
        what,
        goal,
        best: unit(best),
        median: unit(spread.median),
        spread: spread.spelled(&unit),
        generator,
        verdict: match (is_void, is_met) {
            (true, _) => Verdict::Void,
            (false, true) => Verdict::Met,
            (false, false) => Verdict::Missed,
        },
    }
}

fn fastest_peer<'a>(findings: &'a Findings, contest: &str, open: u32) -> Option<&'a Row> {
    let is_peer = |row: &&Row| {
        row.contest == contest && row.open == open && !OURS.contains(&row.subject.as_str())
    };
    let rate = |row: &Row| row.spread(|sample| sample.rate).map_or(0.0, |s| s.median);
    let peers = findings.rows.iter().filter(is_peer);
    peers.max_by(|one, other| rate(one).total_cmp(&rate(other)))
}

pub(super) fn bytes(value: f64) -> String {
    match value {
        value if value < 1e6 => format!("{:.1} KiB", value / 1024.0),
        value => megabytes(value),
    }
}

pub(super) fn megabytes(value: f64) -> String {
    format!("{:.1} MB", value / 1e6)
}

impl Findings {
    pub(super) fn find(&self, contest: &str, open: u32, subject: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.contest == contest && row.open == open && row.subject == subject)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::*;

    fn row(subject: &str, rates: &[f64], generator: f64) -> Row {
        let sample = |rate: &f64| Sample {
            rate: *rate,
            p50: 1.0,
            p99: 1.0,
            cpu: 1.0,
            generator,
        };
        Row {
            contest: String::from("relay, HTTP to HTTP, legacy"),
            open: 32,
            subject: subject.to_owned(),
            rounds: rates.iter().map(sample).collect(),
            resident: None,
        }
    }

    fn judged(rows: Vec<Row>) -> Vec<(String, String, Verdict)> {
        let findings = Findings {
            rows,
            weights: vec![Weight {
                subject: String::from("serve"),
                what: String::from("session without stream"),
                rounds: vec![1024.0, 3072.0, 2048.0],
            }],
            failures: Vec::new(),
        };
        let outcomes = judge(&findings).into_iter();
        outcomes
            .map(|one| (one.median, one.spread, one.verdict))
            .collect()
    }

    #[test]
    fn median_of_the_ratios_of_the_rounds_decides() {
        let floor = row("floor", &[10.0, 20.0, 10.0], 0.3);
        let bridge = row("bridge", &[9.0, 10.0, 8.0], 0.2);
        let peers = [row("slow", &[1.0], 0.1), row("fast", &[4.0], 0.1)];
        let rows = [floor, bridge].into_iter().chain(peers).collect();
        let cells =
            |median: &str, spread: &str, verdict| (median.to_owned(), spread.to_owned(), verdict);
        let expected = [
            cells("0.80x", "0.50x–0.90x", Verdict::Met),
            cells("2.25x", "2.25x–2.25x", Verdict::Met),
            cells("2.0 KiB", "1.0 KiB–3.0 KiB", Verdict::Met),
        ];
        assert_eq!(judged(rows), expected);
    }

    #[test]
    fn busy_load_generator_makes_a_row_void() {
        let busy = row("floor", &[10.0], 0.41);
        let rows = vec![busy, row("serve", &[7.9], 0.2)];
        assert_eq!(judged(rows)[0].2, Verdict::Void);
        let rows = vec![row("floor", &[10.0], 0.4), row("serve", &[7.1], 0.2)];
        assert_eq!(judged(rows)[0].2, Verdict::Missed);
    }
}
