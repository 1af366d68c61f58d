//! Performance targets of the gateway.

use super::Findings;
use super::bridge_promises::ahead;
use super::promises::{Outcome, lighter};

/// A contest, and how many times as fast as the fastest of the others we are.
const CONTESTS: &[(&str, f64)] = &[
    ("gateway, 10 servers, start to first list", 1.0),
    ("gateway, 10 servers, new client to list", 10.0),
    ("gateway, 10 servers, routed call", 1.0),
    ("gateway, 100 servers with 20 tools each, list", 10.0),
];

/// Maximum memory of a session that has called ten servers, in bytes, independent of earlier sessions.
const SESSION: f64 = 64.0 * 1024.0;

/// Compares the findings with the promises; what was not measured is left out.
pub(super) fn judge(findings: &Findings) -> Vec<Outcome> {
    let contests = CONTESTS.iter();
    let faster = contests.filter_map(|(contest, factor)| ahead(findings, contest, 1, *factor));
    let weights = findings.weights.iter();
    let sessions = weights.filter(|weight| weight.subject == "our gateway");
    faster
        .chain(sessions.map(|session| lighter(session, SESSION)))
        .collect()
}
