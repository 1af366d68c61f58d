mod instructions;
mod markdown;
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

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Measure for a moment only: enough to see that it works, too little to compare.
    #[arg(long)]
    quick: bool,
}

/// Measure the hot paths, print what was found and write it to `bench.md` in the target folder.
///
/// A target that is missed is no failure: measuring is not testing.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let target = target_folder(checkout);
    report::heading("time");
    times::measure(checkout, &target, options)?;
    report::heading("instructions");
    let counted = instructions::count(checkout, &target)?;
    let measured = read(&target, &counted)?;
    let text = markdown::page(&measured, &targets::judge(&measured), &counted);
    let page = target.join("bench.md");
    fs::write(&page, &text).map_err(Failure::file(&page))?;
    report::heading("result");
    report::say(text.trim_end());
    Ok(())
}

fn target_folder(checkout: &Checkout) -> PathBuf {
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
