//! Sections of `docs/PERFORMANCE.md` about the load tests.

use super::goals::SERVE_INSTRUCTIONS;
use super::machine::machine;
use super::outcome::{GENERATOR_LIMIT, Outcome, Spread, bytes, judge, megabytes};
use super::{Failed, Findings, Row, Weight, chart};
use crate::bench::markdown::{table, time};
use crate::instructions::Cell;

/// Charts that the page shows: name and SVG text.
pub(in crate::bench) struct Section {
    pub(in crate::bench) text: String,
    pub(in crate::bench) charts: Vec<(&'static str, String)>,
}

/// Goals, charts, then every number; `cells` are the committed counts of instructions.
pub(in crate::bench) fn section(findings: &Findings, cells: &[Cell], effort: &str) -> Section {
    let goals = table(
        &[
            "row",
            "best",
            "median",
            "spread",
            "goal",
            "generator",
            "result",
            "why missed",
        ],
        judge(findings).iter().map(verdict).collect(),
    );
    let drawn = chart::charts(findings);
    let images = drawn
        .iter()
        .map(|(name, title, _)| format!("![{title}](benchmarks/{name}.svg)\n\n"));
    let images: String = images.collect();
    let text = format!(
        "{}\n## Goals\n\n{goals}\n{}## Charts\n\n{images}## All figures\n\n{}\n{}{}",
        method(effort),
        instructions(cells),
        figures(findings),
        memory(findings),
        failures(findings),
    );
    let charts = drawn.into_iter().map(|(name, _, svg)| (name, svg));
    Section {
        text,
        charts: charts.collect(),
    }
}

fn method(effort: &str) -> String {
    let limit = GENERATOR_LIMIT * 100.0;
    format!(
        "## Method\n\n\
         Machine: {}.\n\n\
         Run: {effort}. The subjects of a contest alternate within each round, and another one begins in each round. \
         A ratio compares two subjects in the same round; the table shows the best round, the median and the spread (lowest to \
         highest). The median decides about a goal.\n\n\
         - **Call**: `tools/call` with 1 KiB of text that comes back, unless the row says more. `legacy` is revision \
         2025-11-25, `modern` is 2026-07-28. *echo* is JSON source code as text, in which every fifth byte or so is \
         escaped; its length counts with the escapes. *result* is a short call with a result of 1 MiB.\n\
         - **floor**: the bare proxy. It passes bytes between client and server with hyper, or over pipes, and reads \
         nothing but the id. **direct**: the server without a relay. **bridge**: `mcpact bridge`. **serve**: `mcpact serve` \
         at `/mcp` with one server in its config.\n\
         - **Translated calls** have a floor in front of a server of the client's era, because it cannot translate.\n\
         - **Load generator**: one thread, prebuilt requests; it reads status and length of each response and compares \
         the text of one in 256. *generator* is its processor time as a share of one core. A row above {limit:.0} % is \
         void: the generator limits what it measures.\n\
         - **Generator, relay and server share the machine.** With 32 open calls all cores are busy, so a rate contains the \
         cost of the generator and of the server, which are the same for all relays. *CPU per call* is that of the relay \
         process only.\n\
         - **Start** runs without any cached state. Its floor starts the same processes, 16 at a time, and initializes \
         each.\n\
         - **Memory** is resident memory; that of a session is the growth over 1,000 sessions (900 of a relay) divided by their number. The relays stand in front of a server on HTTP.\n\n\
         Absolute figures hold for this machine only.\n\n\
         Repeat it on a quiet machine with `cargo xtask bench`; `--write` replaces this page, `--only PART` measures \
         one part, and `--quick` shows only that everything works.\n",
        machine()
    )
}

fn verdict(outcome: &Outcome) -> Vec<String> {
    vec![
        outcome.what.clone(),
        outcome.best.clone(),
        outcome.median.clone(),
        outcome.spread.clone(),
        outcome.goal.clone(),
        outcome.generator.map_or_else(String::new, percent),
        outcome.verdict.as_str().to_owned(),
        outcome.reason().to_owned(),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Counts of `serve` beside those of `bridge`, from the committed page.
fn instructions(cells: &[Cell]) -> String {
    let serve = cells.iter().filter(|cell| cell.command == "serve");
    let rows = serve.filter_map(|cell| {
        let is_same =
            |other: &&Cell| other.command == "bridge" && other.key()[1..] == cell.key()[1..];
        let bridge = cells.iter().find(is_same)?;
        let ratio = cell.instructions as f64 / bridge.instructions.max(1) as f64;
        Some(vec![
            cell.key()[1..].join(", "),
            format!("{ratio:.2}x"),
            format!("≤ {SERVE_INSTRUCTIONS:.2}x"),
            match ratio <= SERVE_INSTRUCTIONS {
                true => "met".to_owned(),
                false => "missed".to_owned(),
            },
        ])
    });
    let head = [
        "client, server, upstream",
        "serve / bridge",
        "goal",
        "result",
    ];
    format!(
        "Instructions per call, from [instructions.md](benchmarks/instructions.md), which `cargo xtask instructions` \
         writes:\n\n{}\n",
        table(&head, rows.collect())
    )
}

fn figures(findings: &Findings) -> String {
    let head = [
        "contest",
        "open",
        "subject",
        "calls/s",
        "spread",
        "p50",
        "p99",
        "CPU per call",
        "generator",
        "peak memory",
    ];
    table(&head, findings.rows.iter().filter_map(figure).collect())
}

fn figure(row: &Row) -> Option<Vec<String>> {
    let rate = |value: f64| match value {
        value if value < 100.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    };
    let rates = row.spread(|sample| sample.rate)?;
    let cpu = row.spread(|sample| sample.cpu)?.median;
    Some(vec![
        row.contest.clone(),
        row.open.to_string(),
        row.subject.clone(),
        rate(rates.median),
        rates.spelled(rate),
        time(row.spread(|sample| sample.p50)?.median),
        time(row.spread(|sample| sample.p99)?.median),
        // That of a server without a relay is not measured.
        if cpu > 0.0 { time(cpu) } else { String::new() },
        percent(row.generator()),
        row.resident.map_or_else(String::new, megabytes),
    ])
}

fn memory(findings: &Findings) -> String {
    if findings.weights.is_empty() {
        return String::new();
    }
    let row = |weight: &Weight| {
        let spread = Spread::of(weight.rounds.clone())?;
        Some(vec![
            weight.subject.clone(),
            weight.what.clone(),
            bytes(spread.median),
            spread.spelled(bytes),
        ])
    };
    let rows = findings.weights.iter().filter_map(row);
    let head = ["subject", "memory of", "median", "spread"];
    format!("{}\n", table(&head, rows.collect()))
}

fn failures(findings: &Findings) -> String {
    let line = |failed: &Failed| {
        let Failed {
            contest,
            subject,
            why,
        } = failed;
        format!("Not measured: {subject} in `{contest}`: {why}\n\n")
    };
    findings.failures.iter().map(line).collect()
}
