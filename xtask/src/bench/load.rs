//! Whole servers and clients under load, beside the peer and the floors.

mod chart;
mod goals;
mod machine;
mod outcome;
pub(super) mod page;
mod relays;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{Options, Part};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program};

/// Number and length in milliseconds of the rounds.
const FULL: [&str; 2] = ["5", "500"];

/// Enough to see that everything works.
const QUICK: [&str; 2] = ["1", "100"];

/// Result of one subject in one contest.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    contest: String,
    /// Calls in flight at a time.
    open: u32,
    subject: String,
    rounds: Vec<Sample>,
    /// The most memory that it held, in bytes, where that was looked at.
    resident: Option<f64>,
}

/// Figures of one round.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Sample {
    /// Responses per second.
    rate: f64,
    /// In nanoseconds, as are the others.
    p50: f64,
    p99: f64,
    /// Processor time of the subject per response.
    cpu: f64,
    /// Processor time of the load generator, as a share of one core.
    generator: f64,
}

/// A relay of others that could not do what was asked of it.
#[derive(Debug, Deserialize)]
pub(super) struct Failed {
    contest: String,
    subject: String,
    why: String,
}

/// Memory of a process, or of something that it holds.
#[derive(Debug, Deserialize)]
pub(super) struct Weight {
    subject: String,
    what: String,
    /// Bytes in each round.
    rounds: Vec<f64>,
}

/// Everything that the load driver reported.
#[derive(Debug, Deserialize)]
pub(super) struct Findings {
    rows: Vec<Row>,
    weights: Vec<Weight>,
    failures: Vec<Failed>,
}

/// Builds the subjects and loads them, or reads what the last run has reported.
pub(super) fn measure(
    checkout: &Checkout,
    target: &Path,
    options: &Options,
) -> Result<Findings, Failure> {
    let report = target.join("bench.json");
    let read = |text: &str| {
        serde_json::from_str(text).map_err(|source| Failure::Json {
            path: report.clone(),
            source,
        })
    };
    if options.again {
        return read(&fs::read_to_string(&report).map_err(Failure::file(&report))?);
    }
    let words =
        "build --release --package mcpact-load --package mcpact-cli --features mcpact-load/rmcp";
    run_program(cargo(checkout).args(words.split(' ')))?;
    let program = target.join("release/mcpact-load");
    let mut command = program_at(checkout, program);
    // What the bridge learns about a server must not outlive the run.
    command.env("XDG_CACHE_HOME", target.join("release/cache"));
    if options.only.is_none_or(|part| part == Part::Peers) {
        command.arg("--relays").arg(relays::install(checkout)?);
    }
    let (contests, subjects) = options.only.map_or((&[][..], &[][..]), selected);
    for contest in contests {
        command.args(["--only", contest]);
    }
    for subject in subjects {
        command.args(["--subject", subject]);
    }
    let [rounds, milliseconds] = if options.quick { QUICK } else { FULL };
    command.args(["--rounds", rounds, "--milliseconds", milliseconds]);
    let text = capture(&mut command)?;
    fs::write(&report, &text).map_err(Failure::file(&report))?;
    read(&text)
}

/// Parts of names of contests, and our relays besides the floor; all of them where none is named.
fn selected(part: Part) -> (&'static [&'static str], &'static [&'static str]) {
    match part {
        Part::Paths | Part::Load => (&[], &[]),
        Part::Bridge => (&["relay", "translate"], &["direct", "bridge"]),
        Part::Serve => (&["relay", "translate"], &["direct", "serve"]),
        Part::Large => (&["large"], &[]),
        Part::Gateway => (&["gateway"], &[]),
        Part::Memory => (&["memory"], &[]),
        Part::Peers => (
            &[
                "relay",
                "server, ",
                "client, ",
                "gateway, 10 servers",
                "2,000 tools",
            ],
            &[],
        ),
    }
}

/// Number and length of the rounds in words.
pub(super) fn effort(options: &Options) -> String {
    let [rounds, milliseconds] = if options.quick { QUICK } else { FULL };
    format!("{rounds} rounds of {milliseconds} ms for each subject; three rounds of memory at most")
}
