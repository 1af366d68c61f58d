//! Counts the instructions per call and writes them as JSON to standard output.

use std::path::PathBuf;

use clap::Parser;
use mcpact_load::error::LoadError;
use mcpact_load::instructions::{Calls, count};
use mcpact_load::plan::Programs;

#[derive(Debug, Parser)]
struct Options {
    /// The program to count, a release build of `mcpact`.
    mcpact: PathBuf,
    /// Calls of the short run.
    #[arg(long)]
    few: u64,
    /// Calls of the long run.
    #[arg(long)]
    many: u64,
    /// Filter on names, such as `bridge legacy modern stdio`.
    #[arg(long, default_value = "")]
    only: String,
}

#[tokio::main]
async fn main() -> Result<(), LoadError> {
    let Options {
        mcpact,
        few,
        many,
        only,
    } = Options::parse();
    let programs = Programs::beside_us()?;
    let cells = count(&programs, &mcpact, Calls { few, many }, &only).await?;
    Ok(serde_json::to_writer_pretty(
        std::io::stdout().lock(),
        &cells,
    )?)
}
