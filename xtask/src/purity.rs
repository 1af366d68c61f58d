use toml::Table;

use crate::checkout::{Checkout, SourceFile};
use crate::dependencies::{disallowed, wrong_direction};
use crate::failure::Failure;
use crate::layers::{Access, GATEWAY, LAYERS};
use crate::process::{capture, cargo};
use crate::report;
use crate::source_text::{SourceText, has_word};

/// Words that the source of a pure crate must not contain.
///
/// `no_std` alone prevents most of them, but only a build for a bare target proves it, and such a
/// target is not installed on every machine.
const FORBIDDEN: &[&str] = &[
    "std::",
    "extern crate std",
    "Instant::now",
    "SystemTime",
    "thread",
    "thread_local",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "rand",
    "getrandom",
];

/// Checks sources and dependencies of the pure crates, and the direction of every dependency between crates and between
/// the modules of the gateway.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let crates = checkout.crates()?;
    let mut findings = Vec::new();
    for name in &crates {
        findings.extend(wrong_direction(name, &manifest(checkout, name)?));
    }
    let mut pure = 0;
    for layer in LAYERS {
        let Access::Pure { third_party } = layer.access else {
            continue;
        };
        if !crates.iter().any(|name| name == layer.name) {
            continue;
        }
        pure += 1;
        findings.extend(impurities(checkout, layer.name)?);
        findings.extend(disallowed(
            layer.name,
            &tree(checkout, layer.name)?,
            third_party,
        ));
    }
    findings.extend(GATEWAY.findings(&checkout.rust_files(&[GATEWAY.folder])?));
    Failure::unless_clean(
        "purity",
        findings,
        "see section \"Layers\" of CONTRIBUTING.md",
    )?;
    report::say(format_args!(
        "purity: {pure} pure crates, {} crates checked",
        crates.len()
    ));
    Ok(())
}

fn manifest(checkout: &Checkout, name: &str) -> Result<Table, Failure> {
    let path = format!("crates/{name}/Cargo.toml");
    toml::from_str(&checkout.read(&path)?).map_err(|source| Failure::Toml {
        path: checkout.path(&path),
        source,
    })
}

fn tree(checkout: &Checkout, name: &str) -> Result<String, Failure> {
    capture(cargo(checkout).args([
        "tree",
        "--edges",
        "normal",
        "--package",
        name,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))
}

fn impurities(checkout: &Checkout, name: &str) -> Result<Vec<String>, Failure> {
    let folder = format!("crates/{name}/src");
    let root = format!("{folder}/lib.rs");
    let files = checkout.rust_files(&[&folder])?;
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.is_test_module()) {
        if file.path == root && !SourceText::split(&file.text).code.contains("#![no_std]") {
            findings.push(format!("{root}: `#![no_std]` is missing"));
        }
        findings.extend(forbidden_in(file));
    }
    Ok(findings)
}

fn forbidden_in(file: &SourceFile) -> Vec<String> {
    let code = SourceText::split(&file.text).code_without_tests();
    let named = |line: &str| FORBIDDEN.iter().find(|word| has_word(line, word)).copied();
    code.lines()
        .zip(1..)
        .filter_map(|(line, number)| Some((number, named(line)?)))
        .map(|(number, word)| format!("{}:{number}: `{word}` in a pure crate", file.path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{forbidden_in, impurities};
    use crate::checkout::{Checkout, SourceFile};

    fn found(text: &str) -> Vec<String> {
        forbidden_in(&SourceFile {
            path: "a.rs".to_owned(),
            text: text.to_owned(),
        })
    }

    /// N1: the pure crates cannot name a clock, a socket or a thread.
    #[test]
    fn clocks_sockets_and_threads_are_findings_with_their_line() {
        assert_eq!(
            found("use core::fmt;\nuse std::fmt;"),
            ["a.rs:2: `std::` in a pure crate"]
        );
        assert_eq!(found("let now = Instant::now();").len(), 1);
        assert_eq!(found("use foo::thread;").len(), 1);
    }

    #[test]
    fn comments_strings_tests_and_longer_words_are_not_findings() {
        assert!(found("// std::fmt\nlet a = \"std::\";").is_empty());
        assert!(found("#[cfg(test)]\nmod tests {\n    use std::vec;\n}").is_empty());
        assert!(found("let operand = threads;").is_empty());
    }

    /// N1: a pure crate without `no_std` fails the check.
    #[test]
    fn missing_no_std_attribute_is_a_finding() {
        let root = tempfile::tempdir().unwrap();
        let src = root.path().join("crates/mcpact-spec/src");
        std::fs::create_dir_all(&src).unwrap();
        std::fs::write(src.join("lib.rs"), "//! #![no_std]\n").unwrap();
        let checkout = Checkout::at(root.path().to_owned());
        let found = impurities(&checkout, "mcpact-spec").unwrap();
        assert_eq!(
            found,
            ["crates/mcpact-spec/src/lib.rs: `#![no_std]` is missing"]
        );
    }
}
