//! The unit file, checked by `systemd-analyze`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Outcome, is_installed, replaced};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::program_at;

const UNIT: &str = "packaging/mcpact.service";
/// Exposure from 0 to 100, as `systemd-analyze security` rates it.
const EXPOSURE: &str = "--threshold=20";

pub(super) fn check(checkout: &Checkout, program: &Path) -> Result<Outcome, Failure> {
    if !is_installed(checkout, "systemd-analyze") {
        return Ok(Outcome::Skipped("systemd-analyze is not installed"));
    }
    let folder = checkout.path("target/packaging");
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let copy = folder.join("mcpact.service");
    // The program of the unit must exist.
    let installed = program.to_string_lossy();
    let unit = replaced(&checkout.read(UNIT)?, UNIT, "/usr/bin/mcpact", &installed)?;
    fs::write(&copy, unit).map_err(Failure::file(&copy))?;
    let analyze = || program_at(checkout, "systemd-analyze");
    let mut lines = complaints(analyze().arg("verify").arg(&copy))?;
    let mut security = analyze();
    security.args(["security", "--no-pager", "--offline=true", EXPOSURE]);
    if !succeeded(security.arg(&copy))? {
        lines.push("`systemd-analyze security` rates it as too exposed".to_owned());
    }
    Failure::unless_clean("mcpact.service", lines, "see `man systemd.exec`")?;
    Ok(Outcome::Passed("verified by systemd-analyze, not started"))
}

/// Lines that a check prints, and its failure.
fn complaints(command: &mut Command) -> Result<Vec<String>, Failure> {
    let output = command.output().map_err(|source| Failure::NotStarted {
        command: "systemd-analyze".to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !output.status.success() {
        lines.push(format!(
            "`systemd-analyze verify` failed ({})",
            output.status
        ));
    }
    Ok(lines)
}

fn succeeded(command: &mut Command) -> Result<bool, Failure> {
    let output = command.output().map_err(|source| Failure::NotStarted {
        command: "systemd-analyze".to_owned(),
        source,
    })?;
    Ok(output.status.success())
}
