//! Config files on disk: variables, secrets, permissions, and started processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod anything;
mod chains;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use mcpact_config::{CatalogError, Launch, LoadedConfig, json_schema, load};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn config(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("mcpact.toml");
    fs::write(&path, text).unwrap();
    path
}

fn loaded(path: &Path) -> LoadedConfig {
    load(path).unwrap()
}

fn refused(path: &Path) -> String {
    let error = load(path).unwrap_err();
    assert!(matches!(error, CatalogError::Refused { .. }), "{error}");
    error.to_string()
}

fn program(folder: &TempDir, name: &str, script: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

/// World-writable programs and folders are rejected.
#[test]
fn world_writable_programs_are_rejected() {
    let folder = folder();
    let path = program(&folder, "server", "exit 0");
    let text = format!("[servers.a]\ncommand = {path:?}\n");
    let file = config(&folder, &text);
    loaded(&file);

    fs::set_permissions(&path, Permissions::from_mode(0o757)).unwrap();
    assert!(refused(&file).contains("is world-writable"));
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();

    fs::set_permissions(folder.path(), Permissions::from_mode(0o757)).unwrap();
    assert!(refused(&file).contains("is world-writable"));
    // The sticky bit protects entries of others.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1757)).unwrap();
    loaded(&file);
}

/// The allow-list applies to the resolved path of a program.
#[test]
fn links_do_not_bypass_the_allow_list() {
    let folder = folder();
    let allowed = folder.path().join("allowed");
    fs::create_dir(&allowed).unwrap();
    let outside = program(&folder, "outside", "exit 0");
    std::os::unix::fs::symlink(&outside, allowed.join("server")).unwrap();
    let real = fs::canonicalize(&allowed).unwrap();
    let text = format!(
        "[gateway.commands]\nallow = [\"{}/\"]\n[servers.a]\ncommand = {:?}\n",
        real.display(),
        allowed.join("server")
    );
    let file = config(&folder, &text);
    assert!(refused(&file).contains("not in the list of allowed programs"));
    fs::remove_file(allowed.join("server")).unwrap();
    fs::copy(&outside, allowed.join("server")).unwrap();
    loaded(&file);
}

/// With an allow-list, the checked program is started regardless of `PATH`.
#[test]
fn path_does_not_bypass_the_allow_list() {
    let folder = folder();
    program(&folder, "sleep", "exit 0");
    let text = format!(
        "[gateway.commands]\nallow = [\"sleep\"]\n[servers.a]\ncommand = \"sleep\"\nenv = {{ PATH = {:?} }}\n",
        folder.path()
    );
    let catalog = loaded(&config(&folder, &text)).catalog;
    let Launch::Command(command) = &catalog.servers["a"].launch else {
        panic!("no command");
    };
    assert!(
        command.program.value().ends_with("bin/sleep"),
        "{}",
        command.program.value()
    );
}

/// World-writable configs are rejected.
#[test]
fn world_writable_config_is_rejected() {
    let folder = folder();
    let file = config(&folder, "[servers.a]\nbuiltin = \"everything\"\n");
    loaded(&file);
    fs::set_permissions(&file, Permissions::from_mode(0o646)).unwrap();
    assert!(refused(&file).contains("this config is world-writable"));
}

/// A world-writable folder of a config is a warning.
#[test]
fn world_writable_folder_is_a_warning() {
    let folder = folder();
    let file = config(&folder, "[servers.a]\nbuiltin = \"everything\"\n");
    for (mode, is_told) in [(0o755, false), (0o777, true), (0o1777, false)] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let problems = loaded(&file).problems;
        let found = problems
            .iter()
            .any(|problem| problem.message.contains("can replace the config"));
        assert_eq!(found, is_told, "{mode:o}: {problems:?}");
    }
}

/// Secrets in files, relative to the config; a missing file is an error.
#[test]
fn secrets_are_read_from_files() {
    let folder = folder();
    fs::write(folder.path().join("key"), "hunter2\n").unwrap();
    fs::write(
        folder.path().join(".env"),
        "# a\nA=1\nexport B=\"2 3\"\nC='4'\n",
    )
    .unwrap();
    let text = "[servers.a]\ncommand = \"sleep\"\nenv_file = \".env\"\nenv = { K = \"${file:key}\", A = \"5\" }\ncwd = \"x\"\n";
    let file = config(&folder, text);
    let catalog = loaded(&file).catalog;
    let Launch::Command(command) = &catalog.servers["a"].launch else {
        panic!("no command");
    };
    let shown: Vec<_> = command
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.reveal()))
        .collect();
    assert_eq!(
        shown,
        [("A", "5"), ("B", "2 3"), ("C", "4"), ("K", "hunter2")]
    );
    let cwd = folder.path().join("x");
    assert_eq!(command.cwd.as_ref().unwrap().value(), cwd.to_str().unwrap());

    fs::remove_file(folder.path().join("key")).unwrap();
    let told = refused(&file);
    assert!(
        told.contains("mcpact.toml:4:14: error: cannot read `key`"),
        "{told}"
    );
}

/// The byte order mark and one line ending are removed.
#[test]
fn byte_order_mark_and_line_ending_are_removed() {
    let folder = folder();
    fs::write(folder.path().join(".env"), "\u{feff}A=1\r\nB=2\n").unwrap();
    let text =
        "[servers.a]\ncommand = \"sleep\"\nenv_file = \".env\"\nenv = { K = \"${file:key}\" }\n";
    let file = config(&folder, text);
    for (key, expected) in [
        ("hunter2", "hunter2"),
        ("hunter2\n", "hunter2"),
        ("hunter2\r\n", "hunter2"),
        ("\u{feff}hunter2\n", "hunter2"),
        ("hunter2\n\n", "hunter2\n"),
        ("hunter2\r\n\r\n", "hunter2\r\n"),
        ("hunter2\r", "hunter2\r"),
        ("\n", ""),
    ] {
        fs::write(folder.path().join("key"), key).unwrap();
        let catalog = loaded(&file).catalog;
        let Launch::Command(command) = &catalog.servers["a"].launch else {
            panic!("no command");
        };
        let shown = command.env.iter();
        let shown: Vec<_> = shown
            .map(|(name, value)| (name.as_str(), value.reveal()))
            .collect();
        assert_eq!(shown, [("A", "1"), ("B", "2"), ("K", expected)], "{key:?}");
    }
}

/// Arguments reach the program unchanged, without a shell, and only the usual variables are inherited.
#[tokio::test]
async fn shell_syntax_is_passed_as_an_argument() {
    let folder = folder();
    let server = program(
        &folder,
        "server",
        "printf '%s\\n' \"$@\" > \"$OUT\"; env | cut -d= -f1 | sort >> \"$OUT\"",
    );
    let marker = folder.path().join("marker");
    let out = folder.path().join("out");
    let text = format!(
        "[servers.a]\ncommand = {server:?}\nargs = [\"x; touch {0}\", \"$(touch {0})\", \"a && touch {0}\"]\nenv = {{ OUT = {out:?} }}\n",
        marker.display()
    );
    let loaded = loaded(&config(&folder, &text));
    let (name, config) = loaded.catalog.servers.iter().next().unwrap();
    let Launch::Command(command) = &config.launch else {
        panic!("no command");
    };
    let mut child = command.child(name).spawn().unwrap();
    // End of output means end of program.
    while child.link.source.fill().await.unwrap() {}
    let written = fs::read_to_string(&out).unwrap();
    let mut lines = written.lines();
    let args: Vec<&str> = lines.by_ref().take(3).collect();
    assert!(
        args[0].starts_with("x; touch")
            && args[1].starts_with("$(touch")
            && args[2].starts_with("a &&")
    );
    assert!(!marker.exists());
    let usual = [
        "HOME", "LANG", "OUT", "PATH", "PWD", "SHLVL", "TERM", "TZ", "_", "OLDPWD",
    ];
    for name in lines {
        assert!(usual.contains(&name), "{name} reached the child");
    }
}

/// The JSON Schema and the reader accept the same configs.
#[test]
fn schema_agrees_with_the_reader() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let manual = include_str!("../../../../docs/manual/configuration.md");
    let example = manual
        .split("```toml")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let takes = |text: &str| schema.is_valid(&toml::from_str::<serde_json::Value>(text).unwrap());
    assert!(takes(example));
    let folder = folder();
    let bodies = [
        ("command = \"sleep\"", true),
        (
            "url = \"https://a.example/\"\nheaders = { A = \"b\" }",
            true,
        ),
        ("builtin = \"everything\"\nera = \"2025-06-18\"", true),
        ("command = \"sleep\"\nidle_seconds = 0.5", true),
        ("command = \"sleep\"\nera = \"${MCPACT_NOPE:-auto}\"", true),
        ("command = \"sleep\"\nmax_instances = \"${N:-2}\"", false),
        ("command = \"sleep\"\nenabled = \"${N:-true}\"", false),
        ("command = \"sleep\"\nidle_seconds = \"${N:-2}\"", false),
        (
            "command = \"sleep\"\nsandbox = \"strict\"\nallow_ports = [443]",
            true,
        ),
        (
            "command = \"sleep\"\nsandbox = \"strict\"\nallow_ports = [0]",
            false,
        ),
        ("comand = \"sleep\"", false),
        ("command = \"sleep\"\nurl = \"https://a.example/\"", false),
        ("command = \"sleep\"\nmax_instances = 0", false),
        ("command = \"sleep\"\nera = \"new\"", false),
        ("command = \"sleep\"\nargs = [1]", false),
        ("command = \"sleep\"\nidle_seconds = 0", true),
        ("command = \"sleep\"\nidle_seconds = -1", false),
        ("command = \"\"", false),
        ("enabled = true", false),
    ];
    for (body, expected) in bodies {
        let text = format!("[servers.a]\n{body}\n");
        assert_eq!(takes(&text), expected, "{body}");
        assert_eq!(load(&config(&folder, &text)).is_ok(), expected, "{body}");
    }
}

/// The JSON Schema and the reader agree on null and on `5.0`.
#[test]
fn schema_agrees_with_the_reader_on_json() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let folder = folder();
    let path = folder.path().join("mcpact.json");
    for (body, expected) in [
        (r#"{"gateway": {"commands": {"allow": []}}}"#, true),
        (r#"{"gateway": {"commands": {"allow": null}}}"#, false),
        (r#"{"gateway": {"commands": null}}"#, false),
        (r#"{"gateway": {"listen": null}}"#, false),
        (r#"{"gateway": null}"#, false),
        (r#"{"servers": null}"#, false),
        (r#"{"servers": {"a": null}}"#, false),
        (
            r#"{"servers": {"a": {"command": "sleep", "args": null}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "args": [null]}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "env": {"A": null}}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "enabled": null}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "max_instances": 5.0}}}"#,
            true,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "max_instances": 5e0}}}"#,
            true,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "max_instances": 5.5}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "max_instances": -5.0}}}"#,
            false,
        ),
        (
            r#"{"servers": {"a": {"command": "sleep", "max_instances": 1e99}}}"#,
            false,
        ),
        (r#"{"filters": {"a": null}}"#, false),
        (
            r#"{"filters": {"a": {"command": "sleep", "order": null}}}"#,
            false,
        ),
    ] {
        let told: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(schema.is_valid(&told), expected, "{body}");
        fs::write(&path, body).unwrap();
        let read = load(&path).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(read.is_ok(), expected, "{body}: {read:?}");
    }
}
