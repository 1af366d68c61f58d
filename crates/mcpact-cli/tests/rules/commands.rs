//! Dangerous commands are never started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{Place, said};

/// Commands that must not run, and a word of the reason.
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

/// A command that is dangerous in the open ends the gateway before anything is started, whether
/// it stands in the own config or in that of another client, and `check` tells the same.
#[test]
fn dangerous_commands_are_refused() {
    for (command, args, why) in REFUSED {
        let place = Place::new();
        let quoted: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
        let toml = format!(
            "[servers.bad]\ncommand = {command:?}\nargs = [{}]\n",
            quoted.join(", ")
        );
        place.configure("own.toml", &toml);
        place.configure("client.json", &json_config(command, args));
        for config in ["own.toml", "client.json"] {
            let what = format!("{config}: {command} {args:?}");
            let served = place.run(&["serve", "--listen", "127.0.0.1:0", "--config", config]);
            assert_eq!(served.status.code(), Some(2), "{what}: {}", said(&served));
            let checked = place.run(&["check", config]);
            assert_eq!(checked.status.code(), Some(7), "{what}");
            assert!(said(&checked).contains(why), "{what}: {}", said(&checked));
            assert!(!place.was_started(), "{what}");
        }
    }
}

/// What is imported from another client is judged in the same way.
#[test]
fn imported_commands_are_judged() {
    let place = Place::new();
    place.configure("client.json", &json_config("sh", &["-c", "touch MARKER"]));
    let imported = place.run(&["import", "./client.json"]);
    assert_eq!(imported.status.code(), Some(0), "{}", said(&imported));
    let served = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(served.status.code(), Some(2), "{}", said(&served));
    assert!(!place.was_started());
}

/// A program that everybody may change is not started, nor is one behind a link to `sudo` or a shell,
/// nor one that is not among those that are allowed.
#[test]
fn programs_of_others_are_refused() {
    let place = Place::new();
    let open = place.path().join("open");
    fs::copy(place.server(), &open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let link = place.path().join("harmless");
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
        place.configure("own.toml", &text);
        let served = place.run(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
        assert_eq!(served.status.code(), Some(2), "{}", said(&served));
        assert!(said(&served).contains(why), "{}", said(&served));
        assert!(!place.was_started(), "{command}");
    }
}

/// `check` warns of a world-writable script that an interpreter runs, also behind a link or in a world-writable
/// folder, and names the file and the fix.
#[test]
fn world_writable_scripts_are_warned_of() {
    let place = Place::new();
    let with_mode = |name: &str, mode| {
        let path = place.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for folder in ["shared", "own"] {
        fs::create_dir(place.path().join(folder)).unwrap();
        fs::write(place.path().join(folder).join("x.py"), "").unwrap();
    }
    fs::write(place.path().join("open.py"), "").unwrap();
    let link = place.path().join("own/link.py");
    std::os::unix::fs::symlink(place.path().join("open.py"), link).unwrap();
    with_mode("open.py", 0o666);
    with_mode("shared", 0o777);
    let here = place.path().display();
    let judged = |command: &str, args: &str| {
        let text =
            format!("[servers.a]\ncommand = \"{command}\"\nargs = {args}\ncwd = \"{here}\"\n");
        place.configure("own.toml", &text);
        said(&place.run(&["check", "own.toml"]))
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
        let told = judged(command, args);
        for words in [
            format!("warning: `{here}/{open}` is world-writable"),
            format!("chmod o-w {here}/{open}"),
        ] {
            assert!(told.contains(&words), "{command} {args}: {told}");
        }
    }
    for args in [r#"["own/x.py", "open.py"]"#, r#"["-m", "http", "open.py"]"#] {
        let told = judged("python3", args);
        assert!(!told.contains("world-writable"), "{args}: {told}");
    }
}

/// There is no shell: what would mean something to one reaches the program letter by letter.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_the_program_as_they_are() {
    let place = Place::new();
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
    place.configure("own.toml", &text);
    let running = place.serve(&["--config", "own.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    let marker = place.path().join("marker");
    let expected = args.map(|arg| arg.replace("MARKER", &marker.to_string_lossy()) + "\n");
    assert_eq!(place.written("args"), expected.concat());
    assert!(!marker.exists());
}

/// Nothing that comes by the network makes or changes a command.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_adds_a_command() {
    let place = Place::new();
    place.configure("own.toml", "[servers.a]\nbuiltin = \"everything\"\n");
    let running = place.serve(&["--config", "own.toml"]);
    let marker = place.path().join("marker");
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
    assert!(!place.was_started());
}

/// A server may say anything before and between its messages; what it says stays what it is, and the
/// gateway serves on.
#[tokio::test(flavor = "multi_thread")]
async fn noise_of_servers_does_no_harm() {
    let noise = "printf '\\377\\n'; head -c 100000 /dev/zero | tr '\\0' '['; echo; \
                 echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":{}}'; echo '$(touch MARKER)'";
    let place = Place::new();
    place.install_noisy(noise);
    place.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\n[servers.b]\nbuiltin = \"everything\"\n",
    );
    let running = place.serve(&["--config", "own.toml"]);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let client = running.client(revision).await;
        for tool in ["a__echo", "b__echo"] {
            let echoed = client.call_tool(tool, json!({"text": "x"})).await;
            assert_eq!(echoed.unwrap().all_text(), "x", "{revision} {tool}");
        }
    }
    assert!(!place.path().join("marker").exists());
}
