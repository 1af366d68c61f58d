//! `mcpact add` and `mcpact remove`: edits of `mcpact.toml`.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

/// A project folder.
struct Project(TempDir);

impl Project {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn config(&self) -> String {
        fs::read_to_string(self.path("mcpact.toml")).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/home/ada")
            .stdin(Stdio::null())
            .current_dir(self.0.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the command, which succeeds, and returns stdout and stderr.
    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let told = seen(&output);
        assert!(output.status.success(), "{told}");
        told
    }

    /// Runs the command, which is refused as a wrong usage, and returns stderr.
    fn refused(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn seen(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

const CONFIG: &str = "# my servers\n[gateway]\nsse   = true\n\n# files\n[servers.files]  # mine\ncommand = 'files-server'\n";

/// The table that each form of a source becomes, and the config still loads.
#[test]
fn every_source_becomes_a_table() {
    for (args, table) in [
        (
            &["new", "--", "npx", "-y", "@acme/search", "--fast", "a b"][..],
            "command = \"npx\"\nargs = [\"-y\", \"@acme/search\", \"--fast\", \"a b\"]\n",
        ),
        (&["new", "--", "my-server"], "command = \"my-server\"\n"),
        (
            &["new", "https://tickets.example/mcp"],
            "url = \"https://tickets.example/mcp\"\n",
        ),
        (
            &["new", "npm:@acme/search@1.2.3"],
            "command = \"npx\"\nargs = [\"-y\", \"@acme/search@1.2.3\"]\n",
        ),
        (
            &["new", "pypi:mcp-server-time==2025.9.25"],
            "command = \"uvx\"\nargs = [\"mcp-server-time==2025.9.25\"]\n",
        ),
        (
            &[
                "new",
                "npm:search",
                "--env",
                "API_KEY",
                "--env",
                "LOG_LEVEL=debug",
                "--env",
                "TOKEN=${OTHER}",
            ],
            "command = \"npx\"\nargs = [\"-y\", \"search\"]\nenv = { API_KEY = \"${API_KEY}\", LOG_LEVEL = \"debug\", TOKEN = \"${OTHER}\" }\n",
        ),
    ] {
        let project = Project::new();
        project.write("mcpact.toml", CONFIG);
        let told = project.done(&[&["add"], args].concat());
        assert_eq!(
            project.config(),
            format!("{CONFIG}\n[servers.new]\n{table}")
        );
        assert!(told.contains("`new` added to"), "{told}");
        assert!(told.contains("mcpact approve new"), "{told}");
        let told = project.done(&["remove", "new"]);
        assert!(told.contains("`new` removed from"), "{told}");
        assert_eq!(project.config(), CONFIG);
    }
}

#[test]
fn config_is_created_if_there_is_none() {
    let project = Project::new();
    project.done(&["add", "time", "pypi:mcp-server-time"]);
    let text = project.config();
    assert!(text.starts_with("# Servers of mcpact"), "{text}");
    assert!(
        text.ends_with("\n\n[servers.time]\ncommand = \"uvx\"\nargs = [\"mcp-server-time\"]\n"),
        "{text}"
    );
    let mode = project
        .path("mcpact.toml")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(project.run(&["check"]).status.success());
}

/// The nearest config of a parent folder is edited.
#[test]
fn nearest_config_is_edited() {
    let project = Project::new();
    project.write("mcpact.toml", CONFIG);
    fs::create_dir(project.path("inner")).unwrap();
    let mut command = project.command(&["add", "new", "npm:a"]);
    assert!(
        command
            .current_dir(project.path("inner"))
            .output()
            .unwrap()
            .status
            .success()
    );
    assert!(project.config().contains("[servers.new]"));

    let other = Project::new();
    other.write(".mcp.json", "{\"mcpServers\": {}}");
    let told = other.refused(&["add", "new", "npm:a"]);
    assert!(told.contains("not a TOML file"), "{told}");
    assert!(told.contains("mcpact import"), "{told}");
}

#[test]
fn existing_server_is_replaced_only_by_force() {
    let project = Project::new();
    project.write("mcpact.toml", CONFIG);
    let told = project.refused(&["add", "files", "npm:other"]);
    assert!(told.contains("already has a server `files`"), "{told}");
    assert!(told.contains("--force"), "{told}");
    assert_eq!(project.config(), CONFIG);
    let told = project.done(&["add", "files", "npm:other", "--force"]);
    assert!(told.contains("`files` replaced in"), "{told}");
    let text = project.config();
    assert!(
        text.starts_with(
            "# my servers\n[gateway]\nsse   = true\n\n# files\n[servers.files]  # mine\n"
        ),
        "{text}"
    );
    assert!(!text.contains("files-server"), "{text}");
}

#[test]
fn unknown_server_is_not_removed() {
    let project = Project::new();
    let told = project.refused(&["remove", "files"]);
    assert!(told.contains("no config found"), "{told}");
    project.write("mcpact.toml", CONFIG);
    let told = project.refused(&["remove", "file"]);
    assert!(told.contains("did you mean `files`?"), "{told}");
    assert_eq!(project.config(), CONFIG);
}

/// A config that would not load is not written.
#[test]
fn invalid_results_are_not_written() {
    for (config, args, expected) in [
        ("[servers.a", &["add", "new", "npm:a"][..], "invalid TOML"),
        ("[servers.a]\n", &["add", "new", "npm:a"], "invalid config"),
        (
            CONFIG,
            &["add", "new", "http://"],
            "error: `url` is not a URL",
        ),
        (CONFIG, &["add", "a b", "npm:a"], "invalid name `a b`"),
        (CONFIG, &["add", "new", "npm:-y"], "invalid source"),
        (CONFIG, &["add", "new", "nowhere"], "invalid source"),
        (CONFIG, &["add", "new"], "required"),
        (
            CONFIG,
            &["add", "new", "https://ada:hunter2@tickets.example/mcp"],
            "user name or password",
        ),
        (
            CONFIG,
            &["add", "new", "https://tickets.example/mcp", "--env", "A"],
            "`--env` is for commands",
        ),
        (
            CONFIG,
            &["add", "new", "npm:a", "--env", "API_KEY=hunter2"],
            "may be a secret",
        ),
        (
            CONFIG,
            &["add", "new", "npm:a", "--env", "hunter2!"],
            "not the name of a variable",
        ),
    ] {
        let project = Project::new();
        project.write("mcpact.toml", config);
        let told = project.refused(args);
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
        assert_eq!(project.config(), config);
    }
}

/// Secrets need not be available where a config is edited.
#[test]
fn config_with_missing_variables_and_files_is_edited() {
    let config = "[gateway]\ntoken = \"${UNSET_TOKEN}\"\nallow_users = [\"root\"]\n\n[servers.a]\ncommand = \"a\"\nenv_file = \"missing.env\"\nenv = { K = \"${file:missing}\" }\n\n[servers.b]\nurl = \"${UNSET_URL}\"\n";
    let project = Project::new();
    project.write("mcpact.toml", config);
    project.done(&["add", "new", "npm:a", "--env", "UNSET_KEY"]);
    assert!(project.config().starts_with(config), "{}", project.config());
    project.done(&["remove", "new"]);
    assert_eq!(project.config(), config);
}

#[test]
fn read_only_config_stays_as_it_is() {
    let project = Project::new();
    project.write("mcpact.toml", CONFIG);
    let path = project.path("mcpact.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let output = project.run(&["add", "new", "npm:a"]);
    assert_eq!(output.status.code(), Some(1), "{}", seen(&output));
    assert!(seen(&output).contains("the file is read-only"));
    assert_eq!(project.config(), CONFIG);
}

const SERVER_JSON: &str = r#"{
  "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  "name": "io.github.acme/search",
  "packages": [{
    "registryType": "npm", "identifier": "@acme/search", "version": "1.2.3", "transport": {"type": "stdio"},
    "environmentVariables": [
      {"name": "SEARCH_API_KEY", "isRequired": true, "isSecret": true},
      {"name": "LOG_LEVEL", "default": "info"}
    ]
  }]
}"#;

#[test]
fn server_json_of_the_registry_is_added() {
    let project = Project::new();
    project.write("server.json", SERVER_JSON);
    let told = project.done(&["add", "search", "./server.json"]);
    let text = project.config();
    assert!(
        text.ends_with("[servers.search]\ncommand = \"npx\"\nargs = [\"-y\", \"@acme/search@1.2.3\"]\nenv = { SEARCH_API_KEY = \"${SEARCH_API_KEY}\" }\n"),
        "{text}"
    );
    assert!(told.contains("set `SEARCH_API_KEY`"), "{told}");
    assert!(told.contains("also reads `LOG_LEVEL`"), "{told}");
    project.write("package.json", "{\"name\": \"x\"}");
    let told = project.refused(&["add", "other", "./package.json"]);
    assert!(told.contains("no package of npm or PyPI"), "{told}");
    let told = project.refused(&["add", "other", "./missing.json"]);
    assert!(told.contains("cannot read"), "{told}");
}

/// On a terminal, the name of the variable is asked for, never its value.
#[test]
fn variables_are_asked_for_by_name() {
    let project = Project::new();
    project.write("server.json", SERVER_JSON);
    let answered = |answer: &str| {
        on_terminal(
            project.command(&["add", "search", "server.json", "--force"]),
            answer,
        )
    };
    let shown = answered("WORK_KEY\n");
    assert!(
        shown.contains("variable with the value of `SEARCH_API_KEY` [SEARCH_API_KEY]: "),
        "{shown}"
    );
    assert!(
        project
            .config()
            .contains("{ SEARCH_API_KEY = \"${WORK_KEY}\" }")
    );
    answered("\n");
    assert!(
        project
            .config()
            .contains("{ SEARCH_API_KEY = \"${SEARCH_API_KEY}\" }")
    );
    let before = project.config();
    let shown = answered("sk-hunter2\n");
    assert!(shown.contains("not the name of a variable"), "{shown}");
    assert_eq!(project.config(), before);
}

/// Runs a command on a terminal, and answers its question.
fn on_terminal(mut command: Command, answer: &str) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let user = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let stream = || Stdio::from(user.try_clone().unwrap());
    command.stdin(stream()).stdout(stream()).stderr(stream());
    let mut child = command.spawn().unwrap();
    drop((user, command));
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read) = terminal.read(&mut chunk) {
        shown.extend_from_slice(&chunk[..read]);
        if shown.ends_with(b"]: ") {
            terminal.write_all(answer.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

/// Exit code, stdout and stderr of every outcome.
#[test]
fn outcomes_are_reported() {
    let project = Project::new();
    project.write("server.json", SERVER_JSON);
    let mut all = String::new();
    for args in [
        &["remove", "time"][..],
        &["add", "time", "pypi:mcp-server-time"],
        &["add", "time", "npm:other"],
        &["add", "time", "npm:other", "--force"],
        &["add", "search", "server.json"],
        &["add", "tickets", "http://"],
        &["add", "tickets", "tickets.example/mcp"],
        &["add", "a b", "npm:a"],
        &["add", "tickets", "npm:a", "--env", "API_KEY=x"],
        &["add", "tickets"],
        &["remove", "tim"],
        &["remove", "time"],
    ] {
        let output = project.run(args);
        let code = output.status.code();
        all += &format!("$ mcpact {}\n{code:?}\n{}\n", args.join(" "), seen(&output));
    }
    let folder = project.0.path().to_str().unwrap();
    insta::assert_snapshot!(all.replace(folder, "/home/ada"));
}

#[test]
fn add_and_remove_help() {
    let project = Project::new();
    let help = project.done(&["add", "--help"]) + &project.done(&["remove", "--help"]);
    insta::assert_snapshot!(help);
}
