//! The result as a page: pair by feature, with the reasons below.

use std::fmt::Write as _;

use super::feature::Feature;
use super::judge::{Cell, Mark, Verdict};
use super::manifest::Manifest;
use super::pair::Pair;

/// Section of the page and its pairs.
struct Part {
    title: &'static str,
    holds: fn(&Pair<'_>) -> bool,
}

const PARTS: [Part; 3] = [
    Part {
        title: "Our client",
        holds: |pair| pair.client.is_none(),
    },
    Part {
        title: "Our server",
        holds: |pair| pair.server.is_none(),
    },
    Part {
        title: "Through the bridge",
        holds: |pair| pair.is_bridged(),
    },
];

/// The whole page.
pub(super) fn write(verdicts: &[Verdict<'_>], manifest: &Manifest) -> String {
    let mut page = String::from("# Interop\n\nWritten by `cargo xtask interop`.\n");
    let mut reasons = Vec::new();
    for Part { title, holds } in PARTS {
        let rows = verdicts.iter().filter(|verdict| holds(verdict.pair));
        let rows: Vec<String> = rows.map(|verdict| row(verdict, &mut reasons)).collect();
        if !rows.is_empty() {
            let _ = write!(page, "\n## {title}\n\n{}{}", heading(), rows.concat());
        }
    }
    for (reason, number) in reasons.iter().zip(1..) {
        let _ = write!(page, "\n{number}. not offered: {reason}");
    }
    page.push('\n');
    for line in manifest.left_out() {
        let _ = write!(page, "\n- left out: {line}");
    }
    page.push('\n');
    page
}

fn heading() -> String {
    let names: Vec<String> = Feature::ALL.iter().map(ToString::to_string).collect();
    let rule = "---|".repeat(names.len() + 1);
    format!("| pair | {} |\n|{rule}\n", names.join(" | "))
}

fn row(verdict: &Verdict<'_>, reasons: &mut Vec<String>) -> String {
    let mut cell = |cell: &Cell<'_>| match cell.mark() {
        Mark::Works if cell.feature == Feature::Negotiate => verdict.revision().to_owned(),
        Mark::Works => "works".to_owned(),
        Mark::Absent(reason) => format!("- ({})", number(reason, reasons)),
        Mark::Wrong(_) | Mark::Missing => "**fails**".to_owned(),
    };
    let cells: Vec<String> = verdict.cells().iter().map(&mut cell).collect();
    format!("| {} | {} |\n", verdict.pair.name(), cells.join(" | "))
}

/// The number of a reason, which is the same wherever it occurs.
fn number(reason: &str, reasons: &mut Vec<String>) -> usize {
    let known = reasons.iter().position(|other| other == reason);
    let place = known.unwrap_or_else(|| {
        reasons.push(reason.to_owned());
        reasons.len() - 1
    });
    place + 1
}
