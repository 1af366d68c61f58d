mod instructions;
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
}

/// The two kinds of benchmarks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Single operations: time and instructions.
    Paths,
    /// Whole servers and clients beside a peer.
    Load,
}

impl Options {
    fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Measures single operations and whole programs under load, prints the result and writes it to `bench.md` in the target directory.
///
/// A target that is missed is no failure: measuring is not testing.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let target = target_folder(checkout);
    let mut text = String::from("# Benchmarks\n\nRatios compare two numbers of this run.\n");
    if options.wants(Part::Paths) {
        text = format!("{text}\n{}", paths(checkout, &target, options)?);
    }
    if options.wants(Part::Load) {
        report::heading("load");
        let findings = load::measure(checkout, &target, options)?;
        text = format!("{text}\n{}", load::page::section(&findings));
    }
    let page = target.join("bench.md");
    fs::write(&page, &text).map_err(Failure::file(&page))?;
    report::heading("result");
    report::say(text.trim_end());
    Ok(())
}

fn paths(checkout: &Checkout, target: &Path, options: &Options) -> Result<String, Failure> {
    report::heading("time");
    times::measure(checkout, target, options)?;
    report::heading("instructions");
    let counted = instructions::count(checkout, target)?;
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
