//! Strict rule for a passed scenario.
//!
//! The suite lets a scenario pass unless a check fails: with warnings, with nothing looked at, with
//! an empty list, with an error where a text was asked for, with a client that ends in an error.
//! Here none of these counts.

use std::fmt;

use serde_json::Value;

use super::leg::Leg;
use super::results::{Check, Record, Status};

/// The scenarios in which a client may end with an error because it must refuse something; the
/// suite forgives it there, and only there, when it runs a scenario alone.
const CLIENT_MAY_FAIL: &[&str] = &[
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
    "http-invalid-tool-headers",
];

/// Reason why a scenario does not pass.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// The suite wrote nothing about it.
    NoResult,
    /// Checks failed; their ids, with what the suite said.
    Failed(Vec<String>),
    /// Checks ended with a warning.
    Warned(Vec<String>),
    /// Nothing succeeded but the check of the message schema.
    Vacuous,
    /// The list that was asked for is empty.
    EmptyList(&'static str),
    /// An error, or something else, came where the fixture's text was asked for.
    WrongText(String),
    /// The tool failed for another reason than the one that was asked for.
    WrongError(String),
    /// Every check passed, and our client ended with an error.
    ClientFailed(String),
}

impl Fault {
    /// Returns `true` if the scenario also fails by the suite's own rule.
    pub(super) fn fails_suite(&self) -> bool {
        matches!(self, Self::NoResult | Self::Failed(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResult => f.write_str("no result"),
            Self::Failed(checks) => write!(f, "failed {}", summed_up(checks)),
            Self::Warned(checks) => write!(f, "warned {}", summed_up(checks)),
            Self::Vacuous => f.write_str("nothing was checked but the schema"),
            Self::EmptyList(what) => write!(f, "the list of {what} is empty"),
            Self::WrongText(found) => write!(f, "not the fixture's text: {found}"),
            Self::WrongError(found) => write!(f, "not the fixture's error: {found}"),
            Self::ClientFailed(words) => write!(f, "the client ended with an error: {words}"),
        }
    }
}

/// Everything that keeps the scenario from counting.
pub(super) fn judge(leg: Leg, scenario: &str, record: Option<&Record>) -> Vec<Fault> {
    let Some(record) = record else {
        return vec![Fault::NoResult];
    };
    let mut faults = Vec::new();
    let failed = with_status(&record.checks, Status::Failure);
    let warned = with_status(&record.checks, Status::Warning);
    if !warned.is_empty() {
        faults.push(Fault::Warned(warned));
    }
    if !failed.is_empty() {
        // What a failing scenario did not get to says nothing more.
        faults.insert(0, Fault::Failed(failed));
        return faults;
    }
    if !record.checks.iter().any(is_substance) {
        faults.push(Fault::Vacuous);
        return faults;
    }
    match leg {
        Leg::Client => faults.extend(client_fault(scenario, &record.complaint)),
        _ => faults.extend(server_fault(scenario, &record.checks)),
    }
    faults
}

fn with_status(checks: &[Check], status: Status) -> Vec<String> {
    let alike = checks.iter().filter(|check| check.status == status);
    alike.map(told).collect()
}

/// The id of a check, with what the suite said about it.
fn told(check: &Check) -> String {
    match check.error_message.as_deref().map(first_line) {
        None | Some("") => check.id.clone(),
        Some(words) => format!("{} ({})", check.id, shortened(words)),
    }
}

/// Summary by the first check; the others often follow from it.
fn summed_up(checks: &[String]) -> String {
    match checks {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Returns `true` if the check shows that the scenario exercised its feature.
fn is_substance(check: &Check) -> bool {
    check.status == Status::Success && !check.id.starts_with("wire-schema")
}

fn server_fault(scenario: &str, checks: &[Check]) -> Option<Fault> {
    let main = checks.iter().find(|check| check.id == scenario);
    let details = main.map_or(&Value::Null, |check| &check.details);
    let empty = |member: &str| details[member].as_u64().unwrap_or(0) == 0;
    let result = &details["result"];
    let is_error = result["isError"] == true;
    let says = |words: &str| texts(result).any(|text| text.contains(words));
    match scenario {
        "tools-list" if empty("toolCount") => Some(Fault::EmptyList("tools")),
        "prompts-list" if empty("promptCount") => Some(Fault::EmptyList("prompts")),
        "resources-list" if empty("resourceCount") => Some(Fault::EmptyList("resources")),
        "tools-call-simple-text" if is_error || !says("simple text response") => {
            Some(Fault::WrongText(shown(result)))
        }
        "tools-call-error" if !is_error || !says("intentionally returns an error") => {
            Some(Fault::WrongError(shown(result)))
        }
        _ => None,
    }
}

/// The suite looks at the exit code only when it runs a scenario alone, and never records it; what
/// the client says on its way out, it does.
fn client_fault(scenario: &str, complaint: &str) -> Option<Fault> {
    let words = first_line(complaint.trim());
    if words.is_empty() || CLIENT_MAY_FAIL.contains(&scenario) {
        return None;
    }
    Some(Fault::ClientFailed(shortened(words)))
}

fn texts(result: &Value) -> impl Iterator<Item = &str> {
    let content = result["content"].as_array().into_iter().flatten();
    content.filter_map(|block| block["text"].as_str())
}

fn shown(result: &Value) -> String {
    match texts(result).next() {
        Some(text) => format!("`{}`", shortened(first_line(text))),
        None => "no text".to_owned(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
