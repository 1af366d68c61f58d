//! The `mcpact` binary.
//!
//! [`args`] defines the command line, [`commands`] runs it, [`report`] formats the output. The
//! protocol itself is in the library crates.

mod args;
mod commands;
#[cfg(test)]
mod contract_tests;
mod document;
mod error;
mod explanation;
mod report;

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    let cli = args::Cli::parse();
    let exit = commands::run(&cli).unwrap_or_else(|error| {
        report::print_error(&error);
        error.exit()
    });
    exit.into()
}
