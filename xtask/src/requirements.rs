//! Requirements and the tests that show them, held together from both sides.
//!
//! A test cites the ids that it shows in its doc comment; `requirements.toml` lists the tests of
//! each id. People write the citations, `--write` the lists, and the plain command checks that
//! they agree. What an id asks beyond what is built stands beside it as `later`, and every run says
//! so.

mod agreement;
mod citations;
mod document;
mod ledger;
mod sections;

use std::fs;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;
use citations::TestFn;
use ledger::Ledger;

const LEDGER: &str = "requirements.toml";
const HINT: &str = "cite the id in the doc comment of the test that shows it, then run \
                    `cargo xtask requirements --write`";

/// Check or rewrite.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rewrite the lists of tests from the citations in the sources.
    #[arg(long)]
    write: bool,
}

/// Run the command as the options say.
pub(crate) fn run(checkout: &Checkout, options: Options) -> Result<(), Failure> {
    if options.write {
        write(checkout)
    } else {
        check(checkout)
    }
}

/// Check that requirements, lists and citations agree.
pub(crate) fn check(checkout: &Checkout) -> Result<(), Failure> {
    let ledger = read(checkout, &checkout.read(LEDGER)?)?;
    let tests = test_functions(checkout)?;
    let mut findings = agreement::findings(checkout, &ledger, &tests);
    findings.extend(document::findings(checkout)?);
    Failure::unless_clean("requirements", findings, HINT)?;
    let links: usize = ledger.entries.iter().map(|entry| entry.tests.len()).sum();
    for (id, why) in ledger.postponed() {
        report::say(format_args!("requirements: {id} later: {why}"));
    }
    report::say(format_args!(
        "requirements: {} ids shown by {links} citations, {} of them not yet whole",
        ledger.entries.len(),
        ledger.postponed().count()
    ));
    Ok(())
}

fn write(checkout: &Checkout) -> Result<(), Failure> {
    let path = checkout.path(LEDGER);
    let text = if path.is_file() {
        checkout.read(LEDGER)?
    } else {
        String::new()
    };
    let mut ledger = read(checkout, &text)?;
    ledger.adopt(&sections::required(), &test_functions(checkout)?);
    fs::write(&path, ledger.render()).map_err(Failure::file(&path))?;
    report::say(format_args!("requirements: wrote {LEDGER}"));
    Ok(())
}

fn read(checkout: &Checkout, text: &str) -> Result<Ledger, Failure> {
    Ledger::parse(text).map_err(|source| Failure::Toml {
        path: checkout.path(LEDGER),
        source,
    })
}

fn test_functions(checkout: &Checkout) -> Result<Vec<TestFn>, Failure> {
    let files = checkout.rust_files(&["crates", "xtask"])?;
    Ok(files.iter().flat_map(citations::tests_in).collect())
}

#[cfg(test)]
mod tests;
