use std::process::Command;

use serde::Deserialize;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, ensure_installed, program_at, run as run_program};
use crate::report;

const MANIFEST: &str = "fuzz/Cargo.toml";

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The only target to run; all of them without it.
    target: Option<String>,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    bin: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Runs the fuzz targets one after the other.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let chosen = choose(targets(checkout)?, options.target.as_deref())?;
    ensure_installed(checkout, "fuzz")?;
    let nightly = nightly(checkout);
    for target in chosen {
        report::heading(format_args!("fuzz {target} for {} s", options.seconds));
        let limit = format!("-max_total_time={}", options.seconds);
        let mut command = unstable_cargo(checkout, nightly.as_deref());
        // What is found goes to a folder of its own; the committed corpus is only read.
        let found = format!("fuzz/target/found/{target}");
        let folder = checkout.path(&found);
        std::fs::create_dir_all(&folder).map_err(|source| Failure::File {
            path: folder,
            source,
        })?;
        let corpus = format!("fuzz/corpus/{target}");
        run_program(command.args(["fuzz", "run", &target, &found, &corpus, "--", &limit]))?;
    }
    Ok(())
}

fn targets(checkout: &Checkout) -> Result<Vec<String>, Failure> {
    let text = checkout.read(MANIFEST)?;
    let manifest: Manifest = toml::from_str(&text).map_err(|source| Failure::Toml {
        path: checkout.path(MANIFEST),
        source,
    })?;
    Ok(manifest.bin.into_iter().map(|target| target.name).collect())
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
            "no such target; `{MANIFEST}` has: {}",
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
