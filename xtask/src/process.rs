//! Runs other programs in the root of the checkout.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::checkout::Checkout;
use crate::failure::Failure;

/// The cargo that runs this command, or the one in `PATH`.
pub(crate) fn cargo(checkout: &Checkout) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    program_at(checkout, program)
}

/// A program that starts at the root of the checkout.
pub(crate) fn program_at(checkout: &Checkout, program: impl Into<OsString>) -> Command {
    let mut command = Command::new(program.into());
    command.current_dir(checkout.root());
    command
}

/// Runs a program with inherited standard streams.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(not_started(command))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Program {
        command: spelled(command),
        status,
    })
}

/// Runs a program and returns its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String, Failure> {
    command.stdout(Stdio::piped());
    let child = command.spawn().map_err(not_started(command))?;
    let output = child.wait_with_output().map_err(not_started(command))?;
    if !output.status.success() {
        return Err(Failure::Program {
            command: spelled(command),
            status: output.status,
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns `true` if the program succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs a cargo command unless `cargo <name> --version` answers.
pub(crate) fn ensure_installed(checkout: &Checkout, name: &str) -> Result<(), Failure> {
    if succeeds(cargo(checkout).args([name, "--version"])) {
        return Ok(());
    }
    run(cargo(checkout).args(["install", "--locked", &format!("cargo-{name}")]))
}

/// Builds one program and returns its path as reported by cargo.
pub(crate) fn build(checkout: &Checkout, what: &[&str]) -> Result<PathBuf, Failure> {
    let mut command = cargo(checkout);
    command.args(["build", "--message-format=json-render-diagnostics"]);
    let messages = capture(command.args(what))?;
    executable(&messages).ok_or_else(|| Failure::Findings {
        check: "build",
        lines: vec![format!("`cargo build {}` names no program", what.join(" "))],
        hint: "the target may have changed its name",
    })
}

/// Path of the last executable in the messages of a build.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
}

/// Removes a directory with all results of an earlier run.
pub(crate) fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(folder)(error)),
        _ => Ok(()),
    }
}

fn not_started(command: &Command) -> impl FnOnce(std::io::Error) -> Failure + use<> {
    let command = spelled(command);
    move |source| Failure::NotStarted { command, source }
}

/// Command line without the path of the toolchain and without quotes.
fn spelled(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_found_in_the_messages_of_a_build() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","executable":"/t/debug/mcpact"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
            "\n",
        );
        assert_eq!(executable(messages).unwrap(), Path::new("/t/debug/mcpact"));
        assert_eq!(executable(r#"{"reason":"build-finished"}"#), None);
    }

    #[test]
    fn results_of_an_earlier_run_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        remove(&results).unwrap();
        fs::create_dir_all(results.join("old")).unwrap();
        remove(&results).unwrap();
        assert!(!results.exists());
    }
}
