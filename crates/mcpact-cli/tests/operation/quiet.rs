//! What people see of broken servers: the log on a terminal, and the status.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{Harness, builtin, call, handshake, request, wait_until};

fn server(harness: &Harness, name: &str) -> Value {
    let status = harness.status();
    let servers = status["servers"].as_array().unwrap();
    let found = servers.iter().find(|server| server["name"] == name);
    found.unwrap().clone()
}

/// Retries of a server that exits are counted; a missing program is not retried, and starts once it exists.
#[test]
fn each_failure_is_one_line_with_its_hint() {
    let harness = Harness::new("");
    let crash = harness.program("crash", "#!/bin/sh\necho no key >&2\nexit 1\n");
    harness.gated();
    fs::rename(harness.path("gated"), harness.path("later")).unwrap();
    let missing = harness.path("gated");
    let missing = format!("[servers.missing]\ncommand = \"{}\"\n", missing.display());
    harness.configure(&format!("{crash}{missing}"));
    let gateway = harness.serve_with_text_log();
    wait_until(|| server(&harness, "crash")["starts"].as_u64().unwrap() >= 4);
    let log = || fs::read_to_string(harness.path("log")).unwrap();
    let lines = |log: &str| {
        let lines = log.lines().filter(|line| line.starts_with("warning: `"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let shown = log();
    let failures = lines(&shown);
    assert_eq!(failures.len(), 2, "{shown}");
    let all = failures.join("\n");
    assert!(
        all.contains("`crash` failed to start: ") && all.contains("no key"),
        "{all}"
    );
    assert!(
        all.contains("`missing` failed to start: ") && all.contains("program not found"),
        "{all}"
    );
    assert!(
        shown.contains("  hint: install it, or use its full path"),
        "{shown}"
    );

    let before = server(&harness, "missing");
    assert_eq!(before["starts"], 1, "{before}");
    assert_eq!(before["state"], "failed");
    assert!(
        before["remedy"].as_str().unwrap().contains("install it"),
        "{before}"
    );
    let refused = gateway.post("/servers/missing/mcp", None, &handshake());
    assert!(
        refused.body.contains("program not found") && refused.body.contains("install it"),
        "{refused:?}"
    );
    fs::rename(harness.path("later"), harness.path("gated")).unwrap();
    wait_until(|| server(&harness, "missing")["state"] == "ready");
    wait_until(|| log().contains("`missing` is ready again\n"));
}

/// A call during the backoff gets the remedy and the stderr of the failed start.
#[test]
fn call_during_the_backoff_gets_remedy_and_stderr() {
    let harness = Harness::new("");
    let crash = harness.program("crash", "#!/bin/sh\necho no key >&2\nexit 1\n");
    harness.configure(&format!(
        "{crash}failures = 2\nqueue_seconds = 1\nsuspend_seconds = 60\n"
    ));
    let gateway = harness.serve();
    wait_until(|| server(&harness, "crash")["state"] == "suspended");
    let refused = gateway.post("/servers/crash/mcp", None, &handshake());
    for words in [
        "in a row",
        "no key",
        "hint: run the command in a shell",
        "next start in ",
    ] {
        assert!(refused.body.contains(words), "{words}: {refused:?}");
    }
}

/// Lines on stdout that are not JSON are counted, and shown in the server log.
#[test]
fn noise_on_stdout_is_counted_and_logged() {
    let harness = Harness::new("");
    harness.gated();
    let program = fs::read_to_string(harness.path("gated")).unwrap();
    let program = program.replacen(
        "#!/bin/sh\n",
        "#!/bin/sh\necho 'token: hunter2-hunter2'\n",
        1,
    );
    fs::write(harness.path("gated"), program).unwrap();
    let server_config = format!(
        "[servers.gated]\ncommand = \"{}\"\nenv = {{ TOKEN = \"hunter2-hunter2\" }}\n",
        harness.path("gated").display()
    );
    harness.configure(&server_config);
    let gateway = harness.serve();
    gateway.open("/servers/gated/mcp");
    wait_until(|| server(&harness, "gated")["stdout_noise"] == 1);
    let (_, logs, _) = harness.run(&["logs", "gated"]);
    assert!(logs.contains("stdout, not JSON: token: ***"), "{logs}");
    assert!(!logs.contains("hunter2"), "{logs}");
    let (_, shown, _) = harness.run(&["status"]);
    assert!(shown.contains("1 line on stdout not JSON"), "{shown}");
}

/// The row of a server fits 80 columns and shows served and all tools; the page of a server shows its clients.
#[test]
fn status_shows_served_tools_and_clients() {
    let harness = Harness::new("");
    harness.configure(&format!("{}tools = [\"echo\"]\n", builtin("local")));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    gateway.post("/mcp", Some(&session), &call("local__echo"));
    let local = server(&harness, "local");
    assert_eq!(local["lists"]["served_tools"], 1, "{local}");
    let client = json!({"name": "hand", "version": "1", "revision": "2025-06-18"});
    assert_eq!(local["clients"], json!([client]), "{local}");
    let (_, shown, _) = harness.run(&["status"]);
    let row = shown
        .lines()
        .find(|line| line.starts_with("local"))
        .unwrap();
    assert!(
        row.contains(&format!("1/{}", local["lists"]["tools"])),
        "{shown}"
    );
    assert!(
        shown
            .lines()
            .all(|line| line.starts_with("config") || line.chars().count() <= 80),
        "{shown}"
    );
    let (_, page, _) = harness.run(&["status", "local"]);
    assert!(
        page.contains("hand 1 (2025-06-18)") && page.contains("tools"),
        "{page}"
    );
}

/// A gateway is found by a relative path and through a symbolic link.
#[test]
fn relative_and_symlinked_configs_find_the_gateway() {
    let harness = Harness::new(&builtin("local"));
    let _gateway = harness.serve();
    fs::create_dir(harness.path("sub")).unwrap();
    symlink(harness.path("mcpact.toml"), harness.path("sub/link.toml")).unwrap();
    for config in ["mcpact.toml", "./sub/../mcpact.toml", "sub/link.toml"] {
        let (code, _, stderr) = harness.run(&["status", "--config", config]);
        assert_eq!(code, 0, "{config}: {stderr}");
    }
}

/// The second gateway on an address names the first one.
#[test]
fn address_in_use_names_the_running_gateway() {
    let harness = Harness::new(&builtin("local"));
    let gateway = harness.serve();
    let address = gateway.origin.strip_prefix("http://").unwrap();
    let (code, stdout, stderr) = harness.run(&["serve", "--listen", address]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    let config = harness.path("mcpact.toml");
    let config = config.file_name().unwrap().to_str().unwrap();
    assert!(stderr.contains("is in use: a gateway serves `"), "{stderr}");
    assert!(
        stderr.contains(config) && stderr.contains(&gateway.origin),
        "{stderr}"
    );
}

/// An unset variable disables only its server of a foreign config, unless `--strict` is given.
#[test]
fn foreign_config_is_lenient_by_default() {
    let harness = Harness::new("");
    harness.gated();
    let config = json!({"mcpServers": {
        "good": {"command": harness.path("gated")},
        "unset": {"command": "sleep", "args": ["${NOBODY_SETS_THIS}"]},
    }});
    fs::write(harness.path("client.json"), config.to_string()).unwrap();
    let strict = [
        "serve",
        "--strict",
        "--config",
        "client.json",
        "--listen",
        "127.0.0.1:0",
    ];
    let (code, stdout, stderr) = harness.run(&strict);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    let _gateway = harness.serve_file("client.json");
    let log = || fs::read_to_string(harness.path("log")).unwrap();
    wait_until(|| log().contains("unusable: "));
    assert!(log().contains("NOBODY_SETS_THIS"), "{}", log());
    let (_, shown, _) = harness.run(&["status", "--config", "client.json"]);
    assert!(
        shown.contains("wrong") && shown.contains("NOBODY_SETS_THIS"),
        "{shown}"
    );
    let (code, shown, _) = harness.run(&["check", "client.json"]);
    assert!(code == 7 && shown.contains("unusable"), "{code} {shown}");
}

/// A request without a token and one with a wrong token get different messages.
#[test]
fn missing_and_wrong_token_differ() {
    let token = "token = \"0123456789abcdef\"\n";
    let harness = Harness::new(&format!("{token}{}", builtin("local")));
    let gateway = harness.serve();
    for (header, message, challenge) in [
        ("", "a bearer token is required", "Bearer"),
        (
            "Authorization: Bearer fedcba9876543210\r\n",
            "the bearer token is wrong",
            "error=\"invalid_token\", error_description=",
        ),
    ] {
        let reply = gateway.get_with("/mcp", header);
        assert_eq!(reply.status, 401);
        assert!(reply.body.starts_with(message), "{reply:?}");
        let shown = reply.header("www-authenticate").unwrap();
        assert!(shown.contains(challenge), "{shown}");
    }
}
