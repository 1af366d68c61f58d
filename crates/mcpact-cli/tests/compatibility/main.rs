//! What works between a client of each revision and a server of each, with `mcpact bridge` between
//! them: every feature is used, and `docs/COMPATIBILITY.md` is what came of it.
//!
//! `cargo xtask compatibility` runs this and writes the page; without that, a page that says something
//! else fails.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod expected;
mod outcome;
mod page;
mod probe;
mod programs;

use std::path::PathBuf;

use futures_util::StreamExt as _;
use mcpact_spec::Revision;

use outcome::{Feature, Observed};
use programs::{Carrier, Running};

/// Set by `cargo xtask compatibility`.
const WRITE: &str = "MCPACT_WRITE_COMPATIBILITY";

/// How many pairs run at a time; each is three processes that mostly wait.
const AT_A_TIME: usize = 6;

/// A client and a server, and what carries their messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) client: Revision,
    pub(crate) server: Revision,
    pub(crate) front: Carrier,
    pub(crate) back: Carrier,
}

impl Pair {
    fn all() -> impl Iterator<Item = Self> {
        let revisions = Revision::ALL.into_iter();
        let pairs = revisions.flat_map(|client| Revision::ALL.map(|server| (client, server)));
        pairs.flat_map(|(client, server)| {
            let carriers = Carrier::ALL.into_iter();
            let both = carriers.flat_map(|front| Carrier::ALL.map(|back| (front, back)));
            both.map(move |(front, back)| Self {
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

    /// Uses every feature, each for itself.
    async fn observe(self) -> Row {
        let running = Running::start(self).await;
        let mut seen = Vec::new();
        for feature in Feature::ALL {
            seen.push((feature, probe::observe(feature, self, &running).await));
        }
        running.leave().await;
        Row { pair: self, seen }
    }
}

/// What came of each feature between a client and a server.
pub(crate) struct Row {
    pub(crate) pair: Pair,
    pub(crate) seen: Vec<(Feature, Observed)>,
}

/// What works, what degrades and what is impossible is known for every pair of revisions on every
/// pair of carriers, and is what the page says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_says_what_was_observed() {
    let rows = futures_util::stream::iter(Pair::all().map(Pair::observe))
        .buffered(AT_A_TIME)
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
        "docs/COMPATIBILITY.md says something else; run `cargo xtask compatibility` and look at what has changed"
    );
}
