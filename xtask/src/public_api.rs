//! The public items of the library crates, each with its signature, as committed lists.
//!
//! rustdoc writes its JSON, and the crate `public-api` turns it into lines. The JSON is an unstable format, so the
//! version of `public-api` in `Cargo.toml` follows the pinned toolchain.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, run as run_program};
use crate::report;

/// The crates with a list.
const CRATES: &[&str] = &["mcpact", "mcpact-gateway"];

/// Set for the process that cargo starts as its rustdoc.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

const HINT: &str = "stable names are a contract (CONTRIBUTING.md, \"Stable strings and names\"): if the change is \
                    intended, run `cargo xtask public-api --write`, commit the lists, and add a line to CHANGELOG.md";

/// Compare or write.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write the lists instead of comparing them.
    #[arg(long)]
    write: bool,
}

/// Run the command as the options say.
pub(crate) fn run(checkout: &Checkout, options: Options) -> Result<(), Failure> {
    if options.write {
        write(checkout)
    } else {
        check(checkout)
    }
}

/// Check that the lists hold what the crates export.
pub(crate) fn check(checkout: &Checkout) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for (name, exported) in exported(checkout)? {
        let file = list_of(name);
        let listed = fs::read_to_string(checkout.path(&file)).unwrap_or_default();
        let found = differences(&listed, &exported);
        findings.extend(found.into_iter().map(|line| format!("{file}: {line}")));
    }
    Failure::unless_clean("public-api", findings, HINT)?;
    report::say("public-api: the lists are up to date");
    Ok(())
}

fn write(checkout: &Checkout) -> Result<(), Failure> {
    for (name, exported) in exported(checkout)? {
        let file = list_of(name);
        let path = checkout.path(&file);
        fs::write(&path, exported).map_err(Failure::file(&path))?;
        report::say(format_args!("public-api: wrote {file}"));
    }
    Ok(())
}

fn list_of(name: &str) -> String {
    format!("crates/{name}/public-api.txt")
}

/// The lines that only one of the two has, each behind `-` or `+`.
fn differences(listed: &str, exported: &str) -> Vec<String> {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (listed.lines().collect(), exported.lines().collect());
    let removed = old.difference(&new).map(|line| format!("- {line}"));
    let added = new.difference(&old).map(|line| format!("+ {line}"));
    let mut all: Vec<String> = removed.chain(added).collect();
    // What was renamed stands together.
    all.sort_by(|a, b| a[2..].cmp(&b[2..]));
    all
}

/// The public items of each crate, one per line.
fn exported(checkout: &Checkout) -> Result<Vec<(&'static str, String)>, Failure> {
    document(checkout)?;
    let folder = target_folder(checkout)?.join("doc");
    let crates = CRATES.iter().copied();
    crates
        .map(|name| {
            let json = folder.join(format!("{}.json", name.replace('-', "_")));
            Ok((name, items(name, json)?))
        })
        .collect()
}

fn items(name: &str, json: PathBuf) -> Result<String, Failure> {
    let items = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    let items = items.map_err(|error| Failure::Findings {
        check: "public-api",
        lines: vec![format!("the rustdoc JSON of {name} cannot be read: {error}")],
        hint: "let the version of `public-api` in Cargo.toml fit the toolchain in rust-toolchain.toml",
    })?;
    Ok(items.to_string())
}

/// Documents the crates as JSON.
fn document(checkout: &Checkout) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(Failure::file(Path::new("xtask")))?;
    let mut command = cargo(checkout);
    command.env("RUSTDOC", program).env(AS_RUSTDOC, "1");
    command.env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json");
    command.args(["doc", "--quiet", "--no-deps", "--lib"]);
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    run_program(command.args(packages))
}

/// The target folder, which cargo alone knows.
fn target_folder(checkout: &Checkout) -> Result<PathBuf, Failure> {
    let metadata = capture(cargo(checkout).args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).unwrap_or_default();
    let folder = metadata["target_directory"].as_str();
    Ok(folder.map_or_else(|| checkout.path("target"), PathBuf::from))
}

/// Runs rustdoc if cargo started this process as its rustdoc.
///
/// Only rustdoc may use unstable options. In the environment of cargo itself, the variable would make build scripts run
/// again, and with them most of the dependencies be built again.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(AS_RUSTDOC)?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(std::env::args_os().skip(1));
    let status = rustdoc.env("RUSTC_BOOTSTRAP", "1").status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_item_is_shown_as_removed_and_added() {
        let listed = "pub mod a\npub fn a::old()\npub fn a::same()\n";
        let exported = "pub mod a\npub fn a::new()\npub fn a::same()\n";
        assert_eq!(
            differences(listed, exported),
            ["+ pub fn a::new()", "- pub fn a::old()"]
        );
        assert!(differences(listed, listed).is_empty());
    }
}
