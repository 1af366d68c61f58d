//! Section of the report about the load tests.

use super::promises::{Outcome, judge};
use super::{Failed, Findings, Row, Weight, bridge_promises, gateway_promises};
use crate::bench::markdown::{table, time};

/// Promises first, then every number.
pub(in crate::bench) fn section(findings: &Findings) -> String {
    let mut outcomes = judge(findings);
    outcomes.extend(bridge_promises::judge(findings));
    outcomes.extend(gateway_promises::judge(findings));
    let promises = table(
        &["promise", "promised", "seen", ""],
        outcomes.iter().map(verdict).collect(),
    );
    let numbers = table(
        &[
            "contest",
            "open",
            "subject",
            "answers/s",
            "p50",
            "p99",
            "added p99",
            "CPU/answer",
            "memory",
        ],
        findings
            .rows
            .iter()
            .map(|row| numbers(findings, row))
            .collect(),
    );
    let weights = table(
        &["idle session", "with", "memory"],
        findings.weights.iter().map(weight).collect(),
    );
    let failures: String = findings.failures.iter().map(failed).collect();
    format!(
        "## Under load\n\n1 KiB `tools/call`. The subjects of a contest alternate, and each number is the median of its \
         stretches.\nA floor echoes or passes on bytes without any protocol; what a subject adds is measured against it. \
         The workers\nof a bridge are one client with so many calls open; a floor, which cannot translate, has a server \
         of its client's era\nbehind it.\n\n{promises}\n{numbers}\n{weights}{failures}"
    )
}

fn verdict(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.what.clone(),
        outcome.promised.clone(),
        outcome.seen.clone(),
        if outcome.is_met { "met" } else { "missed" }.to_owned(),
    ]
}

fn numbers(findings: &Findings, row: &Row) -> Vec<String> {
    let floor = findings.find(&row.contest, row.open, "floor");
    let added = floor.filter(|_| row.subject != "floor");
    vec![
        row.contest.clone(),
        row.open.to_string(),
        row.subject.clone(),
        format!("{:.0}", row.rate),
        time(row.p50),
        time(row.p99),
        added.map_or_else(String::new, |floor| time((row.p99 - floor.p99).max(0.0))),
        time(row.cpu),
        row.resident
            .map_or_else(String::new, |bytes| format!("{:.1} MB", bytes / 1e6)),
    ]
}

fn failed(failed: &Failed) -> String {
    let Failed {
        contest,
        subject,
        why,
    } = failed;
    format!("\nNot measured: {subject} in `{contest}`: {why}\n")
}

fn weight(weight: &Weight) -> Vec<String> {
    vec![
        weight.subject.clone(),
        weight.stream.clone(),
        format!("{:.1} KiB", weight.bytes / 1024.0),
    ]
}
