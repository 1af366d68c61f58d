//! Loops of gateways that start each other.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::harness::{Harness, builtin, handshake, request, wait_until};

/// Returns the config of a server that is a gateway, started through these arguments.
fn gateway(name: &str, harness: &Harness, words: &[&str], config: &str) -> String {
    let program = env!("CARGO_BIN_EXE_mcpact");
    let config = harness.path(config);
    let last = ["serve", "--stdio", "--config", config.to_str().unwrap()];
    let args: Vec<&str> = words.iter().copied().chain(last).collect();
    let args = json!(args);
    format!("[servers.{name}]\ncommand = \"{program}\"\nargs = {args}\n")
}

/// On stdio; the client gets the reason.
#[test]
fn config_that_starts_its_own_gateway_is_detected() {
    let harness = Harness::new("");
    let itself = gateway("me", &harness, &[], "mcpact.toml");
    harness.configure(&format!("{}{itself}", builtin("local")));
    let mut child = harness.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: &Value| {
        writeln!(input, "{message}").unwrap();
        lines.next().unwrap().unwrap()
    };
    let welcome = ask(&handshake());
    assert!(
        welcome.contains(
            "`me` is unavailable: proxy loop detected: this server routes back to this gateway"
        ),
        "{welcome}"
    );
    assert!(
        welcome.contains("hint: remove this server from the config"),
        "{welcome}"
    );
    let listed = ask(&request("tools/list", &json!({})));
    assert!(listed.contains("local__echo"), "{listed}");
    assert!(!listed.contains("me__"), "{listed}");
    let (_, stdout, _) = harness.run(&["logs"]);
    assert!(
        stdout.contains("a gateway with this config started this one"),
        "{stdout}"
    );
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// The loop is detected even through another program.
#[test]
fn gateways_can_start_others_without_a_loop() {
    let harness = Harness::new("");
    let program = env!("CARGO_BIN_EXE_mcpact");
    let around = gateway(
        "around",
        &harness,
        &["bridge", "--", program],
        "mcpact.toml",
    );
    let other = gateway("other", &harness, &[], "other.toml");
    harness.configure(&format!("{}{around}{other}", builtin("local")));
    let back = gateway("back", &harness, &[], "mcpact.toml");
    fs::write(
        harness.path("other.toml"),
        format!("{}{back}", builtin("inner")),
    )
    .unwrap();
    let running = harness.serve();
    let list = request("tools/list", &json!({}));
    let session = running.open("/mcp");
    wait_until(|| {
        let listed = running.post("/mcp", Some(&session), &list).body;
        assert!(!listed.contains("around__"), "{listed}");
        assert!(!listed.contains("other__back__"), "{listed}");
        listed.contains("local__echo") && listed.contains("other__inner__echo")
    });
    wait_until(|| {
        let welcome = running.post("/mcp", None, &handshake()).body;
        let in_turn = "proxy loop detected: this server routes back to this gateway";
        ["around", "back"]
            .iter()
            .all(|name| welcome.contains(&format!("`{name}` is unavailable: ")))
            && welcome.matches(in_turn).count() == 2
    });
}
