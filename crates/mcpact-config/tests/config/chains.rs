//! Command policy for launchers that start other programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use mcpact_config::load;
use tempfile::TempDir;

use crate::{config, folder, program};

/// Errors about a command.
fn told(folder: &TempDir, rules: &str, words: &[&str]) -> String {
    let (command, args) = words.split_first().unwrap();
    let text = format!("{rules}[servers.a]\ncommand = {command:?}\nargs = {args:?}\n");
    match load(&config(folder, &text)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

fn link(folder: &TempDir, name: &str, to: impl AsRef<Path>) -> String {
    let path = folder.path().join(name);
    symlink(to, &path).unwrap();
    path.to_str().unwrap().to_owned()
}

const WRAPPERS: &[&[&str]] = &[
    &[],
    &["env"],
    &["env", "-u", "X", "A=1"],
    &["nice", "-n", "5"],
    &["timeout", "-s", "KILL", "5"],
    &["xargs", "-n", "1"],
    &["stdbuf", "-oL"],
    &["setsid"],
    &["flock", "F"],
    &["uv", "run"],
    &["npx", "-p", "x@1.0.0"],
    &["uvx", "--from", "x==1"],
    &["mcpact", "bridge", "--"],
];

/// Links and world-writable programs are checked behind a launcher as well, and so are programs started by a link to a
/// launcher.
#[test]
fn every_program_of_a_chain_is_checked() {
    let folder = folder();
    let open = program(&folder, "open", "exit 0");
    fs::set_permissions(&open, Permissions::from_mode(0o757)).unwrap();
    let open = open.to_str().unwrap();
    let fine = program(&folder, "fine", "exit 0");
    let fine = fine.to_str().unwrap();
    let runner = program(&folder, "npx-cli.js", "exit 0");
    let (remove, shell) = (
        link(&folder, "tidy", "/bin/rm"),
        link(&folder, "calm", "/bin/sh"),
    );
    let (env, timeout) = (
        link(&folder, "plain", "/usr/bin/env"),
        link(&folder, "soon", "/usr/bin/timeout"),
    );
    // The name of a link does not matter.
    let wrapper_by_name = link(&folder, "nohup", "/bin/rm");
    let npx = link(&folder, "packages", runner);
    let cells: &[(&[&str], &str)] = &[
        (&[&remove, "-f", "x"], "destroys data"),
        (&[&wrapper_by_name, "-f", "x"], "destroys data"),
        (&[&shell, "-c", "id"], "runs a shell script"),
        (&[&env, "rm", "x"], "destroys data"),
        (&[&env, "sh", "-c", "id"], "runs a shell script"),
        (&[&env, &remove, "x"], "destroys data"),
        (&[&timeout, "9", "sudo", "x"], "as another user"),
        (&[&npx, "-c", "id"], "runs a shell script"),
        (&[open], "is world-writable"),
        (&[&env, open], "is world-writable"),
    ];
    for lead in WRAPPERS {
        for (words, why) in cells {
            let words = [*lead, words].concat();
            let told = told(&folder, "", &words);
            assert!(told.contains(why), "{words:?}: {told}");
        }
        let told = told(&folder, "", &[*lead, &[fine, "-f", "x"]].concat());
        assert_eq!(told, "", "{lead:?}");
    }
}

/// `env PATH=… program` is looked up in that `PATH`.
#[test]
fn path_set_by_a_launcher_is_used() {
    let folder = folder();
    link(&folder, "tidy", "/bin/rm");
    let path = format!("PATH={}", folder.path().display());
    for lead in [
        &["env", &path][..],
        &["env", "-", &path],
        &["timeout", "5", "env", &path],
    ] {
        let told = told(&folder, "", &[lead, &["tidy", "-f", "x"]].concat());
        assert!(told.contains("destroys data"), "{lead:?}: {told}");
    }
    // Not the program that the list means.
    program(&folder, "sleep", "exit 0");
    let rules = "[gateway.commands]\nallow = [\"env\", \"sleep\"]\n";
    assert_eq!(told(&folder, rules, &["env", "sleep", "5"]), "");
    let told = told(&folder, rules, &["env", &path, "sleep", "5"]);
    assert!(
        told.contains("`sleep` is not in the list of allowed programs"),
        "{told}"
    );
}

/// An allowed launcher may start only allowed programs.
#[test]
fn allowed_launcher_starts_only_allowed_programs() {
    let folder = folder();
    let server = program(&folder, "server", "exit 0");
    let server = server.to_str().unwrap();
    let lists =
        |more: &str| format!("[gateway.commands]\nallow = [\"env\", \"timeout\", \"npx\"{more}]\n");
    let (short, long) = (lists(""), lists(&format!(", {server:?}")));
    let leads: &[&[&str]] = &[
        &["env", "A=1"],
        &["timeout", "5"],
        &["env", "timeout", "5"],
        &["npx", "-p", "x@1.0.0"],
    ];
    for lead in leads {
        let words = [*lead, &[server, "time"]].concat();
        let refused = told(&folder, &short, &words);
        assert!(
            refused.contains("not in the list of allowed programs"),
            "{words:?}"
        );
        let words = &words[..words.len() - 1];
        assert_eq!(told(&folder, &long, words), "", "{words:?}");
    }
    // A subcommand of a launcher is not a program, even if a program has that name.
    let rules = format!("[gateway.commands]\nallow = [\"mcpact\", \"mise\", {server:?}]\n");
    for lead in [["mcpact", "bridge", "--"], ["mise", "exec", "--"]] {
        let words = [&lead[..], &[server]].concat();
        assert_eq!(told(&folder, &rules, &words), "");
    }
    // A package is not a local program.
    assert_eq!(told(&folder, &short, &["npx", "-y", "@a/server@1.0.0"]), "");
}

/// Multi-call programs act as the applet that the link is named after.
#[test]
fn multi_call_programs_are_named_by_their_link() {
    let folder = folder();
    for many in ["busybox", "mise"] {
        let program = program(&folder, many, "exit 0");
        let shim = link(&folder, &format!("{many}-server"), program);
        let told = told(&folder, "", &[&shim, "-c", "sh"]);
        assert_eq!(told, "", "{many}");
    }
}

/// `env -C DIR ./program` is looked up in that folder.
#[test]
fn folder_set_by_a_launcher_is_used() {
    let folder = folder();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    symlink("/bin/rm", inner.join("tidy")).unwrap();
    program(&folder, "tidy", "exit 0");
    let inner = inner.to_str().unwrap();
    let (joined, long) = (format!("-iC{inner}"), format!("--chdir={inner}"));
    let leads: &[&[&str]] = &[
        &["env", "-C", inner],
        &["env", &joined],
        &["env", &long],
        &["env", "--chd", inner],
        &["timeout", "5", "env", "-u", "X", "-C", inner],
        &[
            "env",
            "-C",
            folder.path().to_str().unwrap(),
            "env",
            "-C",
            "inner",
        ],
    ];
    for lead in leads {
        let told = told(&folder, "", &[*lead, &["./tidy", "x"]].concat());
        assert!(told.contains("destroys data"), "{lead:?}: {told}");
    }
    let outer = folder.path().to_str().unwrap();
    assert_eq!(told(&folder, "", &["env", "-C", outer, "./tidy", "x"]), "");
}
