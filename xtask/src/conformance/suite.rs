//! The suite itself: installed by npm, run by Node, its results read back.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use mcpact_spec::{Era, Revision};

use super::leg::Leg;
use super::requirement_set::RequirementSet;
use super::results::{Check, Results};
use super::score::Score;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::node::{self, Pin};
use crate::process::remove;

const FOLDER: &str = "target/conformance";
const PACKAGE: &str = "@modelcontextprotocol/conformance";
/// Pinned: the tag `latest` is older and knows neither 2026-07-28 nor requirement sets.
const VERSION: &str = "0.2.0-alpha.12";

/// An installed suite.
pub(super) struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

impl Suite {
    /// Installs the suite if it is missing.
    pub(super) fn install(checkout: &Checkout) -> Result<Self, Failure> {
        let folder = checkout.path(FOLDER);
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        node::install(checkout, &folder, &[Pin::new(PACKAGE, VERSION)])?;
        let node = node::program(checkout)?;
        Ok(Self { folder, node })
    }

    /// Log file of a program.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Runs the scenarios of a revision against `target` and judges the results.
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
            .arg(leg.role())
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

    /// Runs a scenario of an extension and returns its checks.
    pub(super) fn scenario(&self, name: &str, of: &str, url: &str) -> Result<Vec<Check>, Failure> {
        let output = self.folder.join("results").join(format!("{name}-{of}"));
        remove(&output)?;
        let revision = Revision::newest(Era::Modern).as_str();
        let mut command = Command::new(&self.node);
        command
            .arg(self.package().join("dist/index.js"))
            .arg("server");
        command.args(["--url", url, "--scenario", name, "--spec-version", revision]);
        command.args(["--force", "-o"]).arg(&output);
        let log = self.log(&format!("{name}-{of}"));
        command.stdout(File::create(&log).map_err(Failure::file(&log))?);
        let status = command.status();
        status.map_err(|source| Failure::NotStarted {
            command: format!("node {PACKAGE} {name}"),
            source,
        })?;
        let mut results = Results::read(&output, Leg::Server)?;
        Ok(results
            .take(name)
            .map_or_else(Vec::new, |record| record.checks))
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
        Leg::Client => "60000",
        _ => "30000",
    }
}

fn refused(line: String, hint: &'static str) -> Failure {
    Failure::Findings {
        check: "conformance",
        lines: vec![line],
        hint,
    }
}
