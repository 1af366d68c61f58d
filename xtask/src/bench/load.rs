//! Whole servers and clients under load, beside the peer and the floors.

mod bridge_promises;
mod gateway_promises;
pub(super) mod page;
mod promises;
mod relays;

use std::path::Path;

use serde::Deserialize;

use super::Options;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program};

/// Enough to see that everything works.
const QUICK: [&str; 4] = ["--rounds", "1", "--milliseconds", "100"];

/// Result of one subject in one contest.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    contest: String,
    /// Calls in flight at a time.
    open: u32,
    subject: String,
    /// Answers per second.
    rate: f64,
    /// In nanoseconds, as are the others.
    p50: f64,
    p99: f64,
    cpu: f64,
    /// The most memory that it held, in bytes, where that was looked at.
    resident: Option<f64>,
}

/// A relay of others that could not do what was asked of it.
#[derive(Debug, Deserialize)]
pub(super) struct Failed {
    contest: String,
    subject: String,
    why: String,
}

/// Memory of an idle session.
#[derive(Debug, Deserialize)]
pub(super) struct Weight {
    subject: String,
    stream: String,
    bytes: f64,
}

/// Everything that the load driver reported.
#[derive(Debug, Deserialize)]
pub(super) struct Findings {
    rows: Vec<Row>,
    weights: Vec<Weight>,
    failures: Vec<Failed>,
}

/// Builds the subjects and loads them.
pub(super) fn measure(
    checkout: &Checkout,
    target: &Path,
    options: &Options,
) -> Result<Findings, Failure> {
    let words =
        "build --release --package mcpact-load --package mcpact-cli --features mcpact-load/rmcp";
    run_program(cargo(checkout).args(words.split(' ')))?;
    let program = target.join("release/mcpact-load");
    let relays = relays::install(checkout)?;
    let mut command = program_at(checkout, program.clone());
    // What the bridge learns about a server must not outlive the run.
    command.env("XDG_CACHE_HOME", target.join("release/cache"));
    command.arg("--relays").arg(relays);
    if options.quick {
        command.args(QUICK);
    }
    let text = capture(&mut command)?;
    serde_json::from_str(&text).map_err(|source| Failure::Json {
        path: program,
        source,
    })
}
