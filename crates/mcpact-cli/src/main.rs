//! The `mcpact` binary.
//!
//! [`args`] defines the command line, [`commands`] runs it, [`report`] formats the output. The
//! protocol itself is in the library crates.

mod args;
mod client;
mod commands;
#[cfg(test)]
mod contract_tests;
mod doctor;
mod document;
mod error;
mod explanation;
#[cfg(test)]
mod manual_tests;
mod probe;
mod report;
mod target;

/// Returns freed memory to the system, unlike that of glibc: see `docs/decisions/018-memory-budget.md`. Its options are
/// in `.cargo/config.toml`.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    let cli = args::Cli::of_process();
    let exit = commands::run(&cli).unwrap_or_else(|error| {
        report::print_error(&error);
        error.exit()
    });
    exit.into()
}
