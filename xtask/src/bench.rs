pub(crate) mod instructions;
mod load;
pub(crate) mod markdown;
mod rows;
mod targets;
mod times;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::instructions::committed;
use crate::report;

use instructions::Counted;
use rows::{Measured, ROWS};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure for a moment only: enough to see that it works, too little to compare.
    #[arg(long)]
    quick: bool,
    /// Measure only this part.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Replace `docs/PERFORMANCE.md` and its charts.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Write the page again from the figures of the last run, for example with new reasons of missed goals.
    #[arg(long)]
    again: bool,
}

/// Parts of the whole run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Single operations: time and instructions.
    Paths,
    /// Everything but the single operations.
    Load,
    /// Calls through `mcpact bridge`.
    Bridge,
    /// Calls through `mcpact serve` with one server.
    Serve,
    /// Large texts through both.
    Large,
    /// Many servers and many sessions behind `mcpact serve`.
    Gateway,
    /// Memory of idle processes and sessions.
    Memory,
    /// Relays and libraries of other projects beside ours.
    Peers,
}

/// Page in the repository, and the directory of its charts.
const PAGE: &str = "docs/PERFORMANCE.md";
const CHARTS: &str = "docs/benchmarks";

/// Measures single operations and whole programs under load, prints the result and writes it to `PERFORMANCE.md` in the
/// target directory.
///
/// A missed goal is no failure: measuring is not testing.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let target = target_folder(checkout);
    let mut text = String::from(
        "# Performance\n\nWritten by `cargo xtask bench --write`. Ratios compare two figures of the same run.\n",
    );
    let mut charts = Vec::new();
    if options.only != Some(Part::Paths) {
        report::heading("load");
        let findings = load::measure(checkout, &target, options)?;
        let cells = committed(checkout)?;
        let section = load::page::section(&findings, &cells, &load::effort(options));
        text = format!("{text}\n{}", section.text);
        charts = section.charts;
    }
    if options.only.is_none_or(|only| only == Part::Paths) {
        text = format!("{text}\n{}", paths(checkout, &target, options)?);
    }
    let (page, folder) = match options.write {
        true => (checkout.path(PAGE), checkout.path(CHARTS)),
        false => (target.join("PERFORMANCE.md"), target.join("benchmarks")),
    };
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    for (name, svg) in charts {
        let file = folder.join(format!("{name}.svg"));
        fs::write(&file, svg).map_err(Failure::file(&file))?;
    }
    fs::write(&page, &text).map_err(Failure::file(&page))?;
    report::heading("result");
    report::say(text.trim_end());
    Ok(())
}

fn paths(checkout: &Checkout, target: &Path, options: &Options) -> Result<String, Failure> {
    let counted = match options.again {
        true => Counted::Done,
        false => {
            report::heading("time");
            times::measure(checkout, target, options)?;
            report::heading("instructions");
            instructions::count(checkout, target)?
        }
    };
    let measured = read(target, &counted)?;
    let judged = targets::judge(&measured);
    Ok(markdown::section(&measured, &judged, &counted))
}

/// Target directory of cargo.
pub(crate) fn target_folder(checkout: &Checkout) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || checkout.path("target"),
        |folder| checkout.root().join(folder),
    )
}

fn read(target: &Path, counted: &Counted) -> Result<Vec<Measured>, Failure> {
    ROWS.iter()
        .map(|row| {
            let instructions = match counted {
                Counted::Done => Some(instructions::read(target, row)?),
                Counted::Skipped(_) => None,
            };
            Ok(Measured {
                row,
                median: times::median(target, row)?,
                fastest: times::fastest(target, row)?,
                bytes: times::bytes(target, row)?,
                instructions,
            })
        })
        .collect()
}

/// The JSON in a file that a measuring tool wrote.
fn json(path: &Path) -> Result<Value, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::file(path))?;
    serde_json::from_str(&text).map_err(|source| Failure::Json {
        path: path.to_owned(),
        source,
    })
}

/// A number that should be there and is not.
fn missing(path: &Path, member: &str) -> Failure {
    Failure::Findings {
        check: "bench",
        lines: vec![format!("`{}` has no `{member}`", path.display())],
        hint: "the measuring tool may have changed its files",
    }
}
