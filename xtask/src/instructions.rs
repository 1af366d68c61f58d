//! Instructions per call through `mcpact bridge` and `mcpact serve`, held against the committed count.

mod hot_paths;

use std::fs;

use serde::Deserialize;

use crate::bench::{markdown, target_folder};
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{build, capture, cargo, program_at, run as run_program, succeeds};
use crate::report;

/// The committed count.
const PAGE: &str = "docs/benchmarks/instructions.md";

/// Calls of the short and the long run; only the difference counts.
const CALLS: [u64; 2] = [100, 1100];

/// Growth of a cell that `--check` tolerates.
const TOLERANCE: f64 = 1.05;

/// Options of `cargo xtask instructions`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare with the committed count instead of replacing it.
    #[arg(long)]
    check: bool,
    /// Count hot paths of the libraries instead of whole calls, without a release build.
    #[arg(long)]
    quick: bool,
}

impl Options {
    /// Options of the step of `cargo xtask test`.
    pub(crate) fn guard() -> Self {
        Self {
            check: true,
            quick: true,
        }
    }
}

/// One combination and its count.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Cell {
    pub(crate) command: String,
    client: String,
    server: String,
    upstream: String,
    pub(crate) instructions: u64,
}

/// Counts the instructions per call and writes or checks the committed page.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    ensure_valgrind(checkout)?;
    if options.quick {
        return hot_paths::run(checkout, options.check);
    }
    let counted = count(checkout)?;
    report::say(table(&counted).trim_end());
    if options.check {
        return check(&read(&checkout.read(PAGE)?), &counted);
    }
    let path = checkout.path(PAGE);
    fs::write(&path, page(&counted)).map_err(Failure::file(&path))
}

/// Cells of the committed page.
pub(crate) fn committed(checkout: &Checkout) -> Result<Vec<Cell>, Failure> {
    Ok(read(&checkout.read(PAGE)?))
}

/// Installs valgrind with the package manager of Debian and Ubuntu, unless it is there.
fn ensure_valgrind(checkout: &Checkout) -> Result<(), Failure> {
    let is_installed = || succeeds(program_at(checkout, "valgrind").arg("--version"));
    if is_installed() {
        return Ok(());
    }
    let is_root = capture(program_at(checkout, "id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let apt = |words: &[&str]| {
        let mut command = match is_root {
            true => program_at(checkout, "apt-get"),
            false => {
                let mut sudo = program_at(checkout, "sudo");
                sudo.args(["-n", "apt-get"]);
                sudo
            }
        };
        run_program(command.args(words))
    };
    // Lists of packages may be missing or too old on a fresh machine.
    let installed = apt(&["update", "--quiet"])
        .and_then(|()| apt(&["install", "--yes", "--quiet", "valgrind"]));
    if installed.is_ok() && is_installed() {
        return Ok(());
    }
    Err(Failure::Findings {
        check: "instructions",
        lines: vec!["valgrind is not installed".to_owned()],
        hint: "install it with the package manager of your system, for example `apt install valgrind`",
    })
}

fn count(checkout: &Checkout) -> Result<Vec<Cell>, Failure> {
    let mcpact = build(checkout, &["--release", "--package", "mcpact-cli"])?;
    // The client and the server are not counted: a debug build does.
    run_program(cargo(checkout).args(["build", "--package", "mcpact-load"]))?;
    let program = target_folder(checkout).join("debug/load-instructions");
    let mut command = program_at(checkout, program.clone());
    let [few, many] = CALLS.map(|calls| calls.to_string());
    command.arg(mcpact);
    command.args(["--few", &few, "--many", &many]);
    let text = capture(&mut command)?;
    serde_json::from_str(&text).map_err(|source| Failure::Json {
        path: program,
        source,
    })
}

impl Cell {
    pub(crate) fn key(&self) -> [&str; 4] {
        [&self.command, &self.client, &self.server, &self.upstream]
    }
}

fn table(cells: &[Cell]) -> String {
    let rows = cells.iter().map(|cell| {
        let mut row: Vec<String> = cell.key().map(str::to_owned).to_vec();
        row.push(cell.instructions.to_string());
        row
    });
    let head = ["command", "client", "server", "upstream", "instructions"];
    markdown::table(&head, rows.collect())
}

fn page(cells: &[Cell]) -> String {
    let [few, many] = CALLS;
    format!(
        "# Instructions per call\n\n\
         Written by `cargo xtask instructions`; `cargo xtask instructions --check` fails if a cell grows by more than 5 %.\n\n\
         {}\n\
         Each row is one `tools/call` with 1 KiB of text and a result of the same size, from an HTTP client through \
         `mcpact bridge --listen` or `mcpact serve` (`/mcp`) to the upstream server. `legacy` is revision 2025-11-25, `modern` \
         is 2026-07-28.\n\n\
         Conditions: x86-64 Linux, release profile (fat LTO), valgrind's callgrind on the `mcpact` process only, one worker \
         thread, one open call. A run of {few} calls is subtracted from a run of {many} calls, so start-up does not count. \
         Instructions of the kernel are not included.\n",
        table(cells)
    )
}

/// The rows of a committed page.
fn read(page: &str) -> Vec<Cell> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Cell> {
    let cells = line.strip_prefix('|')?.strip_suffix('|')?.split('|');
    let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
    let [command, client, server, upstream, instructions] = cells.try_into().ok()?;
    Some(Cell {
        command,
        client,
        server,
        upstream,
        instructions: instructions.parse().ok()?,
    })
}

fn check(committed: &[Cell], counted: &[Cell]) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for cell in counted {
        let key = cell.key().join(", ");
        let before = committed.iter().find(|before| before.key() == cell.key());
        match before.map(|before| before.instructions) {
            None => findings.push(format!("{key}: not in `{PAGE}`")),
            Some(before) => {
                let growth = cell.instructions as f64 / before.max(1) as f64;
                if growth > TOLERANCE {
                    let percent = (growth - 1.0) * 100.0;
                    findings.push(format!(
                        "{key}: {} instructions, {before} committed (+{percent:.1} %)",
                        cell.instructions
                    ));
                }
            }
        }
    }
    let missing = committed
        .iter()
        .filter(|before| counted.iter().all(|cell| cell.key() != before.key()));
    findings.extend(missing.map(|cell| format!("{}: not counted", cell.key().join(", "))));
    Failure::unless_clean(
        "instructions",
        findings,
        "remove the cost, or run `cargo xtask instructions` and commit the page with the reason",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(command: &str, instructions: u64) -> Cell {
        Cell {
            command: command.to_owned(),
            client: "legacy".to_owned(),
            server: "modern".to_owned(),
            upstream: "HTTP".to_owned(),
            instructions,
        }
    }

    #[test]
    fn committed_page_reads_back_as_the_counted_cells() {
        let cells = vec![cell("bridge", 81_300), cell("serve", 99_000)];
        assert_eq!(read(&page(&cells)), cells);
    }

    #[test]
    fn growth_above_the_tolerance_fails_the_check() {
        let committed = [cell("bridge", 1000)];
        assert!(check(&committed, &[cell("bridge", 900)]).is_ok());
        assert!(check(&committed, &[cell("bridge", 1050)]).is_ok());
        let failure = check(&committed, &[cell("bridge", 1051)]).unwrap_err();
        let expected = "bridge, legacy, modern, HTTP: 1051 instructions, 1000 committed (+5.1 %)";
        assert!(failure.to_string().contains(expected), "{failure}");
    }

    #[test]
    fn new_cells_and_missing_cells_fail_the_check() {
        let committed = [cell("bridge", 1000)];
        let both = [cell("bridge", 1000), cell("serve", 1)];
        assert!(check(&committed, &both).is_err());
        assert!(check(&both, &committed).is_err());
    }
}
