//! Loops between gateways over HTTP.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::harness::{
    Harness, Running, builtin, call, handshake, request, send_modern, wait_until,
};

/// The error of a server in a loop.
const LOOP_ERROR: &str = "proxy loop detected: this server routes back to this gateway";

/// Returns the config of a server at a URL.
fn server_at(name: &str, url: &str, era: &str) -> String {
    format!("[servers.{name}]\nurl = \"{url}\"\nera = \"{era}\"\n")
}

/// Returns the tool names of a `tools/list` response.
fn parse_names(body: &str) -> BTreeSet<String> {
    let line = body.lines().find(|line| line.contains("\"tools\""));
    let text = line.map_or(body, |line| line.trim_start_matches("data:").trim());
    let answer: Value = serde_json::from_str(text).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Lists the tools for a client of each era.
fn tool_names_by_era(gateway: &Running) -> [BTreeSet<String>; 2] {
    let list = request("tools/list", &json!({}));
    let session = gateway.open("/mcp");
    let legacy = parse_names(&gateway.post("/mcp", Some(&session), &list).body);
    let modern = parse_names(&send_modern(&gateway.origin, "/mcp", &list).body);
    [legacy, modern]
}

/// Lists the tools, which must be the same for both eras.
fn tool_names(gateway: &Running) -> BTreeSet<String> {
    let [legacy, modern] = tool_names_by_era(gateway);
    assert_eq!(legacy, modern);
    legacy
}

fn instructions(gateway: &Running) -> String {
    gateway.post("/mcp", None, &handshake()).body
}

/// Returns the status of a server.
fn server_status(harness: &Harness, server: &str) -> Value {
    let status = harness.status();
    let mut servers = status["servers"].as_array().unwrap().iter();
    servers.find(|of| of["name"] == server).unwrap().clone()
}

/// The second connection is refused until the first one is removed; everything else is served.
#[test]
fn gateways_that_serve_each_other_detect_the_loop() {
    for era in ["legacy", "modern"] {
        let (one, other) = (Harness::new(&builtin("local")), Harness::new(""));
        let first = one.serve();
        let leading = server_at("a", &format!("{}/mcp", first.origin), era);
        other.configure(&format!("{}{leading}", builtin("local")));
        let second = other.serve();
        assert!(tool_names(&second).contains("a__local__echo"), "{era}");

        let back = server_at("b", &format!("{}/mcp", second.origin), era);
        one.configure(&format!("{}{back}", builtin("local")));
        assert_eq!(one.run(&["reload"]).0, 0);
        for _ in 0..3 {
            let own = tool_names(&first);
            assert!(own.contains("local__echo"), "{era}: {own:?}");
            assert!(!own.iter().any(|name| name.starts_with("b__")), "{own:?}");
            let all = tool_names(&second);
            assert!(all.contains("local__echo") && all.contains("a__local__echo"));
            assert!(
                !all.iter().any(|name| name.starts_with("a__b__")),
                "{all:?}"
            );
        }
        let why = instructions(&first);
        assert!(why.contains("`b` is unavailable"), "{era}: {why}");
        assert!(
            why.contains("hint: remove this server from the config"),
            "{why}"
        );
        let status = server_status(&one, "b");
        let why = status["last_error"]["why"].as_str().unwrap();
        assert!(why.contains(LOOP_ERROR), "{era}: {why}");
        let (_, stdout, _) = other.run(&["logs"]);
        assert!(
            stdout.contains("proxy loop detected; request refused"),
            "{stdout}"
        );
        let called = send_modern(&second.origin, "/mcp", &call("a__local__echo"));
        assert!(called.body.contains("hello"), "{era}: {called:?}");

        other.configure(&builtin("local"));
        assert_eq!(other.run(&["reload"]).0, 0);
        let served = |names: &BTreeSet<String>| names.contains("b__local__echo");
        wait_until(|| tool_names_by_era(&first).iter().all(served));
    }
}

/// Nothing is listed twice.
#[test]
fn gateways_that_start_together_detect_the_loop() {
    for era in ["legacy", "modern"] {
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = free.map(|free| free.local_addr().unwrap());
        let started =
            [("a", one, "b", other), ("b", other, "a", one)].map(|(name, listen, of, address)| {
                let harness = Harness::new("");
                let leading = server_at(of, &format!("http://{address}/mcp"), era);
                let local = builtin("local");
                let config = format!("[gateway]\nlisten = \"{listen}\"\n{local}{leading}");
                fs::write(harness.path("mcpact.toml"), config).unwrap();
                let gateway = harness.serve();
                (name, harness, gateway)
            });
        // Exactly one of the two connections is refused.
        wait_until(|| {
            let seen: Vec<_> = started
                .iter()
                .map(|(_, _, of)| tool_names_by_era(of))
                .collect();
            let circles = ["a__b__", "b__a__"];
            let mut all = seen.iter().flatten().flatten();
            assert!(!all.any(|name| circles.iter().any(|of| name.starts_with(of))));
            let mut each = seen.iter().flatten();
            assert!(each.all(|names| names.contains("local__echo")));
            let [one, other] = [("b__", &seen[0]), ("a__", &seen[1])].map(|(prefix, eras)| {
                eras.each_ref()
                    .map(|names| names.iter().any(|name| name.starts_with(prefix)))
            });
            one[0] == one[1] && other[0] == other[1] && one[0] != other[0]
        });
    }
}

/// Single-server endpoints do not form a loop.
#[test]
fn gateways_can_serve_single_servers_of_each_other() {
    let (one, other) = (Harness::new(&builtin("local")), Harness::new(""));
    let first = one.serve();
    let leading = server_at("a", &format!("{}/servers/local/mcp", first.origin), "auto");
    other.configure(&format!("{}{leading}", builtin("local")));
    let second = other.serve();
    let back = server_at("b", &format!("{}/servers/local/mcp", second.origin), "auto");
    one.configure(&format!("{}{back}", builtin("local")));
    assert_eq!(one.run(&["reload"]).0, 0);
    for _ in 0..2 {
        assert!(tool_names(&first).contains("b__echo"));
        assert!(tool_names(&second).contains("a__echo"));
    }
}
