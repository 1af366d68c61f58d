//! `cargo xtask packaging`: checks the files in `packaging/` with the programs that read them.

mod containerfile;
mod nginx;
mod systemd;

use std::path::Path;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{build, program_at, succeeds};
use crate::report;

/// Result of one check that found nothing.
enum Outcome {
    Passed(&'static str),
    Skipped(&'static str),
}

/// Runs all checks. Those that need a missing program are skipped with the reason.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let program = build(checkout, &["-p", "mcpact-cli", "--bin", "mcpact"])?;
    let checks: [(&str, Check); 3] = [
        ("mcpact.service", systemd::check),
        ("Containerfile", containerfile::check),
        ("nginx.conf", nginx::check),
    ];
    for (file, check) in checks {
        match check(checkout, &program)? {
            Outcome::Passed(what) => report::say(format_args!("{file:<16}{what}")),
            Outcome::Skipped(reason) => report::say(format_args!("{file:<16}skipped: {reason}")),
        }
    }
    Ok(())
}

type Check = fn(&Checkout, &Path) -> Result<Outcome, Failure>;

fn is_installed(checkout: &Checkout, program: &str) -> bool {
    succeeds(program_at(checkout, program).arg("--version"))
}

/// Replaces a part of a file that must occur in it.
fn replaced(text: &str, file: &'static str, from: &str, to: &str) -> Result<String, Failure> {
    if text.contains(from) {
        return Ok(text.replace(from, to));
    }
    Err(Failure::Findings {
        check: "packaging",
        lines: vec![format!("`{file}` does not contain `{from}`")],
        hint: "the check replaces this part; change both",
    })
}
