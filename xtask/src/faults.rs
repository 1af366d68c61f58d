//! The faults of `mcpact-faults`, judged.
//!
//! Counts and memory are judged always. Times are judged only when the machine does nothing else: a quick
//! run, which is part of `cargo xtask test`, shows them.

mod judge;
mod table;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::bench::target_folder;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, program_at, run as run_program};
use crate::report;
use judge::Row;

/// Result file.
const TABLE: &str = "target/faults.md";

/// Options of `cargo xtask faults`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run a little of every fault; times are shown, not judged.
    #[arg(long, conflicts_with = "long")]
    quick: bool,
    /// Add the load of many minutes.
    #[arg(long)]
    long: bool,
    /// Run only this one, such as `F07`.
    #[arg(long)]
    only: Option<String>,
}

impl Options {
    /// Options of the quick form.
    pub(crate) fn quick() -> Self {
        Self {
            quick: true,
            long: false,
            only: None,
        }
    }

    const fn effort(&self) -> &'static str {
        match (self.quick, self.long) {
            (true, _) => "quick",
            (false, false) => "full",
            (false, true) => "long",
        }
    }
}

/// Runs the faults, writes the table, and fails if a value is out of bounds.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let driver = driver(checkout, options)?;
    let mut command = program_at(checkout, &driver);
    command.args(["run", "--effort", options.effort()]);
    if let Some(only) = &options.only {
        command.args(["--only", only]);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Failure::file(&driver))?;
    let mut rows = Vec::new();
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines.into_iter().flat_map(BufRead::lines) {
        let row = parse(&driver, &line.map_err(Failure::file(&driver))?)?;
        report::say(table::text(&row, options.quick));
        rows.push(row);
    }
    let status = child.wait().map_err(Failure::file(&driver))?;
    let page = checkout.path(TABLE);
    // What is built may be built elsewhere.
    if let Some(folder) = page.parent() {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    }
    fs::write(&page, table::page(&rows, options.quick)).map_err(Failure::file(&page))?;
    let mut findings: Vec<String> = rows
        .iter()
        .flat_map(|row| row.findings(options.quick))
        .collect();
    if rows.is_empty() || !status.success() {
        findings.push(format!(
            "the driver ended after {} rows ({status})",
            rows.len()
        ));
    }
    Failure::unless_clean(
        "faults",
        findings,
        "the whole table is in `target/faults.md`",
    )
}

/// Builds the driver and the programs that it runs.
fn driver(checkout: &Checkout, options: &Options) -> Result<PathBuf, Failure> {
    // What the tests have built is good enough for counts; times are those of what people run.
    let (words, folder) = if options.quick {
        ("build --workspace --bins", "debug")
    } else {
        ("build --release -p mcpact-cli -p mcpact-faults", "release")
    };
    run_program(cargo(checkout).args(words.split(' ')))?;
    Ok(target_folder(checkout).join(folder).join("mcpact-faults"))
}

fn parse(driver: &Path, line: &str) -> Result<Row, Failure> {
    serde_json::from_str(line).map_err(|source| Failure::Json {
        path: driver.to_owned(),
        source,
    })
}
