//! Resource limits of servers.

use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, Running};

/// Writes the limits of a child process to a file.
const FIRST: &str =
    "sh -c 'ulimit -n; ulimit -v; grep NoNewPrivs /proc/self/status' > \"$here/limits\"";

/// Every start is logged.
#[tokio::test(flavor = "multi_thread")]
async fn resource_limits_apply_to_servers_and_their_children() {
    for (keys, expected) in [
        (
            "no_new_privileges = true\nmax_open_files = 200\nmax_memory_mb = 4096\n",
            "200\n4194304\nNoNewPrivs:\t1\n",
        ),
        ("no_new_privileges = true\n", "NoNewPrivs:\t1\n"),
        ("", "NoNewPrivs:\t0\n"),
    ] {
        let harness = Harness::new();
        harness.install_with(FIRST);
        let control = harness.path().join("control.sock");
        let control = control.to_str().unwrap();
        harness.configure(
            "own.toml",
            &format!(
                "[gateway]\ncontrol = \"{control}\"\n[servers.a]\ncommand = \"SERVER\"\n{keys}"
            ),
        );
        let running = harness.serve(&["--config", "own.toml"]);
        let client = running.client(Revision::V2026_07_28).await;
        let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
        assert_eq!(echoed.unwrap().all_text(), "x", "{keys}");
        let limits = harness.read_file("limits");
        assert!(limits.ends_with(expected), "{keys}: {limits}");
        let logs = harness.run(&["logs", "--socket", control]);
        let logs = String::from_utf8(logs.stdout).unwrap();
        assert!(
            logs.contains("starting: ") && logs.contains("process started: pid "),
            "{logs}"
        );
    }
}

/// P16: for the gateway and its servers, whatever the limit was.
#[tokio::test(flavor = "multi_thread")]
async fn core_dumps_are_disabled() {
    let harness = Harness::new();
    harness.install_with("ulimit -S -c > \"$here/core\"");
    harness.configure("own.toml", "[servers.a]\ncommand = \"SERVER\"\n");
    let plain = harness.command(&[]);
    let raised = "ulimit -S -c \"$(ulimit -H -c)\"; exec \"$0\" serve --listen 127.0.0.1:0 --config own.toml";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", raised]).arg(plain.get_program());
    shell
        .current_dir(harness.path())
        .stdout(std::process::Stdio::piped());
    for (name, value) in plain.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let running = Running::start(shell);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    assert_eq!(harness.read_file("core"), "0\n");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let soft = core.unwrap().split_whitespace().nth(4);
    assert_eq!(soft, Some("0"), "{limits}");
}

#[test]
fn invalid_limits_are_rejected() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\nmax_memory_mb = 1\nmax_open_files = 3\n\
         [servers.b]\nurl = \"https://b.example/mcp\"\nno_new_privileges = true\n",
    );
    let checked = harness.run(&["check", "own.toml"]);
    let message = String::from_utf8_lossy(&checked.stdout).into_owned();
    for expected in [
        "`max_memory_mb` must be at least 64",
        "`max_open_files` must be at least 32",
        "`no_new_privileges` has no effect with `url`",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
