//! Whole servers and clients under load, beside the peer and the floors.

pub(super) mod page;
mod promises;

use std::path::Path;

use serde::Deserialize;

use super::Options;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program};

/// Enough to see that everything works.
const QUICK: [&str; 4] = ["--rounds", "1", "--milliseconds", "100"];

/// What one subject did in one contest.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    contest: String,
    /// How many calls were open at a time.
    open: u32,
    subject: String,
    /// Answers per second.
    rate: f64,
    /// In nanoseconds, as are the others.
    p50: f64,
    p99: f64,
    cpu: f64,
}

/// What an idle session weighs.
#[derive(Debug, Deserialize)]
pub(super) struct Weight {
    subject: String,
    stream: String,
    bytes: f64,
}

/// All that the load told.
#[derive(Debug, Deserialize)]
pub(super) struct Findings {
    rows: Vec<Row>,
    weights: Vec<Weight>,
}

/// Builds the subjects and loads them.
pub(super) fn measure(
    checkout: &Checkout,
    target: &Path,
    options: &Options,
) -> Result<Findings, Failure> {
    let words = "build --profile load --package mcpact-load --features rmcp";
    run_program(cargo(checkout).args(words.split(' ')))?;
    let program = target.join("load/mcpact-load");
    let mut command = program_at(checkout, program.clone());
    if options.quick {
        command.args(QUICK);
    }
    let text = capture(&mut command)?;
    serde_json::from_str(&text).map_err(|source| Failure::Json {
        path: program,
        source,
    })
}
