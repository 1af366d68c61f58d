//! Revisions are named in the tables of this crate only.
//!
//! Other code asks for an era, a feature or the revision of an agreement, so that a new revision is a
//! new column. A literal such as `"2025-06-18"` or a path such as `Revision::V2025_06_18` outside
//! the tables and outside tests fails this test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may name a revision, and why.
const EXCEPTIONS: [(&str, &str); 5] = [
    (
        "crates/mcpact-engine/src/policy.rs",
        "the profiles of other implementations allow fixed revisions",
    ),
    (
        "xtask/src/conformance.rs",
        "the official suite covers two revisions",
    ),
    (
        "xtask/src/oracle/exceptions.rs",
        "known errors in a published schema",
    ),
    (
        "xtask/src/dist/install.rs",
        "the call that shows that a package works is fixed",
    ),
    (
        "xtask/src/packaging/nginx.rs",
        "a fixed client behind nginx needs a revision with sessions",
    ),
];

/// Crates that speak the protocol as a peer under test would, with fixed messages.
const TEST_CRATES: [&str; 6] = [
    "mcpact-bench",
    "mcpact-faults",
    "mcpact-fuzzing",
    "mcpact-load",
    "mcpact-sim",
    "mcpact-spec",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Source files below a folder, without test modules in files of their own.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// Lines of production code: no comments, and nothing from the test module at the end on.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.starts_with("//"))
}

/// Returns whether the text has this pattern anywhere; `d` stands for a digit.
fn has(line: &str, pattern: &str) -> bool {
    let fits = |window: &[u8]| {
        let mut pairs = window.iter().zip(pattern.bytes());
        pairs.all(|(byte, expected)| match expected {
            b'd' => byte.is_ascii_digit(),
            expected => *byte == expected,
        })
    };
    line.as_bytes().windows(pattern.len()).any(fits)
}

fn names_a_revision(line: &str) -> bool {
    ["\"20dd-dd-dd\"", "V20dd_dd_dd", "Revision::LATEST"]
        .iter()
        .any(|pattern| has(line, pattern))
}

#[test]
fn only_the_tables_name_revisions() {
    let root = root();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if !TEST_CRATES.contains(&name.as_ref()) && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
    sources(&root.join("xtask/src"), &mut files);
    assert!(files.len() > 400, "only {} files found", files.len());

    let mut named = Vec::new();
    let mut used = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().to_string_lossy();
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text).filter(|(_, line)| names_a_revision(line)) {
            match EXCEPTIONS.iter().find(|(known, _)| *known == path) {
                Some((known, _)) => used.push(*known),
                None => named.push(format!("{path}:{}: {line}", number + 1)),
            }
        }
    }
    assert!(
        named.is_empty(),
        "ask the tables instead:\n{}",
        named.join("\n")
    );
    for (path, why) in EXCEPTIONS {
        assert!(used.contains(&path), "{path} needs no exception: {why}");
    }
}

#[test]
fn literals_and_variants_are_found() {
    for line in [
        r#"let version = "2025-06-18";"#,
        "Revision::V2025_06_18 => 1,",
        "Revision::LATEST_LEGACY",
    ] {
        assert!(names_a_revision(line), "{line}");
    }
    for line in [
        r#""such as `2025-06-18`""#,
        r#"time: "2026-07-28T00:00:00Z""#,
    ] {
        assert!(!names_a_revision(line), "{line}");
    }
}
