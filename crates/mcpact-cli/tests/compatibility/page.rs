//! Generates `docs/COMPATIBILITY.md`.

use std::fmt::Write as _;

use mcpact_spec::Revision;

use crate::expected::{Expected, expected};
use crate::outcome::{Feature, Observed};
use crate::{Pair, Row};

const INTRODUCTION: &str = "\
# Compatibility between revisions

`mcpact bridge` connects clients and servers of different protocol revisions. For each of the 25 pairs of revisions, \
this page lists what works, what degrades, and what is impossible, with the reason.

A test generates this page. It runs the bridge in front of `mcpact everything --revisions R`, connects a client with a \
single revision, and uses every feature, on stdio and HTTP on both sides, and at `/mcp` of `mcpact serve` with flat names. It fails if the page differs; `cargo xtask \
compatibility` rewrites the page.
";

const READING: &str = "\
Rows are client revisions, columns are server revisions. A cell is the number of features that work; `~` is the number \
that degrade, `-` the number that are impossible.
";

/// Returns the whole page.
pub(crate) fn write(rows: &[Row]) -> String {
    let mut notes = Notes::default();
    let mut page = format!(
        "{INTRODUCTION}\n## At a glance\n\n{READING}\n{}",
        summary(rows)
    );
    let _ = write!(page, "\n{}\n", transports(rows));
    page.push_str("\n## Feature by feature\n");
    for client in Revision::ALL {
        let _ = write!(
            page,
            "\n### Clients of {client}\n\n{}",
            features(rows, client, &mut notes)
        );
    }
    let _ = write!(page, "\n## Notes\n\n{}", notes.list());
    page.push_str("\n## What the test does\n\n| feature | the client |\n|---|---|\n");
    for feature in Feature::ALL {
        let _ = writeln!(page, "| {} | {} |", feature.name(), feature.shown_by());
    }
    page
}

/// Returns the rows of a pair of revisions, one per pair of transports.
fn between(rows: &[Row], client: Revision, server: Revision) -> impl Iterator<Item = &Row> {
    rows.iter()
        .filter(move |row| row.pair.client == client && row.pair.server == server)
}

fn heading(first: &str) -> String {
    let revisions = Revision::ALL.map(|revision| format!("{revision} |"));
    let rule = "---|".repeat(Revision::ALL.len() + 1);
    format!("| {first} | {}\n|{rule}\n", revisions.join(" "))
}

fn summary(rows: &[Row]) -> String {
    let mut table = heading("client \\ server");
    for client in Revision::ALL {
        let cells = Revision::ALL.map(|server| count(rows, client, server));
        let _ = writeln!(table, "| {client} | {} |", cells.join(" | "));
    }
    table
}

/// Counts the features that work, degrade and are impossible, on the first pair of transports.
fn count(rows: &[Row], client: Revision, server: Revision) -> String {
    let Some(row) = between(rows, client, server).next() else {
        return String::new();
    };
    let count = |is: fn(&Observed) -> bool| row.seen.iter().filter(|(_, seen)| is(seen)).count();
    let works = count(|seen| matches!(seen, Observed::Works));
    let degrade = count(|seen| matches!(seen, Observed::Degrades(_)));
    let impossible = count(|seen| matches!(seen, Observed::Refused(_) | Observed::Broken(_)));
    let mut cell = works.to_string();
    for (mark, count) in [("~", degrade), ("-", impossible)] {
        if count > 0 {
            let _ = write!(cell, " {mark}{count}");
        }
    }
    cell
}

/// Lists the features that depend on the transport.
fn transports(rows: &[Row]) -> String {
    let mut different = Vec::new();
    for row in rows {
        let Pair { client, server, .. } = row.pair;
        let first = between(rows, client, server).next();
        for (feature, seen) in &row.seen {
            let usual =
                first.and_then(|first| first.seen.iter().find(|(other, _)| other == feature));
            if usual.is_some_and(|(_, usual)| kind(usual) != kind(seen)) {
                different.push(format!(
                    "- {}: {} {}",
                    row.pair.name(),
                    feature.name(),
                    kind(seen)
                ));
            }
        }
    }
    if different.is_empty() {
        return String::from(
            "The transport makes no difference: each cell is the same with stdio and HTTP on either side of the bridge, and at `/mcp` of `mcpact serve`.",
        );
    }
    format!(
        "The transport makes a difference here:\n\n{}",
        different.join("\n")
    )
}

const fn kind(seen: &Observed) -> &'static str {
    match seen {
        Observed::Works => "works",
        Observed::Degrades(_) => "degrades",
        Observed::Refused(_) | Observed::Broken(_) => "impossible",
    }
}

/// Returns a table with a row per feature and a column per server.
fn features(rows: &[Row], client: Revision, notes: &mut Notes) -> String {
    let mut table = heading("feature \\ server");
    for feature in Feature::ALL {
        let cells = Revision::ALL.map(|server| {
            let row = between(rows, client, server).next();
            let seen = row.and_then(|row| row.seen.iter().find(|(other, _)| *other == feature));
            let seen = seen.map_or("", |(_, seen)| kind(seen));
            // The observation matches the expectation, which has the reason.
            match expected(feature, client, server) {
                Expected::Works => seen.to_owned(),
                Expected::Degrades(loss) => format!("{seen} ({})", notes.number(loss.how())),
                Expected::Impossible(why) => format!("{seen} ({})", notes.number(why)),
            }
        });
        let _ = writeln!(table, "| {} | {} |", feature.name(), cells.join(" | "));
    }
    table
}

/// Numbered reasons.
#[derive(Default)]
struct Notes(Vec<&'static str>);

impl Notes {
    fn number(&mut self, text: &'static str) -> usize {
        let known = self.0.iter().position(|other| *other == text);
        let place = known.unwrap_or_else(|| {
            self.0.push(text);
            self.0.len() - 1
        });
        place + 1
    }

    fn list(&self) -> String {
        let lines = self.0.iter().zip(1..);
        lines
            .map(|(text, number)| format!("{number}. {text}\n"))
            .collect()
    }
}
