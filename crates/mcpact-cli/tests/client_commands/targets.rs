//! Targets: URLs, commands and servers of a config, directly and at a running gateway.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;

use mcpact_sim::scripted::process::TestProcess;

use crate::harness::{Harness, MCPACT};

fn config(harness: &Harness) {
    let text = format!(
        "[gateway]\ntoken = \"${{file:token}}\"\n\n[servers.demo]\ncommand = \"{MCPACT}\"\nargs = [\"everything\"]\n"
    );
    harness.write("mcpact.toml", &text);
    harness.write("token", "0123456789abcdef0123");
}

/// Approves everything that the config starts.
fn approve(harness: &Harness) {
    let shown = harness.run(&["approve"]);
    let shown = shown.stderr + &shown.stdout;
    let marks = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mark "));
    let marks: Vec<&str> = marks.map(str::trim).collect();
    for mark in marks {
        harness.run(&["approve", "--mark", mark]);
    }
}

#[test]
fn named_server_needs_an_approval() {
    let harness = Harness::new();
    config(&harness);
    let call = ["call", "demo", "echo", "text=x"];
    let stderr = harness.run(&call).failed(2);
    assert!(stderr.contains("the command is not approved"), "{stderr}");
    assert!(stderr.contains("`mcpact approve demo`"), "{stderr}");
    // `--config` implies approval.
    let given = [&call[..], &["--config", "mcpact.toml"]].concat();
    assert_eq!(harness.run(&given).ok(), "x\n");
    approve(&harness);
    assert_eq!(harness.run(&call).ok(), "x\n");
    // A folder below finds the same config.
    std::fs::create_dir(harness.path().join("below")).unwrap();
    let mut command = harness.command(&call);
    let output = command
        .current_dir(harness.path().join("below"))
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"x\n", "{output:?}");
}

/// The server of the gateway answers: it needs no approval here.
#[test]
fn running_gateway_of_the_config_is_used() {
    let harness = Harness::new();
    config(&harness);
    std::fs::create_dir_all(harness.path().join(".home")).unwrap();
    let call = ["call", "demo", "echo", "text=x"];
    harness.run(&call).failed(2);
    let args = [
        "serve",
        "--config",
        "mcpact.toml",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut serve = harness.command(&args);
    let mut gateway = TestProcess::spawn(serve.stdout(Stdio::piped()).stderr(Stdio::null()));
    gateway.first_line();
    assert_eq!(harness.run(&call).ok(), "x\n");
    drop(gateway);
    harness.run(&call).failed(2);
}

#[test]
fn unusable_targets_are_reported() {
    let harness = Harness::new();
    let missing = [
        harness.run(&["tools"]),
        harness.run(&["tools", "demo"]),
        harness.run(&["tools", "localhost:6272/mcp"]),
        harness.run(&["tools", "ftp://a.example/"]),
    ];
    config(&harness);
    let unknown = [
        harness.run(&["tools", "dem"]),
        harness.run(&["tools", "demo", "--header", "A: b"]),
        harness.run(&["tools", "--config", "mcpact.toml", "--", "server"]),
        harness.run(&["tools", "demo", "--era", "new"]),
    ];
    let all = missing.iter().chain(&unknown).map(|seen| {
        assert_eq!(seen.code, 2, "{}", seen.shown());
        let folder = harness.path().display().to_string();
        seen.stderr.replace(&folder, "FOLDER")
    });
    insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"));
}

/// Serves the same response to every request.
fn stub(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

/// Every kind of failure has its exit code, and says what to do.
#[test]
fn failures_to_connect_have_an_exit_code_each() {
    let harness = Harness::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let unauthorized = stub(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    let forbidden =
        stub("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let other_revision = [
        "--era",
        "2024-11-05",
        "--",
        MCPACT,
        "everything",
        "--revisions",
        "2026-07-28",
    ];
    for (target, code, expected) in [
        (&[&*unused][..], 4, "cannot reach"),
        (&["--", "no-such-program-4711"], 4, "program not found"),
        (
            &["--", "sh", "-c", "echo API_KEY is missing >&2; exit 3"],
            4,
            "stderr: API_KEY is missing",
        ),
        (
            &["--timeout", "1", "--", "sleep", "60"],
            4,
            "did not answer within 1 s",
        ),
        (&[&*unauthorized], 3, "--bearer env:NAME"),
        (&[&*forbidden], 3, "HTTP 403"),
        (&other_revision, 6, "negotiation with"),
    ] {
        let stderr = harness.run(&[&["tools"], target].concat()).failed(code);
        assert!(stderr.contains(expected), "{target:?}: {stderr}");
    }
}

/// A bearer token reaches the server, and is masked where the server repeats it.
#[test]
fn bearer_token_is_sent_and_masked() {
    let harness = Harness::new();
    harness.write("token", "0123456789abcdef0123");
    let serve = [
        "everything",
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        "token",
    ];
    let mut command = harness.command(&serve);
    let mut process = TestProcess::spawn(command.stdout(Stdio::piped()));
    let url = process.first_line().trim().to_owned();
    harness.run(&["tools", &url]).failed(3);
    let bearer = ["call", &url, "echo", "text=x", "--bearer", "file:token"];
    assert_eq!(harness.run(&bearer).ok(), "x\n");
}

#[test]
fn url_is_a_url_also_behind_dashes() {
    let harness = Harness::new();
    let (_server, url) = harness.serve();
    let call = ["call", "echo", "text=x", "--", &url];
    assert_eq!(harness.run(&call).ok(), "x\n");
    let stderr = harness.run(&["tools", "--", &url, "more"]).failed(2);
    assert!(stderr.contains("unexpected argument `more`"), "{stderr}");
}
