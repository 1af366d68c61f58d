//! Findings about the program of a server and its runtimes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use mcpact_transport::stdio::child::ChildCommand;
use tokio::process::Command;
use tokio::time::timeout;

use super::{Finding, Subject};

/// Time for a runtime to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// A runtime that a program needs.
#[derive(Debug, PartialEq, Eq)]
struct Runtime {
    /// Program that prints the version with `--version`.
    program: &'static str,
    /// Oldest version that current MCP packages support: major and minor number.
    minimum: Option<(u32, u32)>,
    remedy: &'static str,
}

const NODE: Runtime = Runtime {
    program: "node",
    minimum: Some((18, 0)),
    remedy: "install Node.js 18 or newer",
};
const PYTHON: Runtime = Runtime {
    program: "python3",
    minimum: Some((3, 10)),
    remedy: "install Python 3.10 or newer",
};

/// Runtimes by the name of the program that needs them.
const RUNTIMES: &[(&str, &[Runtime])] = &[
    ("node", &[NODE]),
    ("npx", &[NODE]),
    ("npm", &[NODE]),
    ("pnpm", &[NODE]),
    ("yarn", &[NODE]),
    (
        "python",
        &[Runtime {
            program: "python",
            ..PYTHON
        }],
    ),
    ("python3", &[PYTHON]),
    ("pipx", &[PYTHON]),
    ("uvx", &[UV]),
    ("uv", &[UV]),
    (
        "deno",
        &[Runtime {
            program: "deno",
            minimum: None,
            remedy: "install Deno",
        }],
    ),
    ("bunx", &[BUN]),
    ("bun", &[BUN]),
    (
        "docker",
        &[Runtime {
            program: "docker",
            minimum: None,
            remedy: "install Docker",
        }],
    ),
];

const UV: Runtime = Runtime {
    program: "uv",
    minimum: None,
    remedy: "install uv",
};
const BUN: Runtime = Runtime {
    program: "bun",
    minimum: None,
    remedy: "install Bun",
};

/// Examines the program of a command and its runtimes.
pub(super) async fn examine(command: &ChildCommand) -> Vec<Finding> {
    let program = command.program.to_string_lossy().into_owned();
    let mut findings = vec![match command.launch_problem() {
        None => Finding::ok(
            Subject::Program,
            format!("`{program}` is found and executable"),
        ),
        Some(problem) => {
            let text = format!("`{program}`: {problem}");
            Finding::problem(Subject::Program, text, problem.remedy())
        }
    }];
    for runtime in runtimes(&program) {
        findings.push(examine_runtime(runtime, command).await);
    }
    findings
}

/// Returns the runtimes that a program needs.
fn runtimes(program: &str) -> &'static [Runtime] {
    let name = Path::new(program).file_stem().unwrap_or_default();
    let row = RUNTIMES.iter().find(|(needs, _)| name == *needs);
    row.map_or(&[], |(_, runtimes)| runtimes)
}

async fn examine_runtime(runtime: &Runtime, command: &ChildCommand) -> Finding {
    let name = runtime.program;
    let Some(path) = find(runtime, command) else {
        return Finding::problem(
            Subject::Runtime,
            format!("`{name}` is not in the `PATH` of the server"),
            runtime.remedy,
        );
    };
    let mut version = Command::new(path);
    version
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if let Some(path) = command.env.get(std::ffi::OsStr::new("PATH")) {
        version.env("PATH", path);
    }
    let output = timeout(VERSION_TIMEOUT, version.output()).await;
    let Ok(Ok(output)) = output else {
        return Finding::problem(
            Subject::Runtime,
            format!("`{name} --version` does not run"),
            runtime.remedy,
        );
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    judge(runtime, &text)
}

/// Judges the version that a runtime prints.
fn judge(runtime: &Runtime, text: &str) -> Finding {
    let name = runtime.program;
    let shown = text.lines().next().unwrap_or_default().trim();
    match (version(text), runtime.minimum) {
        (Some(found), Some(minimum)) if found < minimum => Finding::problem(
            Subject::Runtime,
            format!(
                "`{name}` is too old: {shown}; current packages need {}.{}",
                minimum.0, minimum.1
            ),
            runtime.remedy,
        ),
        (None, Some(_)) => Finding::warning(
            Subject::Runtime,
            format!("`{name} --version` prints no version"),
            runtime.remedy,
        ),
        (Some(_), _) | (None, None) => Finding::ok(Subject::Runtime, format!("`{name}`: {shown}")),
    }
}

/// Returns major and minor number of the first version in a text, such as `v22.1.0` or `Python 3.12.3`.
fn version(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut numbers = text.get(start..)?.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

/// Returns the path of a runtime, next to the program or in the `PATH` of the server.
fn find(runtime: &Runtime, command: &ChildCommand) -> Option<PathBuf> {
    let mut lookup = command.clone();
    lookup.program = runtime.program.into();
    lookup.found()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn versions_are_read_from_the_usual_outputs() {
        for (text, expected) in [
            ("v22.14.0\n", Some((22, 14))),
            ("Python 3.12.3", Some((3, 12))),
            ("uv 0.9.5 (d5f39331a 2025-10-21)", Some((0, 9))),
            ("Docker version 28.0.1, build 068a01e", Some((28, 0))),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn old_runtimes_are_problems() {
        assert_eq!(judge(&NODE, "v16.20.2").level, Level::Problem);
        assert_eq!(judge(&NODE, "v18.0.0").level, Level::Ok);
        assert_eq!(judge(&PYTHON, "Python 3.9.1").level, Level::Problem);
        assert_eq!(judge(&PYTHON, "Python 3.10.0").level, Level::Ok);
        assert_eq!(judge(&NODE, "?").level, Level::Warning);
        assert_eq!(judge(&UV, "?").level, Level::Ok);
    }

    #[test]
    fn runtimes_follow_from_the_program() {
        assert_eq!(runtimes("/usr/bin/npx"), [NODE]);
        assert_eq!(runtimes("npx.cmd"), [NODE]);
        assert_eq!(runtimes("uvx"), [UV]);
        assert_eq!(runtimes("./server"), []);
    }
}
