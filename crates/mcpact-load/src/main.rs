//! Runs the whole comparison and writes what it saw as JSON to standard output.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use mcpact_load::plan::{Effort, Programs, run};
use mcpact_load::relay::Recipe;
use mcpact_load::trouble::Trouble;

#[derive(Debug, Parser)]
struct Options {
    /// How many stretches each subject gets.
    #[arg(long, default_value = "5")]
    rounds: usize,
    /// How long a stretch is, in milliseconds.
    #[arg(long, default_value = "1000")]
    milliseconds: u64,
    /// Only the contests whose name contains this; the sessions are weighed under `memory`.
    #[arg(long, default_value = "")]
    only: String,
    /// A file with the relays of others, as JSON.
    #[arg(long)]
    relays: Option<PathBuf>,
}

impl Options {
    fn recipes(&self) -> Result<Vec<Recipe>, Trouble> {
        match &self.relays {
            Some(file) => Ok(serde_json::from_slice(&std::fs::read(file)?)?),
            None => Ok(Vec::new()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Trouble> {
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
