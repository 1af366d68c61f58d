//! Gateways that have each other among their servers.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::house::{House, Running, builtin, call, handshake, request, send_modern, until};

/// How the status of a server tells of a circle.
const IN_TURN: &str = "the server is a gateway that serves this one in turn";

/// A server that is what is at this address, spoken to in this era.
fn at(name: &str, url: &str, era: &str) -> String {
    format!("[servers.{name}]\nurl = \"{url}\"\nera = \"{era}\"\n")
}

/// The names in what was answered to `tools/list`.
fn names(body: &str) -> BTreeSet<String> {
    let line = body.lines().find(|line| line.contains("\"tools\""));
    let text = line.map_or(body, |line| line.trim_start_matches("data:").trim());
    let answer: Value = serde_json::from_str(text).unwrap();
    let tools = answer["result"]["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// What a gateway lists, to a client of each era, one after the other.
fn lists(gateway: &Running) -> [BTreeSet<String>; 2] {
    let list = request("tools/list", &json!({}));
    let session = gateway.open("/mcp");
    let legacy = names(&gateway.post("/mcp", Some(&session), &list).body);
    let modern = names(&send_modern(&gateway.origin, "/mcp", &list).body);
    [legacy, modern]
}

/// What a gateway at which nothing changes lists, to a client of either era alike.
fn listed(gateway: &Running) -> BTreeSet<String> {
    let [legacy, modern] = lists(gateway);
    assert_eq!(legacy, modern);
    legacy
}

fn instructions(gateway: &Running) -> String {
    gateway.post("/mcp", None, &handshake()).body
}

/// What the status says of this server.
fn told(house: &House, server: &str) -> Value {
    let status = house.status();
    let mut servers = status["servers"].as_array().unwrap().iter();
    servers.find(|of| of["name"] == server).unwrap().clone()
}

/// Of two gateways with each other among their servers the first is served by the second, and the second says why it
/// does not serve the first, until that one does without it. Everything else is served by both.
#[test]
fn two_gateways_do_not_go_round_in_a_circle() {
    for era in ["legacy", "modern"] {
        let (one, other) = (House::new(&builtin("local")), House::new(""));
        let first = one.serve();
        let leading = at("a", &format!("{}/mcp", first.origin), era);
        other.configure(&format!("{}{leading}", builtin("local")));
        let second = other.serve();
        assert!(listed(&second).contains("a__local__echo"), "{era}");

        let back = at("b", &format!("{}/mcp", second.origin), era);
        one.configure(&format!("{}{back}", builtin("local")));
        assert_eq!(one.run(&["reload"]).0, 0);
        for _ in 0..3 {
            let own = listed(&first);
            assert!(own.contains("local__echo"), "{era}: {own:?}");
            assert!(!own.iter().any(|name| name.starts_with("b__")), "{own:?}");
            let all = listed(&second);
            assert!(all.contains("local__echo") && all.contains("a__local__echo"));
            assert!(
                !all.iter().any(|name| name.starts_with("a__b__")),
                "{all:?}"
            );
        }
        let why = instructions(&first);
        assert!(why.contains("`b` is missing"), "{era}: {why}");
        assert!(why.contains("hint: take one out of the config"), "{why}");
        let status = told(&one, "b");
        let why = status["last_error"]["why"].as_str().unwrap();
        assert!(why.contains(IN_TURN), "{era}: {why}");
        let (_, printed, _) = other.run(&["logs"]);
        assert!(
            printed.contains("goes round in a circle was refused"),
            "{printed}"
        );
        let called = send_modern(&second.origin, "/mcp", &call("a__local__echo"));
        assert!(called.body.contains("hello"), "{era}: {called:?}");

        other.configure(&builtin("local"));
        assert_eq!(other.run(&["reload"]).0, 0);
        let served = |names: &BTreeSet<String>| names.contains("b__local__echo");
        until(|| lists(&first).iter().all(served));
    }
}

/// Gateways that meet each other at the same time find out, too, and nothing is listed twice.
#[test]
fn gateways_that_start_together_do_not_go_round() {
    for era in ["legacy", "modern"] {
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [one, other] = free.map(|free| free.local_addr().unwrap());
        let started =
            [("a", one, "b", other), ("b", other, "a", one)].map(|(name, listen, of, address)| {
                let house = House::new("");
                let leading = at(of, &format!("http://{address}/mcp"), era);
                let local = builtin("local");
                let config = format!("[gateway]\nlisten = \"{listen}\"\n{local}{leading}");
                fs::write(house.path("mcpact.toml"), config).unwrap();
                let gateway = house.serve();
                (name, house, gateway)
            });
        // Whoever is not served tells so, and is the only one.
        until(|| {
            let seen: Vec<_> = started.iter().map(|(_, _, of)| lists(of)).collect();
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

/// Two gateways may have single servers of each other, for these do not lead back.
#[test]
fn gateways_may_have_single_servers_of_each_other() {
    let (one, other) = (House::new(&builtin("local")), House::new(""));
    let first = one.serve();
    let leading = at("a", &format!("{}/servers/local/mcp", first.origin), "auto");
    other.configure(&format!("{}{leading}", builtin("local")));
    let second = other.serve();
    let back = at("b", &format!("{}/servers/local/mcp", second.origin), "auto");
    one.configure(&format!("{}{back}", builtin("local")));
    assert_eq!(one.run(&["reload"]).0, 0);
    for _ in 0..2 {
        assert!(listed(&first).contains("b__echo"));
        assert!(listed(&second).contains("a__echo"));
    }
}
