//! The official conformance suite, judged by a stricter rule than its own.
//!
//! The suite comes from npm. It runs a client against `mcpact everything`, also behind `mcpact bridge` and `mcpact serve`,
//! and a server against the example `conformance_client`, and writes its results. `strict.rs` judges them. Every failure needs
//! an entry with a reason in `conformance-baseline.toml`, and every entry must match a failure.

mod baseline;
mod bridged;
mod leg;
mod requirement_set;
mod results;
mod score;
mod server;
mod skills;
mod strict;
mod suite;

use std::time::Instant;

use mcpact_spec::Revision;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::report;
use baseline::Baseline;
use leg::{Leg, Run};
use score::Score;
use suite::Suite;

/// The revisions that the suite has requirements for.
const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run one leg only.
    #[arg(long)]
    only: Option<Leg>,
    /// Run the requirements of one revision only.
    #[arg(long, value_parser = revision)]
    revision: Option<Revision>,
    /// Run the scenarios of the skills extension only.
    #[arg(long, conflicts_with_all = ["only", "revision", "url"])]
    skills: bool,
    /// Judge the server at this address instead of our own; no expectation is stale then.
    #[arg(long, conflicts_with = "only")]
    url: Option<String>,
}

impl Options {
    /// Both legs, both revisions, our own server and client.
    pub(crate) fn everything() -> Self {
        Self {
            only: None,
            revision: None,
            skills: false,
            url: None,
        }
    }

    fn revisions(&self) -> Vec<Revision> {
        let chosen = |revision: &Revision| self.revision.is_none_or(|only| only == *revision);
        REVISIONS.into_iter().filter(chosen).collect()
    }

    fn wants(&self, leg: Leg) -> bool {
        self.only.is_none_or(|only| only == leg)
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    let known = REVISIONS.into_iter().find(|known| known.as_str() == text);
    known.ok_or_else(|| {
        format!(
            "the suite has requirements for {}",
            REVISIONS.map(Revision::as_str).join(" and ")
        )
    })
}

/// Runs the suite and compares the failures with the expected ones.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let baseline = Baseline::read(checkout)?;
    let suite = Suite::install(checkout)?;
    if options.skills {
        return settle(skills::run(checkout, &suite)?);
    }
    let revisions = options.revisions();
    if let Some(url) = &options.url {
        let scores = leg::against(&suite, url, &revisions)?;
        print(&scores, &baseline);
        return settle(baseline.unexpected(&scores));
    }
    let mut scores = Vec::new();
    for leg in Leg::ALL {
        if !options.wants(leg) {
            continue;
        }
        let start = Instant::now();
        match leg::run(leg, checkout, &suite, &revisions)? {
            Run::Done(done) => {
                let seconds = start.elapsed().as_secs();
                report::say(format_args!("{leg}: {seconds} s"));
                scores.extend(done);
            }
            Run::Skipped(why) => report::say(format_args!("{leg}: skipped: {why}")),
        }
    }
    print(&scores, &baseline);
    let mut findings = baseline.unexpected(&scores);
    findings.extend(baseline.stale(&scores));
    if options.only.is_none() {
        findings.extend(skills::run(checkout, &suite)?);
    }
    settle(findings)
}

fn print(scores: &[Score], baseline: &Baseline) {
    for score in scores {
        report::say(score);
        for shortfall in score.shortfalls() {
            let expected = match baseline.entry_for(score, shortfall.scenario()) {
                Some(entry) => format!(" (expected: {})", entry.reason),
                None => String::new(),
            };
            report::say(format_args!("  {shortfall}{expected}"));
        }
    }
}

fn settle(findings: Vec<String>) -> Result<(), Failure> {
    Failure::unless_clean(
        "conformance",
        findings,
        "fix the cause, or add the reason to `conformance-baseline.toml`; remove stale entries",
    )
}
