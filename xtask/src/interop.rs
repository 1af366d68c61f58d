//! Our client and server against peers on other SDKs, pair by pair and feature by feature.
//!
//! `interop/servers/servers.toml` and `interop/clients/clients.toml` name the peers, and
//! `interop/bridged.toml` those of them that meet each other through our bridge. They are
//! installed from npm and PyPI at exact versions; every pair runs in processes of its own and tells
//! what came of each feature. What should work and does not fails the run, and so does what a peer
//! is said not to offer and offers.

mod bridged;
pub(crate) mod crowd;
mod feature;
mod ground;
mod judge;
mod manifest;
mod pair;
mod table;

use std::fs;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;
use ground::Ground;
use judge::Verdict;
use manifest::Manifest;
use pair::Pair;

/// Where the result is written.
const TABLE: &str = "target/interop.md";

/// Which pairs to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only the pairs whose name contains this.
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

/// Run the pairs, write the table, and fail if anything is not as it should be.
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
    let ground = Ground::prepare(checkout, &pairs)?;
    let verdicts = run_all(&pairs, &ground);
    let table = table::write(&verdicts, &manifest);
    let path = checkout.path(TABLE);
    fs::write(&path, &table).map_err(Failure::file(&path))?;
    report::say(&table);
    let mut findings: Vec<String> = verdicts.iter().flat_map(Verdict::findings).collect();
    if options.only.is_none() {
        findings.extend(manifest.unused());
    }
    if verdicts.is_empty() {
        findings.push("no pair has run".to_owned());
    }
    Failure::unless_clean(
        "interop",
        findings,
        "mend it; what a peer cannot offer stands under `absent` beside it, with the reason",
    )
}

/// Run the pairs, as many at a time as there are processors.
fn run_all<'a>(pairs: &'a [Pair<'a>], ground: &Ground) -> Vec<Verdict<'a>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = Verdict::new(pair, pair.run(ground));
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
