//! `mcpact check`, `mcpact import` and `mcpact schema`: output, exit code and files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary in the directory of the test configs, with a minimal environment.
fn mcpact(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/home/ada")
        .stdin(Stdio::null())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/configs"));
    command
}

fn run(args: &[&str]) -> Output {
    mcpact(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Exit code, stdout and stderr as one text.
fn seen(output: &Output) -> String {
    format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

macro_rules! snapshots {
    ($($(#[$doc:meta])* $name:ident: $($arg:literal)*;)+) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                let seen = seen(&run(&[$($arg),*]));
                // Secrets of the configs are never shown.
                assert!(!seen.contains("hunter2"), "{seen}");
                insta::assert_snapshot!(seen);
            }
        )+
    };
}

snapshots! {
    help_check: "check" "--help";
    help_import: "import" "--help";
    help_approve: "approve" "--help";
    help_schema: "schema" "--help";
    /// A valid config lists its servers.
    check_valid_config: "check" "good.toml";
    /// All problems, each with position, cause and hint.
    check_invalid_config: "check" "wrong.toml";
    check_as_json: "check" "--json" "wrong.toml";
    /// A config of another client.
    check_foreign_config: "check" "cursor.json";
    check_broken_json: "check" "broken.json";
    /// Rejected commands.
    check_dangerous_commands: "check" "dangerous.yaml";
    check_missing_file: "check" "nope.toml";
    check_without_a_config: "check";
    import_to_stdout: "import" "cursor.json" "--output" "-";
    import_unknown_client: "import" "cursr";
    import_without_clients: "import";
}

#[test]
fn import_without_a_config_lists_searched_paths() {
    let output = run(&["import", "cursor"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("no config found for client `cursor`"),
        "{stderr}"
    );
    assert!(
        stderr.contains("searched `/home/ada/.cursor/mcp.json`"),
        "{stderr}"
    );
}

#[test]
fn strict_check_fails_on_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcpact.toml");
    std::fs::write(&file, "[servers.a]\ncommand = \"no-such-program\"\n").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(run(&["check", file]).status.code(), Some(0));
    let strict = run(&["check", "--strict", file]);
    assert_eq!(strict.status.code(), Some(7));
    assert!(text(&strict.stdout).contains("program `no-such-program` not found"));
}

/// Each warning has its cause, including a missing working directory.
#[cfg(unix)]
#[test]
fn check_warns_about_commands_that_cannot_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().canonicalize().unwrap();
    for (name, text, mode) in [
        ("plain", "#!/bin/sh\n", 0o600),
        ("lost", "#!/no/such/sh\n", 0o700),
    ] {
        let path = inside.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let at = |name: &str| inside.join(name).to_str().unwrap().to_owned();
    let config = format!(
        "[servers.a]\ncommand = {:?}\n[servers.b]\ncommand = {:?}\n[servers.c]\ncommand = {inside:?}\n\
         [servers.d]\ncommand = \"sleep\"\ncwd = \"no/such\"\n[servers.e]\ncommand = \"sleep\"\ncwd = \".\"\n",
        at("plain"),
        at("lost"),
    );
    std::fs::write(inside.join("mcpact.toml"), config).unwrap();
    let output = run(&["check", &at("mcpact.toml")]);
    let message = text(&output.stdout);
    for words in [
        &*format!("cannot start `{0}`: `{0}` is not executable", at("plain")),
        "with `chmod +x`",
        &*format!(
            "the interpreter `/no/such/sh` of `{}` does not exist",
            at("lost")
        ),
        &*format!("`{}` is a folder", inside.display()),
        "folder `no/such` not found",
        "correct `cwd`",
        "5 servers, 4 warnings",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn check_uses_the_nearest_config() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(
        folder.path().join("mcpact.toml"),
        "[servers.a]\nbuiltin = \"everything\"\n",
    )
    .unwrap();
    let output = mcpact(&["check"]).current_dir(&inner).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    assert!(text(&output.stdout).contains("1 server, no problems"));
}

#[test]
fn published_schema_is_current() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcpact.schema.json");
    let published = std::fs::read_to_string(published).unwrap();
    let output = run(&["schema"]);
    assert_eq!(
        text(&output.stdout),
        published,
        "run `cargo run -- schema > docs/mcpact.schema.json`"
    );
    let schema: Value = serde_json::from_str(&published).unwrap();
    assert_eq!(
        schema["properties"]["servers"]["additionalProperties"]["additionalProperties"],
        false
    );
}

/// Each key has its default and every allowed value, and the manual has no other keys.
#[test]
fn manual_documents_every_key() {
    let manual = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/manual/configuration.md"
    );
    let manual = std::fs::read_to_string(manual).unwrap();
    let schema: Value = serde_json::from_slice(&run(&["schema"]).stdout).unwrap();
    let tables = [
        "/properties/gateway",
        "/properties/gateway/properties/answers",
        "/properties/gateway/properties/commands",
        "/properties/gateway/properties/limits",
        "/properties/gateway/properties/tools",
        "/properties/servers/additionalProperties",
        "/properties/filters/additionalProperties",
    ];
    let mut rows = Vec::new();
    for table in tables {
        let keys = schema.pointer(table).unwrap()["properties"]
            .as_object()
            .unwrap();
        for (key, about) in keys.iter().filter(|(key, _)| *key != "commands") {
            let default = match &about["default"] {
                Value::Null => String::from("–"),
                Value::Number(number) => number.as_f64().unwrap().to_string(),
                Value::Array(_) | Value::Object(_) => String::from("none"),
                other => other.to_string().trim_matches('"').to_owned(),
            };
            let default = if about["default"].is_string() {
                format!("`{default}`")
            } else {
                default
            };
            let message = about["description"].as_str().unwrap().replace('|', "\\|");
            let row = format!("| `{key}` | {default} | {message} |");
            assert!(
                manual.contains(&row),
                "docs/manual/configuration.md has no row\n{row}"
            );
            let words = about["enum"].as_array();
            let words = words.or_else(|| about["items"]["enum"].as_array());
            for word in words.into_iter().flatten() {
                let word = format!("`{}`", word.as_str().unwrap());
                assert!(
                    message.contains(&word),
                    "{word} is missing in the row\n{row}"
                );
            }
            rows.push(row);
        }
    }
    let sections = manual.split("\n## `[").skip(1);
    let lines = sections.flat_map(|section| section.split("\n## ").next().unwrap().lines());
    for line in lines.filter(|line| line.starts_with("| `") && line.matches(" | ").count() == 2) {
        assert!(
            rows.iter().any(|row| row == line),
            "there is no key\n{line}"
        );
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// `mcp.json` takes precedence, and settings without servers are ignored.
#[test]
fn import_reads_vs_code_settings() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    let import = || {
        let mut command = mcpact(&["import", "vscode", "-o", "-"]);
        let command = command.env("HOME", home.path());
        command.current_dir(at("project")).output().unwrap()
    };
    write(
        &at(".config/Code/User/settings.json"),
        r#"{"mcp": {"servers": {"a": {"command": "user"}, "c": {"command": "user"}}}}"#,
    );
    write(
        &at("project/.vscode/settings.json"),
        r#"{"mcp": {"servers": {"a": {"command": "older"}, "b": {"command": "b"}}}}"#,
    );
    write(
        &at("project/.vscode/mcp.json"),
        r#"{"servers": {"a": {"command": "newer"}}}"#,
    );
    let output = import();
    let message = text(&output.stdout);
    let programs = message.lines().filter(|line| line.starts_with("command"));
    assert_eq!(
        programs.collect::<Vec<_>>(),
        [
            "command = \"newer\"",
            "command = \"b\"",
            "command = \"user\""
        ],
        "{message}"
    );
    for path in [
        ".config/Code/User/settings.json",
        "project/.vscode/settings.json",
    ] {
        write(&at(path), r#"{"editor.tabSize": 4}"#);
    }
    let output = import();
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    assert_eq!(text(&output.stderr), "");
}

/// The sources are checked before the output.
#[test]
fn import_writes_only_toml_files() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("a.json"),
        r#"{"mcpServers": {"a": {"command": "sleep"}}}"#,
    );
    let import = |args: &[&str]| {
        let args = [&["import"], args].concat();
        mcpact(&args).current_dir(folder.path()).output().unwrap()
    };
    for name in ["mcpact.json", "mcpact.yaml", "mcpact"] {
        let output = import(&["a.json", "-o", name]);
        assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("must end in `.toml`"), "{stderr}");
        assert!(stderr.contains("hint: write to `mcpact.toml`"), "{stderr}");
        assert!(!folder.path().join(name).exists());
    }
    let output = import(&["a.json"]);
    assert_eq!(text(&output.stdout), "mcpact.toml: 1 server: a\n");
    for (given, expected) in [
        ("cursr", "unknown client or file `cursr`"),
        ("nope.json", "nope.json"),
        ("a.json", "already exists"),
    ] {
        let output = import(&[given]);
        assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
        let first = text(&output.stderr).lines().next().unwrap();
        assert!(first.contains(expected), "{given}: {first}");
    }
}

/// The result is private and passes the check.
#[test]
fn import_merges_the_configs_of_all_clients() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    let at = |path: &str| home.path().join(path);
    write(
        &at(".cursor/mcp.json"),
        r#"{"mcpServers": {"a": {"command": "sleep"}, "b": {"command": "user"}}}"#,
    );
    write(
        &at("project/.cursor/mcp.json"),
        r#"{"mcpServers": {"b": {"command": "sleep", "args": ["2"]}}}"#,
    );
    write(
        &at(".codex/config.toml"),
        "[mcp_servers.c]\nurl = \"https://c.example/\"\nbearer_token_env_var = \"C_TOKEN\"\n",
    );
    write(
        &at(".config/zed/settings.json"),
        r#"{"context_servers": {"d": {"command": "sleep"}}}"#,
    );
    write(
        &at(".config/opencode/opencode.json"),
        r#"{"mcp": {"e": {"type": "local", "command": ["sleep", "1"], "environment": {"K": "{env:E_KEY}"}}}}"#,
    );
    write(
        &at(".gemini/settings.json"),
        r#"{"mcpServers": {"f": {"command": "sleep", "env": {"K": "$F_KEY"}}}}"#,
    );
    write(
        &at(".codeium/windsurf/mcp_config.json"),
        r#"{"mcpServers": {"g": {"serverUrl": "https://g.example/"}}}"#,
    );
    write(
        &at(".config/Code/User/mcp.json"),
        r#"{"servers": {"h": {"type": "stdio", "command": "sleep"}}}"#,
    );
    write(
        &at(".config/Claude/claude_desktop_config.json"),
        r#"{"mcpServers": {"i": {"command": "sleep"}}}"#,
    );
    write(
        &at(".continue/config.yaml"),
        "mcpServers:\n  - name: l\n    url: https://l.example/\n    apiKey: ${{ secrets.L_KEY }}\n    \
         requestOptions:\n      headers:\n        X-Team: ${{ secrets.L_TEAM }}\n",
    );
    let claude_code = format!(
        r#"{{"mcpServers": {{"j": {{"command": "sleep"}}}}, "projects": {{"{}": {{"mcpServers": {{"k": {{"command": "sleep"}}}}}}}}}}"#,
        project.display()
    );
    write(&at(".claude.json"), &claude_code);

    let in_project = |args: &[&str]| {
        mcpact(args)
            .env("HOME", home.path())
            .current_dir(&project)
            .output()
            .unwrap()
    };
    let output = in_project(&["import"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    let written = std::fs::read_to_string(project.join("mcpact.toml")).unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        assert!(
            written.contains(&format!("[servers.{name}]\n")),
            "{name}: {written}"
        );
    }
    for part in [
        "args = [\"2\"]",
        "Bearer ${C_TOKEN}",
        "K = \"${env:E_KEY}\"",
        "K = \"${F_KEY}\"",
        "Authorization = \"Bearer ${L_KEY}\"",
        "X-Team = \"${L_TEAM}\"",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    assert!(!written.contains("\"user\""), "{written}");

    let again = in_project(&["import", "cursor"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("already exists"),
        "{}",
        seen(&again)
    );
    let forced = in_project(&["import", "cursor", "--force"]);
    assert_eq!(forced.status.code(), Some(0), "{}", seen(&forced));
    let checked = in_project(&["check", "--json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked["servers"], serde_json::json!(["a", "b"]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(project.join("mcpact.toml"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// Skipped servers are reported. A broken file is an error only if it was given explicitly.
#[test]
fn import_prefers_project_configs_and_rejects_broken_files() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    write(
        &at(".config/Claude/claude_desktop_config.json"),
        r#"{"mcpServers": {"a": {"command": "user"}, "b": {"command": "user"}}}"#,
    );
    write(
        &at("project/.cursor/mcp.json"),
        r#"{"mcpServers": {"a": {"command": "project"}}}"#,
    );
    write(
        &at("project/.continue/mcpServers/one.yaml"),
        "mcpServers:\n  - name: b\n    command: project\n    args: [./c.js]\n",
    );
    write(&at("project/.continue/mcpServers/notes.txt"), "{");
    write(&at("project/broken.json"), r#"{"mcpServers": {"#);
    let in_project = |args: &[&str]| {
        mcpact(args)
            .env("HOME", home.path())
            .current_dir(at("project"))
            .output()
            .unwrap()
    };
    let output = in_project(&["import", "-o", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    let written = text(&output.stdout);
    assert!(
        written.contains("[servers.a]\ncommand = \"project\""),
        "{written}"
    );
    assert!(
        written.contains("[servers.b]\ncommand = \"project\""),
        "{written}"
    );
    assert!(!written.contains("\"user\""), "{written}");
    let cwd = format!("cwd = {:?}", at("project").canonicalize().unwrap());
    assert!(written.contains(&cwd), "{written}");
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("server `a` was already imported from another file: `"),
        "{stderr}"
    );
    assert!(stderr.contains(".cursor/mcp.json`"), "{stderr}");

    let output = in_project(&["import", "cursor", "broken.json", "-o", "-"]);
    assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
    assert_eq!(text(&output.stdout), "");
    assert!(
        text(&output.stderr).contains("invalid config `broken.json`"),
        "{}",
        seen(&output)
    );
}

/// H3: the hints for a non-loopback address name config keys, not flags of other commands.
#[test]
fn serve_hints_name_config_keys() {
    let home = tempfile::tempdir().unwrap();
    write(
        &home.path().join("mcpact.toml"),
        "[servers.a]\nbuiltin = \"everything\"\n",
    );
    let output = mcpact(&["serve", "--listen", "0.0.0.0:0", "--no-cache"])
        .env("HOME", home.path())
        .env("XDG_RUNTIME_DIR", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("`allow_remote = true` in `[gateway]`"),
        "{stderr}"
    );
    assert!(!stderr.contains("--allow-remote"), "{stderr}");
    assert!(!stderr.contains("MCPACT_TOKEN"), "{stderr}");
}

#[test]
fn notes_do_not_show_secrets_in_urls() {
    let home = tempfile::tempdir().unwrap();
    write(
        &home.path().join("mcpact.toml"),
        "[servers.a]\nurl = \"https://a.example/mcp?key=canary&x=${HOME}\"\n",
    );
    let output = mcpact(&["check"])
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    let message = seen(&output);
    assert!(
        message.contains("values of this host are sent to this URL"),
        "{message}"
    );
    assert!(!message.contains("canary"), "{message}");
}

/// Relative paths still start at the project, wherever the output is written, and even if nothing
/// is there. `XDG_CONFIG_HOME` is honoured.
#[cfg(unix)]
#[test]
fn import_keeps_relative_paths_valid() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let project = home.join("project");
    write(
        &project.join(".vscode/mcp.json"),
        r#"{"servers": {"a": {"command": "./run", "envFile": "${workspaceFolder}/.env"},
            "c": {"command": "sleep", "args": ["dist/none.js"]}}}"#,
    );
    write(
        &home.join("configs/zed/settings.json"),
        r#"{"context_servers": {"b": {"command": "sleep", "args": ["1"]}}}"#,
    );
    write(&project.join("run"), "#!/bin/sh\n");
    write(&project.join(".env"), "K=1\n");
    std::fs::set_permissions(project.join("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir(home.join("other")).unwrap();
    let run_in = |folder: &str, args: &[&str]| {
        let mut command = mcpact(args);
        command
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("configs"));
        command.current_dir(home.join(folder)).output().unwrap()
    };
    for (folder, args) in [
        ("project", &["import", "-o", "../other/one.toml"][..]),
        (
            "other",
            &[
                "import",
                "../project/.vscode/mcp.json",
                "zed",
                "-o",
                "two.toml",
            ],
        ),
    ] {
        let output = run_in(folder, args);
        assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("`cwd` is set to"), "{stderr}");
    }
    for name in ["one.toml", "two.toml"] {
        let written = std::fs::read_to_string(home.join("other").join(name)).unwrap();
        let project = project.display();
        let settled = format!("cwd = \"{project}\"");
        assert_eq!(written.matches(&settled).count(), 2, "{written}");
        assert!(written.contains("[servers.b]"), "{written}");
        let checked = run_in("other", &["check", "--strict", name]);
        assert_eq!(checked.status.code(), Some(0), "{}", seen(&checked));
    }
    let output = run_in("project", &["import"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    let written = std::fs::read_to_string(project.join("mcpact.toml")).unwrap();
    assert!(written.contains("${workspaceFolder}/.env"), "{written}");
    assert!(!written.contains("cwd"), "{written}");
}

/// K3: an import has an error wherever `check` has one, and writes nothing; what it writes passes `check`.
#[cfg(unix)]
#[test]
fn import_never_writes_what_check_refuses() {
    let good = "cmd: [sleep, '1']\n  idleSeconds: 0\n  sessionTTLSeconds: ${TTL}\n  maxConcurrent: \"$LIMIT\"\n";
    let catalog = |root: &str, server: &str| format!("{root}\nservers:\n- name: a\n  {server}");
    let configs = [
        (
            "good.yaml",
            catalog("toolNamespaceStrategy: flat", good),
            true,
        ),
        (
            "remote.yaml",
            catalog(
                "proxy: {mode: custom, url: 'http://ann:${TTL}@proxy.example:3128', noProxy: 10.0.0.0/8}",
                "http: {endpoint: 'https://a.example/mcp', maxRetries: 3}\n",
            ),
            true,
        ),
        ("hidden.yaml", catalog("exposeTools: false", good), true),
        (
            "off.yaml",
            catalog(
                "",
                &format!("disabled: true\n  {}", good.replace("${TTL}", "${NOPE}")),
            ),
            true,
        ),
        (
            "shell.yaml",
            catalog("", "cmd: [/bin/sh, -c, sleep 1]\n"),
            false,
        ),
        (
            "plugins.yaml",
            catalog("plugins: [{name: p, required: true, cmd: [p]}]", good),
            false,
        ),
        (
            "rpc.yaml",
            catalog("rpc: {listenAddress: 'unix:///tmp/mcpv.sock'}", good),
            false,
        ),
        ("missing.yaml", catalog("", "transport: stdio\n"), false),
        (
            "negative.yaml",
            catalog("", "cmd: [sleep]\n  minReady: -2\n"),
            false,
        ),
        (
            "unset.yaml",
            catalog("", "cmd: [sleep]\n  idleSeconds: ${NOPE}\n"),
            false,
        ),
        (
            "client.json",
            String::from(r#"{"mcpServers": {"a": {"command": "sh", "args": ["-c", "sleep 1"]}}}"#),
            false,
        ),
        (
            "client2.json",
            String::from(r#"{"mcpServers": {"a": {"url": "a.example"}}}"#),
            false,
        ),
        (
            "native.yaml",
            String::from("gateway:\n  listen: 127.0.0.1:0\nservers:\n  a:\n    command: sleep\n"),
            true,
        ),
    ];
    for (name, config, is_accepted) in configs {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(name), &config);
        let in_folder = |args: &[&str]| {
            let mut command = mcpact(args);
            command.env("TTL", "0").env("LIMIT", "2");
            command.current_dir(folder.path()).output().unwrap()
        };
        let expected = if is_accepted { [0, 0, 0] } else { [7, 2, 2] };
        let steps = [
            &["check", name][..],
            &["import", name],
            &["check", "mcpact.toml"],
        ];
        for (args, code) in steps.into_iter().zip(expected) {
            let output = in_folder(args);
            assert_eq!(
                output.status.code(),
                Some(code),
                "{name} {args:?}: {}",
                seen(&output)
            );
            if name == "unset.yaml" && args[1] == name {
                let seen = seen(&output);
                assert!(seen.contains("variable `NOPE` is not set"), "{seen}");
                assert!(!seen.contains("must be a number"), "{seen}");
            }
        }
        let written = std::fs::read_to_string(folder.path().join("mcpact.toml"));
        let written = written.unwrap_or_default();
        match name {
            "good.yaml" => {
                assert!(written.starts_with("# from good.yaml\n[gateway]\nnames = \"flat\"\n"));
                for line in [
                    "idle_seconds = 0",
                    "session_seconds = 0",
                    "max_concurrent = 2",
                ] {
                    assert!(written.contains(line), "{written}");
                }
            }
            "remote.yaml" => assert!(
                written.contains(
                    "proxy = \"http://ann:${TTL}@proxy.example:3128\"\nno_proxy = [\"10.0.0.0/8\"]"
                ),
                "{written}"
            ),
            "hidden.yaml" => assert!(written.contains("hidden_tools = [\"*\"]"), "{written}"),
            _ => {}
        }
    }
}

/// Variables may be set after an import, which names those that are not.
#[test]
fn import_names_unset_variables() {
    let folder = tempfile::tempdir().unwrap();
    write(
        &folder.path().join("a.json"),
        r#"{"servers": {"a": {"command": "sleep", "env": {"K": "${NOPE}", "L": "${input:key}"}}}}"#,
    );
    let in_folder = |args: &[&str], set: &[(&str, &str)]| {
        let mut command = mcpact(args);
        command.envs(set.iter().copied());
        command.current_dir(folder.path()).output().unwrap()
    };
    let output = in_folder(&["import", "a.json"], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    for name in ["NOPE", "KEY"] {
        let expected =
            format!("warning: variable `{name}` is not set: the config is invalid until it is");
        assert!(
            text(&output.stderr).contains(&expected),
            "{}",
            seen(&output)
        );
    }
    let check = ["check", "mcpact.toml"];
    assert_eq!(in_folder(&check, &[]).status.code(), Some(7));
    let output = in_folder(&check, &[("NOPE", "1"), ("KEY", "2")]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
}

/// A server that `check` refuses is left out when all clients are imported.
#[cfg(unix)]
#[test]
fn import_of_all_clients_leaves_out_refused_servers() {
    let home = tempfile::tempdir().unwrap();
    write(
        &home.path().join(".cursor/mcp.json"),
        r#"{"mcpServers": {"a": {"command": "sleep", "args": ["1"]}, "b": {"command": "sh", "args": ["-c", "sleep 1"]}}}"#,
    );
    let in_home = |args: &[&str]| {
        let mut command = mcpact(args);
        command.env("HOME", home.path()).current_dir(home.path());
        command.output().unwrap()
    };
    let output = in_home(&["import"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
    assert_eq!(text(&output.stdout), "mcpact.toml: 1 server: a\n");
    assert!(
        text(&output.stderr).contains("`sh -c` runs a shell script"),
        "{}",
        seen(&output)
    );
    let output = in_home(&["check", "mcpact.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", seen(&output));
}
