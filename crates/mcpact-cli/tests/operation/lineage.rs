//! Gateways whose config starts gateways.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::house::{House, builtin, handshake, request, until};

/// A server that is a gateway with this config, started by these words.
fn gateway(name: &str, house: &House, words: &[&str], config: &str) -> String {
    let program = env!("CARGO_BIN_EXE_mcpact");
    let config = house.path(config);
    let last = ["serve", "--stdio", "--config", config.to_str().unwrap()];
    let args: Vec<&str> = words.iter().copied().chain(last).collect();
    let args = json!(args);
    format!("[servers.{name}]\ncommand = \"{program}\"\nargs = {args}\n")
}

/// A gateway on pipes whose config starts the same gateway is started once; who it serves is told why.
#[test]
fn a_gateway_does_not_start_itself() {
    let house = House::new("");
    let itself = gateway("me", &house, &[], "mcpact.toml");
    house.configure(&format!("{}{itself}", builtin("local")));
    let mut child = house.serve_on_pipes();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: &Value| {
        writeln!(input, "{message}").unwrap();
        lines.next().unwrap().unwrap()
    };
    let welcome = ask(&handshake());
    assert!(
        welcome.contains("`me` is missing: the server is a gateway that serves this one in turn"),
        "{welcome}"
    );
    assert!(
        welcome.contains("hint: take one out of the config"),
        "{welcome}"
    );
    let listed = ask(&request("tools/list", &json!({})));
    assert!(listed.contains("local__echo"), "{listed}");
    assert!(!listed.contains("me__"), "{listed}");
    let (_, printed, _) = house.run(&["logs"]);
    assert!(
        printed.contains("the gateway of this very config (process"),
        "{printed}"
    );
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// A gateway may start one with another config, which is served but for what leads back, by whatever program it does.
#[test]
fn gateways_start_others_and_not_each_other() {
    let house = House::new("");
    let program = env!("CARGO_BIN_EXE_mcpact");
    let around = gateway("around", &house, &["bridge", "--", program], "mcpact.toml");
    let other = gateway("other", &house, &[], "other.toml");
    house.configure(&format!("{}{around}{other}", builtin("local")));
    let back = gateway("back", &house, &[], "mcpact.toml");
    fs::write(
        house.path("other.toml"),
        format!("{}{back}", builtin("inner")),
    )
    .unwrap();
    let running = house.serve();
    let list = request("tools/list", &json!({}));
    let session = running.open("/mcp");
    until(|| {
        let listed = running.post("/mcp", Some(&session), &list).body;
        assert!(!listed.contains("around__"), "{listed}");
        assert!(!listed.contains("other__back__"), "{listed}");
        listed.contains("local__echo") && listed.contains("other__inner__echo")
    });
    until(|| {
        let welcome = running.post("/mcp", None, &handshake()).body;
        let in_turn = "the server is a gateway that serves this one in turn";
        ["around", "back"]
            .iter()
            .all(|name| welcome.contains(&format!("`{name}` is missing: ")))
            && welcome.matches(in_turn).count() == 2
    });
}
