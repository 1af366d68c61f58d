//! Tool names that common clients refuse.

use std::collections::BTreeMap;

use super::{Finding, Subject};

/// Longest name that the APIs of common models accept.
const MAX_LENGTH: usize = 64;

/// Prefix and separator of a client that shows the tools of several servers.
const PREFIXED: &str = "mcp__";
const SEPARATOR: &str = "__";

/// Number of names shown in a finding.
const SHOWN: usize = 3;

/// Length of the server name that is assumed without one.
const ASSUMED_SERVER: usize = 8;

/// Judges the names of all tools of a server.
pub(super) fn findings(names: &[String], server: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let refused = names.iter().filter(|name| !name.chars().all(is_accepted));
    let refused: Vec<&str> = refused.map(String::as_str).collect();
    if !refused.is_empty() {
        findings.push(Finding::warning(
            Subject::Tools,
            format!(
                "clients that accept only letters, digits, `_` and `-` refuse {}",
                listed(&refused)
            ),
            "rename them; `mcpact serve` replaces the characters in public names",
        ));
    }
    let length = |name: &str| name.chars().count();
    let too_long: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| length(name) > MAX_LENGTH)
        .collect();
    if !too_long.is_empty() {
        findings.push(Finding::warning(
            Subject::Tools,
            format!(
                "clients with a limit of {MAX_LENGTH} characters refuse {}",
                listed(&too_long)
            ),
            "shorten the names",
        ));
    }
    let prefix = PREFIXED.len() + SEPARATOR.len() + server.map_or(ASSUMED_SERVER, length);
    let close: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| length(name) <= MAX_LENGTH && length(name) + prefix > MAX_LENGTH)
        .collect();
    if !close.is_empty() {
        findings.push(Finding::warning(
            Subject::Tools,
            format!(
                "with the prefix `mcp__SERVER__` of some clients, more than {MAX_LENGTH} characters: {}",
                listed(&close)
            ),
            "shorten the names of the tools or of the server",
        ));
    }
    let mut by_lower = BTreeMap::<String, Vec<&str>>::new();
    for name in names {
        by_lower.entry(name.to_lowercase()).or_default().push(name);
    }
    let twins: Vec<&str> = by_lower
        .into_values()
        .filter(|same| same.len() > 1)
        .flatten()
        .collect();
    if !twins.is_empty() {
        findings.push(Finding::warning(
            Subject::Tools,
            format!(
                "names that differ only in case or not at all: {}",
                listed(&twins)
            ),
            "give every tool a name of its own",
        ));
    }
    if findings.is_empty() && !names.is_empty() {
        let text = format!(
            "{}, accepted by common clients",
            crate::report::count(names.len(), "name")
        );
        findings.push(Finding::ok(Subject::Tools, text));
    }
    findings
}

const fn is_accepted(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Lists the first names and counts the others.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn texts(names: &[&str], server: Option<&str>) -> Vec<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let all = findings(&names, server).into_iter();
        all.map(|finding| format!("{} {}", finding.level.as_str(), finding.text))
            .collect()
    }

    #[test]
    fn usual_names_are_ok() {
        assert_eq!(
            texts(&["read_file", "list-2"], None),
            ["ok 2 names, accepted by common clients"]
        );
        assert!(texts(&[], None).is_empty());
    }

    #[test]
    fn refused_names_are_listed_with_the_reason() {
        let long = "x".repeat(65);
        let close = "y".repeat(50);
        for (names, server, expected) in [
            (
                vec!["files.read"],
                None,
                "letters, digits, `_` and `-` refuse `files.read`",
            ),
            (
                vec!["a b", "c d", "e f", "g h"],
                None,
                "`a b`, `c d`, `e f` and 1 more",
            ),
            (vec![&*long], None, "limit of 64 characters"),
            (vec![&*close], Some("filesystem"), "prefix `mcp__SERVER__`"),
            (vec!["Read", "read"], None, "differ only in case"),
        ] {
            let found = texts(&names, server);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].starts_with("warning ") && found[0].contains(expected),
                "{found:?}"
            );
        }
        let short_server = texts(&[&*close], Some("x"));
        assert_eq!(short_server, ["ok 1 name, accepted by common clients"]);
        assert_eq!(Level::ALL.len(), 3);
    }
}
