//! Where requirements, lists and citations do not agree.

use super::citations::TestFn;
use super::ledger::{Entry, Ledger};
use super::sections;
use crate::checkout::Checkout;

/// Every disagreement, one line each.
pub(super) fn findings(checkout: &Checkout, ledger: &Ledger, tests: &[TestFn]) -> Vec<String> {
    let mut findings = missing_ids(ledger);
    for entry in &ledger.entries {
        findings.extend(incomplete(entry));
        findings.extend(
            entry
                .tests
                .iter()
                .filter_map(|name| wrong(checkout, entry, name, tests)),
        );
        findings.extend(unlisted(entry, tests));
    }
    findings
}

fn missing_ids(ledger: &Ledger) -> Vec<String> {
    let listed = |id: &String| ledger.entries.iter().any(|entry| entry.id == *id);
    let missing = sections::required().into_iter().filter(|id| !listed(id));
    missing
        .map(|id| format!("{id}: not in requirements.toml"))
        .collect()
}

fn incomplete(entry: &Entry) -> Vec<String> {
    let id = &entry.id;
    let mut findings = Vec::new();
    if entry.text.trim().is_empty() {
        findings.push(format!("{id}: has no text"));
    }
    match &entry.later {
        None if entry.tests.is_empty() => findings.push(format!("{id}: no test shows it")),
        Some(why) if why.trim().is_empty() => findings.push(format!("{id}: `later` has no reason")),
        None | Some(_) => {}
    }
    findings
}

/// What is wrong with a listed test, if anything is.
fn wrong(checkout: &Checkout, entry: &Entry, name: &str, tests: &[TestFn]) -> Option<String> {
    let id = &entry.id;
    let mut same_name = tests.iter().filter(|test| test.name() == name).peekable();
    if same_name.peek().is_some() {
        let cited = same_name.any(|test| test.cites(id));
        return (!cited).then(|| format!("{id}: `{name}` does not cite it in its doc comment"));
    }
    let file = name.split("::").next().unwrap_or(name);
    if checkout.path(file).is_file() {
        Some(format!(
            "{id}: `{name}` is stale: the file has no such test"
        ))
    } else {
        Some(format!("{id}: `{name}` is stale: there is no such file"))
    }
}

fn unlisted(entry: &Entry, tests: &[TestFn]) -> Vec<String> {
    let citing = tests
        .iter()
        .filter(|test| test.cites(&entry.id))
        .map(TestFn::name);
    let unlisted = citing.filter(|name| !entry.tests.contains(name));
    unlisted
        .map(|name| format!("{}: `{name}` cites it but is not listed", entry.id))
        .collect()
}
