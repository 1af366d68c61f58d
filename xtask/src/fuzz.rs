use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::available_parallelism;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, ensure_installed, program_at, run as run_program};
use crate::report;

/// Folder of the targets, one file each.
const TARGETS: &str = "fuzz/fuzz_targets";

/// Seconds after which a single input counts as a hang.
const HANG: &str = "-timeout=25";

/// Number of lines of the log that a failure shows: the panic, its backtrace and the path of the input.
const SHOWN: usize = 80;

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The only target to run; all of them without it.
    target: Option<String>,
}

impl Options {
    /// Options of the step of `cargo xtask test`.
    pub(crate) fn short() -> Self {
        Self {
            seconds: 30,
            target: None,
        }
    }
}

/// A running target.
struct Running {
    target: String,
    child: Child,
    log: PathBuf,
}

/// Runs the fuzz targets, as many at a time as the machine has cores.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let chosen = choose(targets(checkout)?, options.target.as_deref())?;
    ensure_installed(checkout, "fuzz")?;
    let nightly = nightly(checkout);
    // Before the time of the targets begins.
    let mut build = unstable_cargo(checkout, nightly.as_deref());
    run_program(build.args(["fuzz", "build"]).args(&options.target))?;
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    let mut findings = Vec::new();
    for group in chosen.chunks(cores) {
        report::heading(format_args!(
            "fuzz {} for {} s",
            group.join(", "),
            options.seconds
        ));
        let begin = |target| begin(checkout, nightly.as_deref(), target, options.seconds);
        let running: Vec<Result<Running, Failure>> = group.iter().map(begin).collect();
        // All are awaited before the first error is returned.
        let ended: Vec<Result<Option<String>, Failure>> =
            running.into_iter().map(|one| finish(one?)).collect();
        for one in ended {
            findings.extend(one?);
        }
    }
    let hint = "the log names the input; after the fix, commit it to the corpus";
    Failure::unless_clean("fuzz", findings, hint)
}

/// Starts a target, with its output in a file.
fn begin(
    checkout: &Checkout,
    nightly: Option<&str>,
    target: &String,
    seconds: u64,
) -> Result<Running, Failure> {
    // What is found goes to a folder of its own; the committed corpus is only read.
    let found = format!("fuzz/target/found/{target}");
    let folder = checkout.path(&found);
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let log = folder.with_extension("log");
    let open = File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, errors) = open.map_err(Failure::file(&log))?;
    let corpus = format!("fuzz/corpus/{target}");
    let limit = format!("-max_total_time={seconds}");
    let mut command = unstable_cargo(checkout, nightly);
    command.args(["fuzz", "run", target, &found, &corpus, "--", &limit, HANG]);
    let child = command.stdout(out).stderr(errors).spawn();
    Ok(Running {
        target: target.clone(),
        child: child.map_err(Failure::file(&log))?,
        log,
    })
}

/// Waits for a target. Returns the finding, if there is one.
fn finish(running: Running) -> Result<Option<String>, Failure> {
    let Running {
        target,
        mut child,
        log,
    } = running;
    let status = child.wait().map_err(Failure::file(&log))?;
    let text = fs::read(&log).map_err(Failure::file(&log))?;
    let text = String::from_utf8_lossy(&text);
    if status.success() {
        // `Done 476737 runs in 121 second(s)`
        report::say(format_args!(
            "{target}: {}",
            text.lines().last().unwrap_or_default()
        ));
        return Ok(None);
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..]
        .iter()
        .for_each(report::say);
    Ok(Some(format!("`{target}` failed; log: `{}`", log.display())))
}

/// Names of the files in the folder of the targets.
fn targets(checkout: &Checkout) -> Result<Vec<String>, Failure> {
    let files = checkout.rust_files(&[TARGETS])?;
    let names = files.iter().filter_map(|file| {
        let name = file.path.strip_prefix(TARGETS)?.strip_prefix('/')?;
        Some(name.strip_suffix(".rs")?.to_owned())
    });
    Ok(names.collect())
}

fn choose(targets: Vec<String>, only: Option<&str>) -> Result<Vec<String>, Failure> {
    let chosen: Vec<String> = targets
        .iter()
        .filter(|name| only.is_none_or(|only| only == *name))
        .cloned()
        .collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    Err(Failure::Findings {
        check: "fuzz",
        lines: vec![format!(
            "no such target; `{TARGETS}` has: {}",
            targets.join(", ")
        )],
        hint: "name one of these, or none to run them all",
    })
}

fn nightly(checkout: &Checkout) -> Option<String> {
    let list = capture(program_at(checkout, "rustup").args(["toolchain", "list"])).ok()?;
    nightly_of(&list)
}

fn nightly_of(list: &str) -> Option<String> {
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names
        .into_iter()
        .find(|name| name.starts_with("nightly"))
        .map(str::to_owned)
}

/// Cargo that accepts unstable flags, which sanitizers and coverage need: a nightly, or the pinned
/// compiler with `RUSTC_BOOTSTRAP`.
fn unstable_cargo(checkout: &Checkout, nightly: Option<&str>) -> Command {
    if let Some(toolchain) = nightly {
        let mut command = program_at(checkout, "rustup");
        command.args(["run", toolchain, "cargo"]);
        return command;
    }
    let mut command = cargo(checkout);
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::{choose, nightly_of};

    #[test]
    fn one_target_or_all_of_them() {
        let all = vec!["frame".to_owned(), "envelope".to_owned()];
        assert_eq!(choose(all.clone(), None).unwrap(), all);
        assert_eq!(choose(all.clone(), Some("frame")).unwrap(), ["frame"]);
        let refused = choose(all, Some("fram")).unwrap_err().to_string();
        assert!(refused.contains("frame, envelope"), "{refused}");
    }

    #[test]
    fn the_nightly_is_found_among_the_toolchains() {
        let list =
            "stable-x86_64-unknown-linux-gnu (active, default)\nnightly-x86_64-unknown-linux-gnu\n";
        assert_eq!(
            nightly_of(list).unwrap(),
            "nightly-x86_64-unknown-linux-gnu"
        );
        assert_eq!(nightly_of("stable-x86_64-unknown-linux-gnu\n"), None);
    }
}
