//! The rules, codes and wire examples of the third source document, under its profile.

use mcpact_engine::policy::Profile;
use mcpact_spec::{Capability, ErrorCode, Method, Revision, Side};
use serde_json::json;

use crate::support::*;

fn mcpv(capabilities: serde_json::Value) -> ServerRig {
    ServerRig::new(Profile::McpvStrict.policy(), capabilities)
}

/// N5, N35: only 2025-11-25, and the error says what would have been right (S2.1, S2.6).
#[test]
fn only_its_own_version() {
    for version in [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2026-07-28",
        "2099-01-01",
    ] {
        let out = mcpv(json!({})).initialize(version, json!({}));
        assert_eq!(out[0].code(), -32602);
        assert_eq!(
            out[0].error()["data"],
            json!({"supported": ["2025-11-25"], "requested": version})
        );
    }
    mcpv(json!({})).ready("2025-11-25", json!({}));
}

/// N17: its capability tables are rows of ours (S2.7, S2.8).
#[test]
fn its_capability_tables_are_ours() {
    for (owner, paths) in [
        (
            Side::Client,
            &[
                "roots",
                "roots.listChanged",
                "sampling",
                "elicitation.form",
                "elicitation.url",
                "tasks.list",
                "tasks.cancel",
                "experimental",
            ][..],
        ),
        (
            Side::Server,
            &[
                "prompts",
                "resources.subscribe",
                "resources.listChanged",
                "tools.listChanged",
                "logging",
                "completions",
                "tasks.requests.tools.call",
                "experimental",
            ][..],
        ),
    ] {
        for path in paths {
            let row = Capability::parse(owner, path).unwrap();
            assert!(row.presence(Revision::V2025_11_25).counts(), "{path}");
        }
    }
}

/// L13: its example of a task-augmented call, with and without the capability (S2.19, S2.27).
#[test]
fn its_task_example() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_weather", "arguments": {"city": "New York"}, "task": {"ttl": 60000}}});
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    for capabilities in [able.clone(), json!({"tools": {}})] {
        let mut server = mcpv(capabilities);
        server.ready("2025-11-25", json!({}));
        assert_eq!(
            server.message(call.clone()),
            [Out::Serve("tools/call".into())]
        );
    }
    let mut client = ClientRig::new(Profile::McpvStrict.policy(), json!({}));
    client.ready("2025-11-25", json!({"tools": {}}));
    let out = client.ask(1, "tools/call", call["params"].clone());
    assert!(
        matches!(&out[..], [Out::Withheld(_)]),
        "must not be attached: {out:?}"
    );
    let mut client = ClientRig::new(Profile::McpvStrict.policy(), json!({}));
    client.ready("2025-11-25", able);
    assert_eq!(
        client.ask(1, "tools/call", call["params"].clone())[0].reply(),
        &call
    );
}

/// L12: its codes are rows of ours, with the meaning that it gives them (S2.33, S2.35).
#[test]
fn its_codes_are_ours() {
    for (code, expected) in [
        (-32601, ErrorCode::MethodNotFound),
        (-32602, ErrorCode::InvalidParams),
        (-32002, ErrorCode::ResourceNotFound),
        (-32600, ErrorCode::InvalidRequest),
        (-32042, ErrorCode::UrlElicitationRequired),
    ] {
        assert_eq!(ErrorCode::parse(code), Some(expected));
        assert!(expected.emitted_in(Revision::V2025_11_25));
    }
    assert!(!ErrorCode::ResourceNotFound.emitted_in(Revision::V2026_07_28));
}

/// L12, L14: only declared methods are routed, in either direction (S2.39).
#[test]
fn only_declared_methods_are_routed() {
    let mut server = mcpv(json!({"tools": {}}));
    server.ready("2025-11-25", json!({}));
    for method in [
        "prompts/list",
        "resources/read",
        "tasks/get",
        "completion/complete",
        "logging/setLevel",
    ] {
        assert_eq!(
            server.request(1, method, json!({}))[0].code(),
            -32601,
            "{method}"
        );
    }
    for method in ["elicitation/create", "sampling/createMessage"] {
        assert!(
            matches!(&server.ask(1, method, json!({}))[..], [Out::Withheld(_)]),
            "{method}"
        );
    }
}

/// L3: the first call must be `initialize` (S2.4), and the ping of S2.40 works at any time.
#[test]
fn the_first_call_is_initialize() {
    let mut server = mcpv(json!({"tools": {}}));
    assert_eq!(server.request(1, "tools/list", json!({}))[0].code(), -32600);
    assert_eq!(server.request(2, "ping", json!({}))[0].result(), &json!({}));
}

/// N26: completion belongs to `completions` alone (S2.32).
#[test]
fn completion_has_its_own_capability() {
    let gate = Method::CompletionComplete.gate(Revision::V2025_11_25);
    assert_eq!(gate.capability(Side::Client), Some(Capability::Completions));
}
