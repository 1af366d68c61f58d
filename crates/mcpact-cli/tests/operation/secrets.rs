//! Masking of secrets in server output.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, handshake, request, wait_until};

/// In instructions, errors, status, logs and readiness. Results of calls are passed through
/// unchanged.
#[test]
fn secrets_echoed_by_a_server_are_masked() {
    let harness = Harness::new("");
    let server = |name: &str, calls_itself| {
        let program = harness.refusing(name, "wrong key: '\"$KEY\"'", calls_itself);
        format!("{program}env = {{ KEY = \"hunter2-{name}\" }}\n")
    };
    harness.configure(&(server("refusing", None) + &server("listless", Some("a"))));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let ask =
        |method: &str, params| gateway.post("/mcp", Some(&session), &request(method, &params));
    ask("tools/list", json!({}));
    wait_until(|| {
        gateway
            .post("/mcp", None, &handshake())
            .body
            .contains("`listless`")
    });
    let call = |name: &str| ask("tools/call", json!({"name": name, "arguments": {}})).body;
    let mut message = vec![
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
        let (_, stdout, _) = harness.run(args);
        assert!(stdout.contains("wrong key: ***"), "{args:?}: {stdout}");
        message.push(("a command", stdout));
    }
    assert!(message[0].1.contains("wrong key: ***"), "{}", message[0].1);
    assert!(message[1].1.contains("wrong key: ***"), "{}", message[1].1);
    message.push(("the log", fs::read_to_string(harness.path("log")).unwrap()));
    for (what, text) in message {
        assert!(!text.contains("hunter2"), "{what}: {text}");
    }
}
