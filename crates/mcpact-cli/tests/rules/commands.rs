//! Rejection of dangerous commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, combined_output};

/// Rejected commands, with a word of the reason.
const REFUSED: [(&str, &[&str], &str); 15] = [
    ("sh", &["-c", "touch MARKER"], "runs a shell script"),
    (
        "/bin/bash",
        &["-lc", "touch MARKER; exec SERVER"],
        "runs a shell script",
    ),
    (
        "bash",
        &["-c", "curl -s http://127.0.0.1:1/x | sh; touch MARKER"],
        "runs a shell script",
    ),
    ("sudo", &["SERVER"], "as another user"),
    (
        "/usr/bin/sudo",
        &["-n", "touch", "MARKER"],
        "as another user",
    ),
    (
        "env",
        &["A=1", "sh", "-c", "touch MARKER"],
        "runs a shell script",
    ),
    ("timeout", &["5", "sudo", "SERVER"], "as another user"),
    (
        "npx",
        &["-y", "-p", "a@1.0.0", "sh", "-c", "touch MARKER"],
        "runs a shell script",
    ),
    ("rm", &["-rf", "MARKER"], "destroys data"),
    ("nice", &["rm", "-rf", "/nowhere"], "destroys data"),
    (
        "curl",
        &["-o", "MARKER", "file:///etc/hostname"],
        "over the network",
    ),
    (
        "wget",
        &["-O", "MARKER", "http://127.0.0.1:1/"],
        "over the network",
    ),
    (
        "SERVER && touch MARKER",
        &[],
        "commands do not run in a shell",
    ),
    (
        "SERVER",
        &["x", "&&", "touch", "MARKER"],
        "is a shell operator",
    ),
    ("SERVER", &["x", "|", "sh"], "is a shell operator"),
];

fn json_config(command: &str, args: &[&str]) -> String {
    json!({"mcpServers": {"bad": {"command": command, "args": args}}}).to_string()
}

/// In a config of mcpact or of another client, by `serve` and `check`, before anything starts.
#[test]
fn dangerous_commands_are_rejected() {
    for (command, args, why) in REFUSED {
        let harness = Harness::new();
        let quoted: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
        let toml = format!(
            "[servers.bad]\ncommand = {command:?}\nargs = [{}]\n",
            quoted.join(", ")
        );
        harness.configure("own.toml", &toml);
        harness.configure("client.json", &json_config(command, args));
        for config in ["own.toml", "client.json"] {
            let what = format!("{config}: {command} {args:?}");
            // Otherwise the server of another client's config is skipped, and the gateway runs without it.
            let args = [
                "serve",
                "--strict",
                "--listen",
                "127.0.0.1:0",
                "--config",
                config,
            ];
            let served = harness.run(&args);
            assert_eq!(
                served.status.code(),
                Some(2),
                "{what}: {}",
                combined_output(&served)
            );
            let checked = harness.run(&["check", config]);
            assert_eq!(checked.status.code(), Some(7), "{what}");
            assert!(
                combined_output(&checked).contains(why),
                "{what}: {}",
                combined_output(&checked)
            );
            assert!(!harness.was_started(), "{what}");
        }
    }
}

#[test]
fn import_refuses_dangerous_commands() {
    let harness = Harness::new();
    harness.configure("client.json", &json_config("sh", &["-c", "touch MARKER"]));
    let imported = harness.run(&["import", "./client.json"]);
    let output = combined_output(&imported);
    assert_eq!(imported.status.code(), Some(2), "{output}");
    assert!(output.contains("`sh -c` runs a shell script"), "{output}");
    assert!(!harness.path().join("mcpact.toml").exists(), "{output}");
    assert!(!harness.was_started());
}

#[test]
fn world_writable_linked_and_unlisted_programs_are_rejected() {
    let harness = Harness::new();
    let open = harness.path().join("open");
    fs::copy(harness.server(), &open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let link = harness.path().join("harmless");
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    let cells = [
        (
            open.to_string_lossy().into_owned(),
            "",
            "[]",
            "world-writable",
        ),
        (
            link.to_string_lossy().into_owned(),
            "",
            r#"["-c", "touch MARKER"]"#,
            "runs a shell script",
        ),
        (
            "SERVER".to_owned(),
            "[gateway.commands]\nallow = [\"npx\"]\n",
            "[]",
            "not in the list of allowed programs",
        ),
    ];
    for (command, rules, args, why) in cells {
        let text = format!("{rules}[servers.a]\ncommand = \"{command}\"\nargs = {args}\n");
        harness.configure("own.toml", &text);
        let served = harness.run(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
        assert_eq!(
            served.status.code(),
            Some(2),
            "{}",
            combined_output(&served)
        );
        assert!(
            combined_output(&served).contains(why),
            "{}",
            combined_output(&served)
        );
        assert!(!harness.was_started(), "{command}");
    }
}

/// `check` warns of a world-writable script that an interpreter runs, also behind a link or in a world-writable
/// folder, and names the file and the fix.
#[test]
fn world_writable_scripts_are_warned_of() {
    let harness = Harness::new();
    let with_mode = |name: &str, mode| {
        let path = harness.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for folder in ["shared", "own"] {
        fs::create_dir(harness.path().join(folder)).unwrap();
        fs::write(harness.path().join(folder).join("x.py"), "").unwrap();
    }
    fs::write(harness.path().join("open.py"), "").unwrap();
    let link = harness.path().join("own/link.py");
    std::os::unix::fs::symlink(harness.path().join("open.py"), link).unwrap();
    with_mode("open.py", 0o666);
    with_mode("shared", 0o777);
    let here = harness.path().display();
    let judged = |command: &str, args: &str| {
        let text =
            format!("[servers.a]\ncommand = \"{command}\"\nargs = {args}\ncwd = \"{here}\"\n");
        harness.configure("own.toml", &text);
        combined_output(&harness.run(&["check", "own.toml"]))
    };
    for (command, args, open) in [
        ("python3", r#"["open.py"]"#, "open.py"),
        ("python3", r#"["-u", "own/link.py"]"#, "own/link.py"),
        ("node", r#"["shared/x.py"]"#, "shared"),
        (
            "uv",
            r#"["--directory", "shared", "run", "x.py"]"#,
            "shared",
        ),
        ("env", r#"["sh", "open.py"]"#, "open.py"),
        (
            "uv",
            r#"["--directory", "shared", "run", "sh", "x.py"]"#,
            "shared",
        ),
    ] {
        let message = judged(command, args);
        for words in [
            format!("warning: `{here}/{open}` is world-writable"),
            format!("chmod o-w {here}/{open}"),
        ] {
            assert!(message.contains(&words), "{command} {args}: {message}");
        }
    }
    for args in [r#"["own/x.py", "open.py"]"#, r#"["-m", "http", "open.py"]"#] {
        let message = judged("python3", args);
        assert!(!message.contains("world-writable"), "{args}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_passed_without_a_shell() {
    let harness = Harness::new();
    let args = [
        "$(touch MARKER)",
        "`touch MARKER`",
        "a; touch MARKER",
        "b && touch MARKER",
        "$HOME",
        "*",
        "two words",
        "",
    ];
    let quoted: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
    let text = format!(
        "[servers.a]\ncommand = \"SERVER\"\nargs = [{}]\n",
        quoted.join(", ")
    );
    harness.configure("own.toml", &text);
    let running = harness.serve(&["--config", "own.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    let marker = harness.path().join("marker");
    let expected = args.map(|arg| arg.replace("MARKER", &marker.to_string_lossy()) + "\n");
    assert_eq!(harness.read_file("args"), expected.concat());
    assert!(!marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_cannot_add_commands() {
    let harness = Harness::new();
    harness.configure("own.toml", "[servers.a]\nbuiltin = \"everything\"\n");
    let running = harness.serve(&["--config", "own.toml"]);
    let marker = harness.path().join("marker");
    let server = json!({"command": "touch", "args": [marker], "name": "bad"});
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "servers/add", "mcpServers": {"bad": server},
        "servers": {"bad": server}, "params": server,
    });
    let paths = [
        "/mcp",
        "/servers",
        "/servers/bad",
        "/servers/bad/mcp",
        "/api/servers",
        "/config",
        "/reload",
    ];
    for path in paths {
        for verb in ["POST", "PUT", "PATCH", "DELETE"] {
            let status = running.send(verb, path, &body.to_string()).await;
            assert!((400..500).contains(&status), "{verb} {path}: {status}");
        }
    }
    let client = running.client(Revision::V2026_07_28).await;
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name.starts_with("a__")));
    assert!(!harness.was_started());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_server_output_is_ignored() {
    let noise = "printf '\\377\\n'; head -c 100000 /dev/zero | tr '\\0' '['; echo; \
                 echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":{}}'; echo '$(touch MARKER)'";
    let harness = Harness::new();
    harness.install_with(noise);
    harness.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\n[servers.b]\nbuiltin = \"everything\"\n",
    );
    let running = harness.serve(&["--config", "own.toml"]);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let client = running.client(revision).await;
        for tool in ["a__echo", "b__echo"] {
            let echoed = client.call_tool(tool, json!({"text": "x"})).await;
            assert_eq!(echoed.unwrap().all_text(), "x", "{revision} {tool}");
        }
    }
    assert!(!harness.path().join("marker").exists());
}
