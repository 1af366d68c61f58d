//! Our client and server against peers with other SDKs, pair by pair and feature by feature.
//!
//! `interop/servers/servers.toml` and `interop/clients/clients.toml` list the peers, and
//! `interop/bridged.toml` the pairs that are connected through our bridge. Peers are installed from
//! npm and PyPI at exact versions. Every pair runs in its own processes and reports the result of
//! each feature. A feature that fails unexpectedly fails the run, and so does one that works
//! although it is listed as absent.

mod apps;
mod bridged;
pub(crate) mod crowd;
mod feature;
mod judge;
mod manifest;
mod pair;
mod setup;
mod table;

use std::fs;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;
use judge::Verdict;
use manifest::Manifest;
use pair::Pair;
use setup::Setup;

/// Name of the run of MCP Apps.
const APPS: &str = "apps";

/// Result file.
const TABLE: &str = "target/interop.md";

/// Options of `cargo xtask interop`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only pairs with this in their name, or only `apps`.
    #[arg(long)]
    only: Option<String>,
    /// Name the pairs instead of running them.
    #[arg(long)]
    list: bool,
}

impl Options {
    /// Every pair.
    pub(crate) fn everything() -> Self {
        Self {
            only: None,
            list: false,
        }
    }
}

/// Runs the pairs, writes the table, and fails on unexpected results.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let manifest = Manifest::read(checkout)?;
    let mut pairs = manifest.pairs();
    if let Some(part) = &options.only {
        pairs.retain(|pair| pair.name().contains(part.as_str()));
    }
    if options.list {
        pairs.iter().for_each(|pair| report::say(pair.name()));
        return Ok(());
    }
    if options.only.as_deref() == Some(APPS) {
        return finish(apps::run(checkout)?);
    }
    let setup = Setup::prepare(checkout, &pairs)?;
    let verdicts = run_all(&pairs, &setup);
    let table = table::write(&verdicts, &manifest);
    let path = checkout.path(TABLE);
    fs::write(&path, &table).map_err(Failure::file(&path))?;
    report::say(&table);
    let mut findings: Vec<String> = verdicts.iter().flat_map(Verdict::findings).collect();
    if options.only.is_none() {
        findings.extend(manifest.unused());
        findings.extend(apps::run(checkout)?);
    }
    if verdicts.is_empty() {
        findings.push("no pair has run".to_owned());
    }
    finish(findings)
}

fn finish(findings: Vec<String>) -> Result<(), Failure> {
    Failure::unless_clean(
        "interop",
        findings,
        "fix the cause; list features that a peer does not offer under `absent`, with the reason",
    )
}

/// Runs the pairs, one per processor at a time.
fn run_all<'a>(pairs: &'a [Pair<'a>], setup: &Setup) -> Vec<Verdict<'a>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = Verdict::new(pair, pair.run(setup));
                    report::say(&verdict);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(verdict);
                }
            });
        }
    });
    let mut verdicts = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|verdict| verdict.pair.position);
    verdicts
}
