//! `cargo xtask test`: all checks as a table of steps. CI runs the whole table, developers the fast part.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program};
use crate::{
    conformance, deny, faults, fuzz, instructions, interop, lint, oracle, packaging, public_api,
    purity, report, requirements, tables,
};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only the fast steps, for the loop while developing.
    #[arg(long)]
    fast: bool,
}

/// One check.
struct Step {
    name: &'static str,
    /// Command that runs this step alone.
    command: &'static str,
    /// Part of `--fast`.
    fast: bool,
    run: fn(&Checkout) -> Result<Outcome, Failure>,
}

/// Result of a step that did not fail.
enum Outcome {
    Passed,
    Skipped(&'static str),
}

/// The steps, cheapest first.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        command: "cargo fmt --all --check",
        fast: true,
        run: |checkout| cargo_step(checkout, "fmt --all --check"),
    },
    Step {
        name: "lint",
        command: "cargo xtask lint",
        fast: true,
        run: |checkout| lint::run(checkout).map(passed),
    },
    Step {
        name: "purity",
        command: "cargo xtask purity",
        fast: true,
        run: |checkout| purity::run(checkout).map(passed),
    },
    Step {
        name: "requirements",
        command: "cargo xtask requirements",
        fast: true,
        run: |checkout| requirements::run(checkout).map(passed),
    },
    Step {
        name: "tables",
        command: "cargo xtask tables --check",
        fast: true,
        run: |checkout| tables::check(checkout).map(passed),
    },
    Step {
        name: "oracle",
        command: "cargo xtask oracle",
        fast: true,
        run: |checkout| oracle::check_tables(checkout).map(passed),
    },
    Step {
        name: "clippy",
        command: "cargo clippy --workspace --all-targets -- -D warnings",
        fast: true,
        run: |checkout| cargo_step(checkout, "clippy --workspace --all-targets -- -D warnings"),
    },
    Step {
        name: "tests",
        command: "cargo test --workspace --lib --bins --tests",
        fast: true,
        run: tests,
    },
    Step {
        name: "dependencies",
        command: "cargo deny --offline check licenses bans sources",
        fast: false,
        run: |checkout| deny::check_offline(checkout).map(passed),
    },
    Step {
        name: "sixth revision",
        command: SIXTH_REVISION,
        fast: false,
        run: |checkout| cargo_step(checkout, SIXTH_REVISION.trim_start_matches("cargo ")),
    },
    Step {
        name: "slow tests",
        command: SLOW_TESTS,
        fast: false,
        run: |checkout| cargo_step(checkout, SLOW_TESTS.trim_start_matches("cargo ")),
    },
    Step {
        name: "without std",
        command: "cargo check -p mcpact-spec -p mcpact-wire -p mcpact-engine --lib --target <TARGET>",
        fast: false,
        run: without_std,
    },
    Step {
        name: "doc tests",
        command: "cargo test --workspace --doc",
        fast: false,
        run: |checkout| cargo_step(checkout, "test --workspace --doc"),
    },
    Step {
        name: "documentation",
        command: "RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps",
        fast: false,
        run: documentation,
    },
    Step {
        name: "public api",
        command: "cargo xtask public-api",
        fast: false,
        run: |checkout| public_api::check(checkout).map(passed),
    },
    Step {
        name: "packaging",
        command: "cargo xtask packaging",
        fast: false,
        run: |checkout| packaging::run(checkout).map(passed),
    },
    Step {
        name: "instructions",
        command: "cargo xtask instructions --quick --check",
        fast: false,
        run: |checkout| instructions::run(checkout, &instructions::Options::guard()).map(passed),
    },
    Step {
        name: "faults",
        command: "cargo xtask faults --quick",
        fast: false,
        run: |checkout| faults::run(checkout, &faults::Options::quick()).map(passed),
    },
    Step {
        name: "fuzz",
        command: "cargo xtask fuzz --seconds 30",
        fast: false,
        run: |checkout| fuzz::run(checkout, &fuzz::Options::short()).map(passed),
    },
    Step {
        name: "conformance",
        command: "cargo xtask conformance",
        fast: false,
        run: |checkout| conformance::run(checkout, &conformance::Options::everything()).map(passed),
    },
    Step {
        name: "interop",
        command: "cargo xtask interop",
        fast: false,
        run: |checkout| interop::run(checkout, &interop::Options::everything()).map(passed),
    },
    Step {
        name: "crowd",
        command: "cargo xtask crowd",
        fast: false,
        run: |checkout| interop::crowd::run(checkout).map(passed),
    },
];

/// Test targets that are not part of `--fast`, and the examples, which have no tests but must link.
const SLOW_TESTS: &str =
    "cargo test --workspace --examples --test compatibility --test guard --test model";

/// Tests with a pretend sixth revision. They name the workspace to share dependencies with the other tests.
const SIXTH_REVISION: &str =
    "cargo test --workspace --features mcpact-cli/pretend-revision --test sixth_revision";

/// Runs the steps and stops at the first failure.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<(), Failure> {
    let (chosen, omitted): (Vec<&Step>, Vec<&Step>) =
        STEPS.iter().partition(|step| step.fast || !options.fast);
    let mut times = Times::default();
    let result = chosen.iter().try_for_each(|step| times.run(step, checkout));
    report::heading("time of each step");
    times.lines().into_iter().for_each(report::say);
    result?;
    report::heading(times.verdict());
    if !omitted.is_empty() {
        report::say("`--fast` left out these steps; `cargo xtask test` runs all:");
        for step in omitted {
            report::say(format_args!("  {:<16}{}", step.name, step.command));
        }
    }
    Ok(())
}

/// Duration of each step, or the reason why it was skipped.
#[derive(Default)]
struct Times {
    steps: Vec<(&'static str, Duration, Option<&'static str>)>,
}

impl Times {
    fn run(&mut self, step: &Step, checkout: &Checkout) -> Result<(), Failure> {
        report::heading(step.name);
        let start = Instant::now();
        let result = (step.run)(checkout);
        let skipped = match result {
            Ok(Outcome::Skipped(reason)) => Some(reason),
            Ok(Outcome::Passed) | Err(_) => None,
        };
        if let Some(reason) = skipped {
            report::say(format_args!("skipped: {reason}"));
        }
        self.steps.push((step.name, start.elapsed(), skipped));
        result.map(drop).map_err(|source| Failure::Step {
            step: step.name,
            command: step.command,
            source: Box::new(source),
        })
    }

    fn lines(&self) -> Vec<String> {
        let line = |name: &str, time: Duration| format!("{name:<16}{:>8.1} s", time.as_secs_f64());
        let mut lines: Vec<String> = self
            .steps
            .iter()
            .map(|(name, time, skipped)| match skipped {
                Some(reason) => format!("{name:<16} skipped: {reason}"),
                None => line(name, *time),
            })
            .collect();
        lines.push(line(
            "total",
            self.steps.iter().map(|(_, time, _)| time).sum(),
        ));
        lines
    }

    fn verdict(&self) -> String {
        let skipped = self.steps.iter().filter(|(.., skipped)| skipped.is_some());
        match skipped.count() {
            0 => format!("all {} steps passed", self.steps.len()),
            skipped => format!(
                "{} steps passed, {skipped} skipped",
                self.steps.len() - skipped
            ),
        }
    }
}

fn passed((): ()) -> Outcome {
    Outcome::Passed
}

fn cargo_step(checkout: &Checkout, arguments: &str) -> Result<Outcome, Failure> {
    run_program(cargo(checkout).args(arguments.split(' '))).map(passed)
}

/// Runs all tests but the slow targets. Always for the whole workspace: with `--package`, cargo would unify other
/// features and build everything twice.
fn tests(checkout: &Checkout) -> Result<Outcome, Failure> {
    let mut command = cargo(checkout);
    command.args(["test", "--workspace", "--lib", "--bins"]);
    for target in test_targets(checkout)? {
        if !has_own_step(&target) {
            command.args(["--test", &target]);
        }
    }
    run_program(&mut command).map(passed)
}

/// Returns true for test targets that run in a step of their own.
fn has_own_step(target: &str) -> bool {
    let mut arguments = SLOW_TESTS.split(' ').chain(SIXTH_REVISION.split(' '));
    arguments.any(|argument| argument == target)
}

/// Names of the integration tests: `tests/<name>.rs` and `tests/<name>/main.rs` of every crate.
fn test_targets(checkout: &Checkout) -> Result<BTreeSet<String>, Failure> {
    let mut targets = BTreeSet::new();
    for name in checkout.crates()? {
        let directory = checkout.path(&format!("crates/{name}/tests"));
        if !directory.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&directory).map_err(Failure::file(&directory))? {
            let path = entry.map_err(Failure::file(&directory))?.path();
            let is_target = path.join("main.rs").is_file()
                || path.extension().is_some_and(|extension| extension == "rs");
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            targets.extend(stem.filter(|_| is_target).map(str::to_owned));
        }
    }
    Ok(targets)
}

fn documentation(checkout: &Checkout) -> Result<Outcome, Failure> {
    let mut command = cargo(checkout);
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    run_program(command.args(["doc", "--workspace", "--no-deps"])).map(passed)
}

/// Compiles the pure crates for a target without the standard library.
fn without_std(checkout: &Checkout) -> Result<Outcome, Failure> {
    let installed = capture(program_at(checkout, "rustup").args(["target", "list", "--installed"]));
    let Some(target) = installed
        .ok()
        .as_deref()
        .and_then(bare_target)
        .map(str::to_owned)
    else {
        return Ok(Outcome::Skipped(
            "no bare target; install one with `rustup target add thumbv7em-none-eabi`",
        ));
    };
    let crates = "-p mcpact-spec -p mcpact-wire -p mcpact-engine";
    cargo_step(checkout, &format!("check {crates} --lib --target {target}"))
}

/// First target with the operating system `none`, which has no standard library.
fn bare_target(installed: &str) -> Option<&str> {
    installed
        .lines()
        .find(|target| target.split('-').skip(1).any(|part| part == "none"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Times, bare_target, has_own_step, test_targets};
    use crate::checkout::Checkout;

    #[test]
    fn bare_target_is_recognised() {
        let installed = "x86_64-unknown-linux-gnu\nthumbv7em-none-eabi\n";
        assert_eq!(bare_target(installed), Some("thumbv7em-none-eabi"));
        assert_eq!(
            bare_target("x86_64-unknown-none"),
            Some("x86_64-unknown-none")
        );
        assert_eq!(bare_target("x86_64-unknown-linux-gnu"), None);
    }

    #[test]
    fn test_targets_are_files_and_directories_with_a_main_file() {
        let root = tempfile::tempdir().unwrap();
        let tests = root.path().join("crates/a/tests");
        std::fs::create_dir_all(tests.join("guard")).unwrap();
        std::fs::create_dir_all(tests.join("snapshots")).unwrap();
        for file in [
            "../Cargo.toml",
            "wire.rs",
            "guard/main.rs",
            "snapshots/x.rs",
        ] {
            std::fs::write(tests.join(file), "").unwrap();
        }
        let targets = test_targets(&Checkout::at(root.path().to_owned())).unwrap();
        assert_eq!(Vec::from_iter(&targets), ["guard", "wire"]);
        assert!(has_own_step("guard") && !has_own_step("wire"));
    }

    #[test]
    fn skipped_steps_are_counted_and_keep_their_reason() {
        let second = Duration::from_secs(1);
        let mut times = Times::default();
        times.steps.push(("format", second, None));
        assert_eq!(times.verdict(), "all 1 steps passed");
        times.steps.push(("without std", second, Some("no target")));
        assert_eq!(times.verdict(), "1 steps passed, 1 skipped");
        let lines = times.lines();
        assert!(lines[1].ends_with("skipped: no target"), "{lines:?}");
        assert!(lines[2].ends_with("2.0 s"), "{lines:?}");
    }
}
