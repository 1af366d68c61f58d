//! Faults on purpose, against the real binary.
//!
//! `mcpact-faults run` starts `mcpact` with servers that misbehave, calls them, and keeps a ledger: every
//! call has exactly one outcome, which reaches the caller that made it. Each row of [`rows`] is a
//! fault; what it has seen is written as JSON to standard output, beside what it may be. `script` and
//! `peer` are the servers. Whether a number is good is for `xtask/src/faults.rs` to judge.

mod background_clients;
mod client;
mod error;
mod figure;
mod gateway;
mod journal;
mod ledger;
mod peer;
mod process;
mod proxy;
mod raw;
mod rows;
mod script;

use clap::Parser;

use crate::error::RowError;
use crate::rows::Effort;

#[derive(Debug, Parser)]
enum Role {
    /// Run the rows.
    Run {
        /// Amount of work.
        #[arg(long, value_enum, default_value = "full")]
        effort: Effort,
        /// Only the rows of this fault.
        #[arg(long)]
        only: Option<String>,
    },
    /// Be a server that misbehaves.
    Script(script::Options),
    /// Be a server that behaves.
    Peer(peer::Options),
}

fn main() -> Result<(), RowError> {
    match Role::parse() {
        Role::Script(options) => script::serve(&options),
        Role::Peer(options) => block_on(peer::serve(&options)),
        Role::Run { effort, only } => block_on(rows::run(effort, only.as_deref())),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, RowError>>) -> Result<T, RowError> {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    { runtime }.enable_all().build()?.block_on(work)
}
