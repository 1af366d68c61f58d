//! What a server was given and repeats is told to nobody else.

use std::fs;

use serde_json::json;

use crate::house::{House, handshake, request, until};

/// Answers everything with its key, but `initialize` if it is called so.
const REPEATER: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    said=$(printf '"error":{"code":-32000,"message":"wrong key: %s"}' "$KEY")
    case "$0 $line" in
        *'listless '*'"initialize"'*) said='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}' ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$said" ;;
    esac
done
"#;

/// K5, O5: a key that a server repeats when it refuses to agree or to list stands in nothing that is told about the
/// server: not in instructions, errors, states, logs and readiness. What it answers to a call is passed on as it is.
#[test]
fn what_a_server_repeats_is_covered_in_what_is_told_about_it() {
    let house = House::new("");
    let server = |name: &str| {
        let program = house.program(name, REPEATER);
        format!("{program}env = {{ KEY = \"hunter2-{name}\" }}\n")
    };
    house.configure(&(server("refusing") + &server("listless")));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let ask =
        |method: &str, params| gateway.post("/mcp", Some(&session), &request(method, &params));
    ask("tools/list", json!({}));
    until(|| {
        gateway
            .post("/mcp", None, &handshake())
            .body
            .contains("`listless`")
    });
    let call = |name: &str| ask("tools/call", json!({"name": name, "arguments": {}})).body;
    let mut told = vec![
        (
            "instructions",
            gateway.post("/mcp", None, &handshake()).body,
        ),
        ("call", call("refusing__a")),
        ("call of a tool that is in no list", call("listless__a")),
        ("call of nothing", call("nothing")),
        ("readiness", gateway.get("/readyz").body),
    ];
    for args in [&["status"][..], &["status", "--json"], &["logs"]] {
        let (_, printed, _) = house.run(args);
        assert!(printed.contains("wrong key: ***"), "{args:?}: {printed}");
        told.push(("a command", printed));
    }
    assert!(told[0].1.contains("wrong key: ***"), "{}", told[0].1);
    assert!(told[1].1.contains("wrong key: ***"), "{}", told[1].1);
    told.push(("the log", fs::read_to_string(house.path("log")).unwrap()));
    for (what, text) in told {
        assert!(!text.contains("hunter2"), "{what}: {text}");
    }
}
