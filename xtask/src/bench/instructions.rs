//! The counter: gungraun's benchmark under valgrind and the files that it leaves.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::rows::Row;
use super::{json, missing};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program, succeeds};
use crate::report;

const RUNNER: &str = "gungraun-runner";

/// Result of counting instructions.
pub(super) enum Counted {
    Done,
    Skipped(&'static str),
}

fn home(target: &Path) -> PathBuf {
    target.join("gungraun")
}

/// Counts instructions, unless valgrind is not installed.
pub(super) fn count(checkout: &Checkout, target: &Path) -> Result<Counted, Failure> {
    if !succeeds(program_at(checkout, "valgrind").arg("--version")) {
        let why = "valgrind is not installed";
        report::say(format_args!("skipped: {why}"));
        return Ok(Counted::Skipped(why));
    }
    count_all(checkout, target).map(|()| Counted::Done)
}

/// Counts the instructions of all operations; valgrind is installed.
pub(crate) fn count_all(checkout: &Checkout, target: &Path) -> Result<(), Failure> {
    ensure_runner(checkout)?;
    let mut command = cargo(checkout);
    command.env("GUNGRAUN_HOME", home(target));
    command.args([
        "bench",
        "--package",
        "mcpact-bench",
        "--bench",
        "instructions",
        "--",
    ]);
    run_program(command.args(["--save-summary=json"]))
}

/// The runner and the library must be of the same version.
fn ensure_runner(checkout: &Checkout) -> Result<(), Failure> {
    let lock = checkout.read("Cargo.lock")?;
    let wanted = locked_version(&lock, "gungraun")
        .ok_or_else(|| missing(&checkout.path("Cargo.lock"), "gungraun"))?;
    let installed = capture(program_at(checkout, RUNNER).arg("--version"));
    if installed.is_ok_and(|words| words.trim() == format!("{RUNNER} {wanted}")) {
        return Ok(());
    }
    run_program(cargo(checkout).args(["install", "--locked", RUNNER, "--version", wanted]))
}

fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let named = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != named);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
}

/// The instructions of a row.
pub(super) fn read(target: &Path, row: &Row) -> Result<f64, Failure> {
    instructions(target, row.instructions)
}

/// The instructions of a benchmark by its name.
pub(crate) fn instructions(target: &Path, name: &str) -> Result<f64, Failure> {
    const MEMBER: &str = "/profiles/0/data/total/metrics/Ir/values/new";
    let path = home(target)
        .join("mcpact-bench/instructions/hot_paths")
        .join(name)
        .join("summary.json");
    json(&path)?
        .pointer(MEMBER)
        .and_then(Value::as_f64)
        .ok_or_else(|| missing(&path, MEMBER))
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    #[test]
    fn the_version_is_the_one_in_the_lock_file() {
        let lock = "[[package]]\nname = \"gungraun-common\"\nversion = \"0.1.0\"\n\n\
                    [[package]]\nname = \"gungraun\"\nversion = \"0.20.0\"\n";
        assert_eq!(locked_version(lock, "gungraun"), Some("0.20.0"));
        assert_eq!(locked_version(lock, "iai"), None);
    }
}
