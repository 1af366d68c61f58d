//! The project's own commands, run as `cargo xtask <command>`.
//!
//! Everything that a contributor or the continuous integration runs beside plain cargo lives here.
//! A command is a file of the same name; nothing here ships to users. Read `test.rs` first: it shows
//! in which order the others are used.

mod bench;
mod checkout;
mod compatibility;
mod conformance;
mod deny;
mod dependencies;
mod failure;
mod faults;
mod floor_plan;
mod fuzz;
mod house;
mod instructions;
mod interop;
mod listening;
mod node;
mod oracle;
mod process;
mod purity;
mod python;
mod report;
mod requirements;
mod source_text;
mod tables;
mod test;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::checkout::Checkout;
use crate::failure::Failure;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check, in the order of the continuous integration.
    Test,
    /// Compare the tables of mcpact-spec with the official schemas.
    Oracle {
        /// Folder that holds `<revision>/schema.json`.
        dir: PathBuf,
    },
    /// Check that every requirement has a test which cites it, and the reverse.
    Requirements(requirements::Options),
    /// Write `docs/manual/revisions.md` from the tables of mcpact-spec.
    Tables(tables::Options),
    /// Write `docs/COMPATIBILITY.md`: what works between which revisions, as it is observed.
    Compatibility,
    /// Check that the pure crates stay pure and that no crate looks upward.
    Purity,
    /// Check file lengths and leftovers.
    House,
    /// Run the fuzz targets, each for a while.
    Fuzz(fuzz::Options),
    /// Let servers, clients and the gateway fail in every way, and balance the calls.
    Faults(faults::Options),
    /// Measure the hot paths and compare them with the targets.
    Bench(bench::Options),
    /// Count the instructions per call through `mcpact bridge` and `mcpact serve`.
    Instructions(instructions::Options),
    /// Run the official conformance suite against our server and client.
    Conformance(conformance::Options),
    /// Run our client and server against peers on other SDKs.
    Interop(interop::Options),
    /// Serve many servers of npm and PyPI as one, and visit them with a client of each era.
    Crowd,
    /// Check licences, advisories and sources of the dependencies.
    Deny,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::complain(&failure);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let checkout = Checkout::find()?;
    match command {
        Command::Test => test::run(&checkout),
        Command::Oracle { dir } => oracle::run(&checkout, &dir),
        Command::Requirements(options) => requirements::run(&checkout, options),
        Command::Tables(options) => tables::run(&checkout, options),
        Command::Compatibility => compatibility::run(&checkout),
        Command::Purity => purity::run(&checkout),
        Command::House => house::run(&checkout),
        Command::Fuzz(options) => fuzz::run(&checkout, &options),
        Command::Faults(options) => faults::run(&checkout, &options),
        Command::Bench(options) => bench::run(&checkout, &options),
        Command::Instructions(options) => instructions::run(&checkout, &options),
        Command::Conformance(options) => conformance::run(&checkout, &options),
        Command::Interop(options) => interop::run(&checkout, &options),
        Command::Crowd => interop::crowd::run(&checkout),
        Command::Deny => deny::run(&checkout),
    }
}
