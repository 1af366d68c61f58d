//! Tests every feature between every pair of revisions with `mcpact bridge` or `mcpact serve` in between, and compares
//! the result with `docs/COMPATIBILITY.md`. `cargo xtask compatibility` rewrites the page.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod expected;
mod outcome;
mod page;
mod probe;
mod processes;

use std::path::PathBuf;

use futures_util::StreamExt as _;
use mcpact_spec::Revision;

use outcome::{Feature, Observed};
use processes::{Running, Transport};

/// Set by `cargo xtask compatibility`.
const WRITE: &str = "MCPACT_WRITE_COMPATIBILITY";

/// Number of concurrent pairs; each is three processes that mostly wait.
const CONCURRENCY: usize = 6;

/// A client, a server and their transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) client: Revision,
    pub(crate) server: Revision,
    pub(crate) front: Transport,
    pub(crate) back: Transport,
}

impl Pair {
    fn all() -> impl Iterator<Item = Self> {
        let revisions = Revision::ALL.into_iter();
        let pairs = revisions.flat_map(|client| Revision::ALL.map(|server| (client, server)));
        pairs.flat_map(|(client, server)| {
            Transport::PAIRS.into_iter().map(move |(front, back)| Self {
                client,
                server,
                front,
                back,
            })
        })
    }

    pub(crate) fn name(self) -> String {
        let (front, back) = (self.front.name(), self.back.name());
        format!(
            "{} on {front} before {} on {back}",
            self.client, self.server
        )
    }

    /// Tests every feature.
    async fn observe(self) -> Row {
        let running = Running::start(self).await;
        let mut seen = Vec::new();
        for feature in Feature::ALL {
            seen.push((feature, probe::observe(feature, self, &running).await));
        }
        running.close().await;
        Row { pair: self, seen }
    }
}

/// Observed results of a pair.
pub(crate) struct Row {
    pub(crate) pair: Pair,
    pub(crate) seen: Vec<(Feature, Observed)>,
}

/// Every pair of revisions on every pair of transports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compatibility_page_matches_observations() {
    let rows = futures_util::stream::iter(Pair::all().map(Pair::observe))
        .buffered(CONCURRENCY)
        .collect::<Vec<Row>>()
        .await;
    let surprises: Vec<String> = rows.iter().flat_map(expected::surprises).collect();
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    let page = page::write(&rows);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/COMPATIBILITY.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &page).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/COMPATIBILITY.md is out of date; run `cargo xtask compatibility` and review the diff"
    );
}
