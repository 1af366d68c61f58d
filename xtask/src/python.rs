//! PyPI packages in virtual environments.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{program_at, remove, run as run_program, succeeds};
use crate::report;

/// The package `fastmcp`, whose proxy and search are compared with ours.
pub(crate) const FASTMCP: &str = "fastmcp==4.1.2";
/// Directory of the environments of other relays.
pub(crate) const RELAYS: &str = "target/relays/python";
/// Written last: an environment without it is incomplete.
const STAMP: &str = "pins.txt";
/// Minimum Python version of the packages.
const OLDEST: (u32, u32) = (3, 10);

/// The interpreter of an environment with exactly these packages, made unless it is there.
pub(crate) fn environment(
    checkout: &Checkout,
    folder: &Path,
    pins: &[String],
) -> Result<PathBuf, Failure> {
    let home = folder.join(pins.join("+").replace("==", "-"));
    let python = home.join("bin/python");
    let stamp = home.join(STAMP);
    let wanted = pins.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let (major, minor) = OLDEST;
    let check = format!("import sys; sys.exit(sys.version_info < ({major}, {minor}))");
    if !succeeds(program_at(checkout, "python3").args(["-c", &check])) {
        return Err(Failure::Findings {
            check: "python",
            lines: vec![format!("`python3` is not Python {major}.{minor} or newer")],
            hint: "install it together with its module `venv`",
        });
    }
    remove(&home)?;
    report::say(format_args!("installing {}", pins.join(" and ")));
    run_program(
        program_at(checkout, "python3")
            .args(["-m", "venv"])
            .arg(&home),
    )?;
    let mut pip = program_at(checkout, &python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    run_program(pip.args(pins))?;
    fs::write(&stamp, wanted).map_err(Failure::file(&stamp))?;
    Ok(python)
}
