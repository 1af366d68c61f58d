//! Servers that may not have everything.

use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{Place, Running};

/// What the kernel says about a server, written down before it serves, and by something that it starts.
const FIRST: &str =
    "sh -c 'ulimit -n; ulimit -v; grep NoNewPrivs /proc/self/status' > \"$here/limits\"";

/// What the config says is true of a server and of whatever it starts; every start is written down.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_confined_as_the_config_says() {
    for (keys, expected) in [
        (
            "no_new_privileges = true\nmax_open_files = 200\nmax_memory_mb = 4096\n",
            "200\n4194304\nNoNewPrivs:\t1\n",
        ),
        ("no_new_privileges = true\n", "NoNewPrivs:\t1\n"),
        ("", "NoNewPrivs:\t0\n"),
    ] {
        let place = Place::new();
        place.install_noisy(FIRST);
        let control = place.path().join("control.sock");
        let control = control.to_str().unwrap();
        place.configure(
            "own.toml",
            &format!(
                "[gateway]\ncontrol = \"{control}\"\n[servers.a]\ncommand = \"SERVER\"\n{keys}"
            ),
        );
        let running = place.serve(&["--config", "own.toml"]);
        let client = running.client(Revision::V2026_07_28).await;
        let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
        assert_eq!(echoed.unwrap().all_text(), "x", "{keys}");
        let limits = place.written("limits");
        assert!(limits.ends_with(expected), "{keys}: {limits}");
        let logs = place.run(&["logs", "--socket", control]);
        let logs = String::from_utf8(logs.stdout).unwrap();
        assert!(
            logs.contains("is started, because of") && logs.contains("runs as process"),
            "{logs}"
        );
    }
}

/// P16: neither the gateway nor a server leaves its memory on the disk when it crashes, whatever was allowed before.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_no_secrets_behind() {
    let place = Place::new();
    place.install_noisy("ulimit -S -c > \"$here/core\"");
    place.configure("own.toml", "[servers.a]\ncommand = \"SERVER\"\n");
    let plain = place.command(&[]);
    let raised = "ulimit -S -c \"$(ulimit -H -c)\"; exec \"$0\" serve --listen 127.0.0.1:0 --config own.toml";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", raised]).arg(plain.get_program());
    shell
        .current_dir(place.path())
        .stdout(std::process::Stdio::piped());
    for (name, value) in plain.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let running = Running::start(shell);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    assert_eq!(place.written("core"), "0\n");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let soft = core.unwrap().split_whitespace().nth(4);
    assert_eq!(soft, Some("0"), "{limits}");
}

/// A limit below which nothing starts is told, and so is one for something that is not started.
#[test]
fn impossible_limits_are_told() {
    let place = Place::new();
    place.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\nmax_memory_mb = 1\nmax_open_files = 3\n\
         [servers.b]\nurl = \"https://b.example/mcp\"\nno_new_privileges = true\n",
    );
    let checked = place.run(&["check", "own.toml"]);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    for expected in [
        "`max_memory_mb` is at least 64",
        "`max_open_files` is at least 32",
        "`no_new_privileges` means nothing beside `url`",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}
