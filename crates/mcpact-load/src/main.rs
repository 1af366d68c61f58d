//! Runs the whole comparison and writes what it saw as JSON to standard output.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use mcpact_load::error::LoadError;
use mcpact_load::plan::{Effort, Programs, run};
use mcpact_load::relay::Recipe;

#[derive(Debug, Parser)]
struct Options {
    /// Number of intervals per subject.
    #[arg(long, default_value = "5")]
    rounds: usize,
    /// Length of an interval in milliseconds.
    #[arg(long, default_value = "1000")]
    milliseconds: u64,
    /// Filter on names; sessions are weighed under `memory`.
    #[arg(long, default_value = "")]
    only: String,
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

#[tokio::main]
async fn main() -> Result<(), LoadError> {
    let options = Options::parse();
    let effort = Effort {
        rounds: options.rounds,
        stretch: Duration::from_millis(options.milliseconds),
    };
    let recipes = options.recipes()?;
    let findings = run(&Programs::beside_us()?, effort, &options.only, &recipes).await?;
    Ok(serde_json::to_writer_pretty(
        std::io::stdout().lock(),
        &findings,
    )?)
}
