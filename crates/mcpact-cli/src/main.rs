//! The binary `mcpact`: what two peers agree on, explained on the command line.
//!
//! It reads arguments and files, asks the engine, and prints; it decides nothing about the
//! protocol itself. Read [`args`] first, then [`commands`] and [`explanation`]. Only [`report`]
//! writes to the terminal.

mod args;
mod commands;
#[cfg(test)]
mod contract;
mod document;
mod error;
mod exit;
mod explanation;
mod report;

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    let cli = args::Cli::parse();
    let exit = commands::run(&cli).unwrap_or_else(|error| {
        report::complain(&error);
        error.exit()
    });
    exit.into()
}
