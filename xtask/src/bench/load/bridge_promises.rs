//! Performance targets of the bridge.

use super::promises::{Outcome, speed};
use super::{Findings, Row};

/// A comparison of two subjects in one contest.
struct Crossing {
    contest: &'static str,
    /// Minimum throughput with many calls in flight, as a multiple of the baseline.
    share: f64,
}

const fn crossing(contest: &'static str, share: f64) -> Crossing {
    Crossing { contest, share }
}

const CROSSINGS: &[Crossing] = &[
    crossing("bridge, HTTP to HTTP, legacy", 0.7),
    crossing("bridge, HTTP to HTTP, modern", 0.7),
    crossing("bridge, HTTP to HTTP, legacy to modern", 0.5),
    crossing("bridge, HTTP to HTTP, modern to legacy", 0.5),
    crossing("bridge, HTTP to stdio, legacy", 0.6),
    crossing("bridge, HTTP to stdio, modern", 0.6),
    crossing("bridge, HTTP to stdio, legacy to modern", 0.5),
    crossing("bridge, HTTP to stdio, modern to legacy", 0.5),
];

const LARGE: &[&str] = &[
    "bridge, HTTP to HTTP, legacy, 1 MiB",
    "bridge, HTTP to HTTP, modern, 1 MiB",
    "bridge, HTTP to HTTP, legacy to modern, 1 MiB",
    "bridge, HTTP to HTTP, modern to legacy, 1 MiB",
];

/// Maximum latency added to a single call, as a multiple of what the baseline adds.
const ADDED: f64 = 1.7;

/// Maximum time of a large result, as a multiple of the baseline.
const LARGE_COST: f64 = 1.5;

/// Maximum memory of the bridge under load, in bytes.
const MEMORY: f64 = 25e6;

const ONE: u32 = 1;
const MANY: u32 = 32;

/// Compares the findings with the promises; what was not measured is left out.
pub(super) fn judge(findings: &Findings) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for Crossing { contest, share } in CROSSINGS {
        outcomes.extend(speed(findings, contest, MANY, "floor", *share));
        outcomes.extend(added(findings, contest));
        outcomes.extend(
            [ONE, MANY]
                .map(|open| ahead(findings, contest, open, 1.0))
                .into_iter()
                .flatten(),
        );
    }
    outcomes.extend(LARGE.iter().filter_map(|contest| large(findings, contest)));
    outcomes.extend(memory(findings));
    outcomes
}

fn at_most(what: String, most: f64, seen: f64) -> Outcome {
    Outcome {
        what,
        promised: format!("at most {most:.2}x"),
        seen: format!("{seen:.2}x"),
        is_met: seen <= most,
    }
}

fn added(findings: &Findings, contest: &str) -> Option<Outcome> {
    let p50 = |subject: &str| findings.find(contest, ONE, subject).map(|row| row.p50);
    let (direct, floor, ours) = (p50("direct")?, p50("floor")?, p50("ours")?);
    let ratio = (ours - direct) / (floor - direct).max(1.0);
    let what = format!("{contest}, {ONE} open: added p50 against the floor's");
    Some(at_most(what, ADDED, ratio))
}

fn large(findings: &Findings, contest: &str) -> Option<Outcome> {
    let p50 = |subject: &str| findings.find(contest, ONE, subject).map(|row| row.p50);
    let what = format!("{contest}: p50 against the floor's");
    Some(at_most(what, LARGE_COST, p50("ours")? / p50("floor")?))
}

/// At least so many times as fast as the fastest of the others.
pub(super) fn ahead(findings: &Findings, contest: &str, open: u32, factor: f64) -> Option<Outcome> {
    let is_other = |row: &&Row| {
        row.contest == contest
            && row.open == open
            && !["direct", "floor", "ours"].contains(&row.subject.as_str())
    };
    let others = findings.rows.iter().filter(is_other);
    let best = others.max_by(|one, other| one.rate.total_cmp(&other.rate))?;
    speed(findings, contest, open, &best.subject, factor)
}

fn memory(findings: &Findings) -> Option<Outcome> {
    let is_ours = |row: &&Row| row.subject == "ours" && row.contest.starts_with("bridge");
    let ours = findings.rows.iter().filter(is_ours);
    let most = ours.filter_map(|row| row.resident).reduce(f64::max)?;
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    Some(Outcome {
        what: String::from("bridge: the most resident memory under load"),
        promised: format!("at most {}", megabytes(MEMORY)),
        seen: megabytes(most),
        is_met: most <= MEMORY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, open: u32, rate: f64, p50: f64) -> Row {
        Row {
            contest: String::from("bridge, HTTP to HTTP, legacy"),
            open,
            subject: subject.to_owned(),
            rate,
            p50,
            p99: p50,
            cpu: 1.0,
            resident: Some(26e6),
        }
    }

    #[test]
    fn the_floor_the_direct_call_and_the_best_peer_decide() {
        let rows = vec![
            row("direct", 1, 10.0, 100.0),
            row("floor", 1, 5.0, 150.0),
            row("ours", 1, 5.0, 180.0),
            row("slow peer", 1, 1.0, 900.0),
            row("fast peer", 1, 2.0, 500.0),
            row("floor", 32, 100.0, 1.0),
            row("ours", 32, 69.0, 1.0),
        ];
        let findings = Findings {
            rows,
            weights: Vec::new(),
            failures: Vec::new(),
        };
        let outcomes = judge(&findings);
        let seen: Vec<_> = outcomes
            .iter()
            .map(|o| (o.seen.as_str(), o.is_met))
            .collect();
        let expected = [
            ("0.69x", false),
            ("1.60x", true),
            ("2.50x", true),
            ("26.0 MB", false),
        ];
        assert_eq!(seen, expected);
    }
}
