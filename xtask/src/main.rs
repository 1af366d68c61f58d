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
mod dist;
mod failure;
mod faults;
mod fuzz;
mod instructions;
mod interop;
mod labels;
mod layers;
mod lint;
mod listening;
mod modules;
mod node;
mod oracle;
mod packaging;
mod process;
mod public_api;
mod purity;
mod python;
mod report;
mod requirements;
mod source_text;
mod tables;
mod test;

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
    /// Run all checks, as CI does.
    Test(test::Options),
    /// Compare the tables of mcpact-spec with the official schemas.
    Oracle {
        /// Directory with `<revision>/schema.json` [default: the vendored schemas].
        dir: Option<PathBuf>,
    },
    /// Check that every protocol rule has a test, and write the index to target/requirements.md.
    Requirements,
    /// Write `docs/manual/revisions.md` from the tables of mcpact-spec.
    Tables(tables::Options),
    /// Write `docs/COMPATIBILITY.md`: features that work between each pair of revisions.
    Compatibility,
    /// Compare the public items of the library crates with the committed lists.
    PublicApi(public_api::Options),
    /// Check that the pure crates use no IO and that dependencies of crates and modules follow the layers.
    Purity,
    /// Check file lengths and leftovers.
    Lint,
    /// Run the fuzz targets.
    Fuzz(fuzz::Options),
    /// Inject faults into servers, clients and the gateway, and account for every call.
    Faults(faults::Options),
    /// Measure the hot paths and compare them with the targets.
    Bench(bench::Options),
    /// Count the instructions per call through `mcpact bridge` and `mcpact serve`.
    Instructions(instructions::Options),
    /// Run the official conformance suite against our server and client.
    Conformance(conformance::Options),
    /// Run our client and server against peers with other SDKs.
    Interop(interop::Options),
    /// Serve many servers from npm and PyPI as one, and use them with a client of each era.
    Crowd,
    /// Check licences, advisories and sources of the dependencies.
    Deny,
    /// Build the packages of a release in target/dist, for Linux on x86-64.
    Dist(dist::Options),
    /// Check the systemd unit, the container file and the nginx example.
    Packaging,
}

fn main() -> ExitCode {
    if let Some(exit) = public_api::as_rustdoc() {
        return exit;
    }
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
        Command::Test(options) => test::run(&checkout, &options),
        Command::Oracle { dir } => oracle::run(&checkout, dir.as_deref()),
        Command::Requirements => requirements::run(&checkout),
        Command::Tables(options) => tables::run(&checkout, options),
        Command::Compatibility => compatibility::run(&checkout),
        Command::PublicApi(options) => public_api::run(&checkout, options),
        Command::Purity => purity::run(&checkout),
        Command::Lint => lint::run(&checkout),
        Command::Fuzz(options) => fuzz::run(&checkout, &options),
        Command::Faults(options) => faults::run(&checkout, &options),
        Command::Bench(options) => bench::run(&checkout, &options),
        Command::Instructions(options) => instructions::run(&checkout, &options),
        Command::Conformance(options) => conformance::run(&checkout, &options),
        Command::Interop(options) => interop::run(&checkout, &options),
        Command::Crowd => interop::crowd::run(&checkout),
        Command::Deny => deny::run(&checkout),
        Command::Dist(options) => dist::run(&checkout, &options),
        Command::Packaging => packaging::run(&checkout),
    }
}
