//! What a server was given and repeats is told to nobody else.

use std::fs;

use serde_json::json;

use crate::house::{House, handshake, request, until};

/// A key that a server repeats when it refuses to agree or to list stands in nothing that is told about the
/// server: not in instructions, errors, states, logs and readiness. What it answers to a call is passed on as it is.
#[test]
fn what_a_server_repeats_is_covered_in_what_is_told_about_it() {
    let house = House::new("");
    let server = |name: &str, calls_itself| {
        let program = house.refusing(name, "wrong key: '\"$KEY\"'", calls_itself);
        format!("{program}env = {{ KEY = \"hunter2-{name}\" }}\n")
    };
    house.configure(&(server("refusing", None) + &server("listless", Some("a"))));
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
