use std::fs;
use std::path::{Path, PathBuf};

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, ensure_installed, run as run_program};
use crate::report;

/// Checks the dependencies against `deny.toml`, with the current advisories.
///
/// A command of its own and no step of `test`: the advisories change from day to day, so the same
/// commit could pass today and fail tomorrow.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    ensure_installed(checkout, "deny")?;
    run_program(cargo(checkout).args(["deny", "check"]))
}

/// Checks what needs no network: licences, bans and sources, and the advisories if a database is at hand.
pub(crate) fn check_offline(checkout: &Checkout) -> Result<(), Failure> {
    ensure_installed(checkout, "deny")?;
    let check = |what: &[&str]| {
        // Warnings are about duplicate versions, which are often not ours to resolve.
        let mut command = cargo(checkout);
        command.args(["deny", "--offline", "--log-level", "error", "check"]);
        run_program(command.args(what))
    };
    check(&["licenses", "bans", "sources"])?;
    if has_advisories() {
        return check(&["advisories"]);
    }
    report::say("advisories not checked: no database at hand; `cargo xtask deny` downloads it");
    Ok(())
}

/// Returns true if cargo-deny has downloaded a database of advisories before.
///
/// cargo-deny creates the folder even where it cannot download anything, so an empty one is none.
fn has_advisories() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    home.is_some_and(|home| holds_database(&home.join("advisory-dbs")))
}

fn holds_database(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|databases| {
        databases
            .flatten()
            .any(|database| database.path().join(".git").exists())
    })
}

#[cfg(test)]
mod tests {
    use super::holds_database;

    #[test]
    fn only_a_downloaded_database_counts() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("advisory-dbs");
        assert!(!holds_database(&folder));
        std::fs::create_dir_all(folder.join("advisory-db-1")).unwrap();
        assert!(!holds_database(&folder));
        std::fs::create_dir_all(folder.join("advisory-db-1/.git")).unwrap();
        assert!(holds_database(&folder));
    }
}
