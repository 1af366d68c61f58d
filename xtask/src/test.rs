use std::time::Instant;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{capture, cargo, program_at, run as run_program};
use crate::{
    conformance, faults, interop, lint, oracle, public_api, purity, report, requirements, tables,
};

/// One check, how it is run here, and how a person repeats it.
struct Step {
    name: &'static str,
    repeat: &'static str,
    run: fn(&Checkout) -> Result<Outcome, Failure>,
}

/// How a step ended when it did not fail.
enum Outcome {
    Done,
    Skipped(&'static str),
}

/// The steps, cheapest first, so that a slip shows early.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        repeat: "cargo fmt --all --check",
        run: |checkout| cargo_step(checkout, "fmt --all --check"),
    },
    Step {
        name: "lint",
        repeat: "cargo xtask lint",
        run: |checkout| lint::run(checkout).map(done),
    },
    Step {
        name: "clippy",
        repeat: "cargo clippy --workspace --all-targets -- -D warnings",
        run: |checkout| cargo_step(checkout, "clippy --workspace --all-targets -- -D warnings"),
    },
    Step {
        name: "purity",
        repeat: "cargo xtask purity",
        run: |checkout| purity::run(checkout).map(done),
    },
    Step {
        name: "without std",
        repeat: "cargo check -p mcpact-spec -p mcpact-wire -p mcpact-engine --lib --target <TARGET>",
        run: without_std,
    },
    Step {
        name: "tests",
        repeat: "cargo test --workspace --lib --bins --tests --examples",
        run: |checkout| cargo_step(checkout, "test --workspace --lib --bins --tests --examples"),
    },
    Step {
        name: "faults",
        repeat: "cargo xtask faults --quick",
        run: |checkout| faults::run(checkout, &faults::Options::quick()).map(done),
    },
    Step {
        name: "examples in the docs",
        repeat: "cargo test --workspace --doc",
        run: |checkout| cargo_step(checkout, "test --workspace --doc"),
    },
    Step {
        name: "conformance",
        repeat: "cargo xtask conformance",
        run: |checkout| conformance::run(checkout, &conformance::Options::everything()).map(done),
    },
    Step {
        name: "interop",
        repeat: "cargo xtask interop",
        run: |checkout| interop::run(checkout, &interop::Options::everything()).map(done),
    },
    Step {
        name: "crowd",
        repeat: "cargo xtask crowd",
        run: |checkout| interop::crowd::run(checkout).map(done),
    },
    Step {
        name: "documentation",
        repeat: "RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps",
        run: documentation,
    },
    Step {
        name: "public api",
        repeat: "cargo xtask public-api",
        run: |checkout| public_api::check(checkout).map(done),
    },
    Step {
        name: "requirements",
        repeat: "cargo xtask requirements",
        run: |checkout| requirements::run(checkout).map(done),
    },
    Step {
        name: "tables",
        repeat: "cargo xtask tables --check",
        run: |checkout| tables::check(checkout).map(done),
    },
    Step {
        name: "oracle",
        repeat: "cargo xtask oracle",
        run: |checkout| oracle::run(checkout, None).map(done),
    },
];

/// Run every step and stop at the first that fails.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let mut summary = Vec::new();
    for step in STEPS {
        report::heading(step.name);
        let start = Instant::now();
        let outcome = (step.run)(checkout).map_err(|source| Failure::Step {
            step: step.name,
            repeat: step.repeat,
            source: Box::new(source),
        })?;
        let seconds = start.elapsed().as_secs_f64();
        summary.push(match outcome {
            Outcome::Done => format!("{:<22}{seconds:>7.1} s", step.name),
            Outcome::Skipped(why) => format!("{:<22}skipped: {why}", step.name),
        });
        if let Outcome::Skipped(why) = outcome {
            report::say(format_args!("skipped: {why}"));
        }
    }
    report::heading("all steps passed");
    summary.into_iter().for_each(report::say);
    Ok(())
}

fn done((): ()) -> Outcome {
    Outcome::Done
}

fn cargo_step(checkout: &Checkout, words: &str) -> Result<Outcome, Failure> {
    run_program(cargo(checkout).args(words.split(' '))).map(done)
}

fn documentation(checkout: &Checkout) -> Result<Outcome, Failure> {
    let mut command = cargo(checkout);
    command.env("RUSTDOCFLAGS", "-Dwarnings");
    run_program(command.args(["doc", "--workspace", "--no-deps"])).map(done)
}

/// Compile the pure crates where there is no standard library to use.
fn without_std(checkout: &Checkout) -> Result<Outcome, Failure> {
    let installed = capture(program_at(checkout, "rustup").args(["target", "list", "--installed"]));
    let Some(target) = installed
        .ok()
        .as_deref()
        .and_then(bare_target)
        .map(str::to_owned)
    else {
        return Ok(Outcome::Skipped(
            "no target without std is installed; `purity` reads the sources",
        ));
    };
    let crates = "-p mcpact-spec -p mcpact-wire -p mcpact-engine";
    cargo_step(checkout, &format!("check {crates} --lib --target {target}"))
}

/// The first target whose system part is `none`: such a target has no std.
fn bare_target(installed: &str) -> Option<&str> {
    installed
        .lines()
        .find(|target| target.split('-').skip(1).any(|part| part == "none"))
}

#[cfg(test)]
mod tests {
    use super::bare_target;

    #[test]
    fn a_target_without_std_is_recognised() {
        let installed = "x86_64-unknown-linux-gnu\nthumbv7em-none-eabi\n";
        assert_eq!(bare_target(installed), Some("thumbv7em-none-eabi"));
        assert_eq!(
            bare_target("x86_64-unknown-none"),
            Some("x86_64-unknown-none")
        );
        assert_eq!(bare_target("x86_64-unknown-linux-gnu"), None);
    }
}
