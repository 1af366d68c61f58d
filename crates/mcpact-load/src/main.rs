//! Runs the whole comparison and writes what it saw as JSON to standard output.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use mcpact_load::error::LoadError;
use mcpact_load::plan::{Effort, Programs, Selection, run};
use mcpact_load::relay::Recipe;

#[derive(Debug, Parser)]
struct Options {
    /// Number of intervals per subject.
    #[arg(long, default_value = "5")]
    rounds: usize,
    /// Length of an interval in milliseconds.
    #[arg(long, default_value = "1000")]
    milliseconds: u64,
    /// Part of the name of a contest, or `memory`; all without it.
    #[arg(long)]
    only: Vec<String>,
    /// Relay of ours, `bridge`, `serve` or `direct`; all without it.
    #[arg(long)]
    subject: Vec<String>,
    /// A file with the relays of others, as JSON.
    #[arg(long)]
    relays: Option<PathBuf>,
}

impl Options {
    fn recipes(&self) -> Result<Vec<Recipe>, LoadError> {
        match &self.relays {
            Some(file) => Ok(serde_json::from_slice(&std::fs::read(file)?)?),
            None => Ok(Vec::new()),
        }
    }
}

// One thread: workers that wake each other across threads would take more processor time.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), LoadError> {
    let options = Options::parse();
    let effort = Effort {
        rounds: options.rounds,
        stretch: Duration::from_millis(options.milliseconds),
    };
    let recipes = options.recipes()?;
    let selection = Selection {
        contests: options.only,
        subjects: options.subject,
    };
    let findings = run(&Programs::beside_us()?, effort, &selection, &recipes).await?;
    Ok(serde_json::to_writer_pretty(
        std::io::stdout().lock(),
        &findings,
    )?)
}
