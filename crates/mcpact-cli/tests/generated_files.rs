//! `mcpact completions` and `mcpact man`: files generated from the command line definition.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output, Stdio};

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

fn mcpact(args: &[&str]) -> Output {
    let mut command = Command::new(MCPACT);
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = mcpact(args);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Names of the commands that `mcpact --help` lists.
fn listed_commands() -> Vec<String> {
    let help = stdout(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[test]
fn every_shell_completes_all_commands_and_no_internal_ones() {
    let commands = listed_commands();
    assert!(commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&["completions", shell]);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell}: {command}");
        }
        assert!(!script.contains("guard"), "{shell} completes `guard`");
    }
}

/// Returns what bash offers for the last of these words.
fn completed_by_bash(words: &[&str]) -> Vec<String> {
    let script = stdout(&["completions", "bash"]);
    let last = words.len() - 1;
    let run = format!(
        "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}\n_mcpact mcpact '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let output = Command::new("bash").args(["--norc", "-c", &run]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(completed_by_bash(&["mcpact", "completi"]), ["completions"]);
    let options = completed_by_bash(&["mcpact", "serve", "--li"]);
    assert_eq!(options, ["--listen"]);
}

#[test]
fn unknown_shell_is_a_usage_error() {
    let output = mcpact(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("tcsh"), "{message}");
}

#[test]
fn main_page_lists_the_commands_and_exit_codes() {
    let page = stdout(&["man"]);
    assert!(page.contains(".TH mcpact 1"), "{page}");
    for command in listed_commands() {
        let name = command.replace('-', "\\-");
        assert!(page.contains(&format!("mcpact\\-{name}(1)")), "{command}");
    }
    assert!(page.contains("Exit codes:"), "{page}");
    assert!(!page.contains("guard"), "{page}");
}

#[test]
fn out_writes_one_page_per_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    stdout(&["man", "--out", pages.to_str().unwrap()]);
    let names = std::fs::read_dir(&pages).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let commands = listed_commands().into_iter();
    let mut expected: Vec<String> = commands.map(|name| format!("mcpact-{name}.1")).collect();
    expected.push(String::from("mcpact.1"));
    expected.sort();
    assert_eq!(names, expected);
    let page = std::fs::read_to_string(pages.join("mcpact-serve.1")).unwrap();
    assert!(page.contains("\\-\\-listen"), "{page}");
}

#[test]
fn out_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = mcpact(&["man", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("failed to write"), "{message}");
}
