//! Every scenario of the first source document, on the wire, in all legacy revisions.

use mcpact_engine::capability::State;
use mcpact_engine::policy::OnUndeclared;
use mcpact_spec::{Capability, Side};
use serde_json::{Value, json};

use crate::support::*;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn host_offer() -> Value {
    json!({"roots": {"listChanged": true}, "sampling": {}})
}

fn server_offer() -> Value {
    json!({"tools": {}, "resources": {"subscribe": true, "listChanged": true}, "prompts": {}})
}

/// N20, L9: the whole exchange of the document, message by message (S0.4 to S0.7).
#[test]
fn the_flow_of_the_document() {
    for version in LEGACY {
        let mut server = ServerRig::new(legacy_only(), server_offer());
        let out = server.initialize(version, host_offer());
        let result = out[0].result();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["capabilities"], server_offer());
        assert_eq!(
            result["serverInfo"],
            json!({"name": "srv", "version": "9.9.9"})
        );
        let out = server.notification("notifications/initialized", json!({}));
        assert_eq!(out, [Out::Observe("notifications/initialized".into())]);
        let pact = server.machine().phase().pact().unwrap();
        assert!(pact.declares(Capability::RootsListChanged) && pact.declares(Capability::Sampling));
    }
}

/// N18: a host that has never heard of prompts is not harmed by them (S0.3).
#[test]
fn an_unknown_capability_of_a_newer_server_is_harmless() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready(
        "2024-11-05",
        json!({"tools": {}, "resources": {}, "holograms": {"depth": 3}}),
    );
    assert!(matches!(
        &client.ask(1, "tools/list", json!({}))[..],
        [Out::Write(_)]
    ));
    let pact = client.machine().pact().unwrap();
    assert_eq!(
        pact.party(Side::Server)
            .capabilities
            .unknown()
            .collect::<Vec<_>>(),
        ["holograms"]
    );
}

/// N16: an empty object is a capability without sub-features (S0.15).
#[test]
fn an_empty_object_means_present() {
    let set = caps(Side::Server, json!({"tools": {}, "logging": {}}));
    assert_eq!(set.state("tools"), State::Present);
    assert!(!set.has("tools.listChanged"));
}

/// L11: the host never sends `resources/list` to a server without resources (S0.16, S0.17).
#[test]
fn scenario_1_a_server_without_resources() {
    for version in LEGACY {
        let mut client = ClientRig::new(legacy_only(), json!({}));
        client.ready(version, json!({"tools": {}}));
        let out = client.ask(1, "resources/list", json!({}));
        assert!(
            matches!(&out[..], [Out::Withheld(_)]),
            "{version}: not a byte: {out:?}"
        );
    }
}

/// L14: a host that samples may be asked to, even with a boolean where a word belongs (S0.18).
#[test]
fn scenario_2_a_host_that_samples() {
    let params = json!({"messages": [], "maxTokens": 1000, "includeContext": true});
    for version in LEGACY {
        let mut server = ServerRig::new(legacy_only(), json!({}));
        server.ready(version, json!({"sampling": {}}));
        let out = server.ask(1, "sampling/createMessage", params.clone());
        assert_eq!(out[0].reply()["params"], params, "{version}");
        let mut client = ClientRig::new(legacy_only(), json!({"sampling": {}}));
        client.ready(version, json!({}));
        let got = client.message(out[0].reply().clone());
        assert_eq!(got, [Out::Serve("sampling/createMessage".into())]);
    }
}

/// L13, L15: subscribing, then both kinds of notification, each behind its own flag (S0.19).
#[test]
fn scenario_3_a_changing_list_of_resources() {
    for version in LEGACY {
        let mut client = ClientRig::new(legacy_only(), json!({}));
        client.ready(version, server_offer());
        let ask = client
            .ask(1, "resources/subscribe", json!({"uri": "config://system"}))
            .remove(0);
        let mut server = ServerRig::new(legacy_only(), server_offer());
        server.ready(version, json!({}));
        assert_eq!(
            server.message(ask.reply().clone()),
            [Out::Serve("resources/subscribe".into())]
        );
        for method in [
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        ] {
            let note = server
                .notify(method, json!({"uri": "config://system"}))
                .remove(0);
            assert_eq!(
                client.message(note.reply().clone()),
                [Out::Observe(method.into())]
            );
        }
    }
}

/// L12: a method behind an undeclared capability is not found (S0.20).
#[test]
fn an_undeclared_method_is_not_found() {
    for version in LEGACY {
        let mut server = ServerRig::new(legacy_only(), json!({"tools": {}}));
        server.ready(version, json!({}));
        let out = server.request(1, "prompts/list", json!({}));
        assert_eq!(
            (out[0].code(), &out[0].error()["message"]),
            (-32601, &json!("Method not found"))
        );
    }
}

/// L16: an undeclared notification is ignored, or reported where that is wanted (S0.21).
#[test]
fn an_undeclared_notification_is_ignored_or_reported() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"});
    for version in LEGACY {
        for (policy, effects) in [(OnUndeclared::Drop, 1), (OnUndeclared::Error, 2)] {
            let mut own = legacy_only();
            own.undeclared = policy;
            let mut client = ClientRig::new(own, json!({}));
            client.ready(version, json!({"resources": {}}));
            assert_eq!(client.message(note.clone()).len(), effects, "{version}");
        }
    }
}

/// L21: without prompts the host builds its own (S0.23, S0.24).
#[test]
fn a_host_degrades_gracefully() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2024-11-05", json!({"tools": {}}));
    let pact = client.machine().pact().unwrap();
    let prompt = pact.when_supported(Side::Server, "prompts", || "theirs", |_| "our own");
    assert_eq!(prompt, "our own");
    assert!(!pact.has(Side::Server, "resources.subscribe"));
}

/// L13: `setLevel` is a request, and harmless as the notification that the document calls it (S0.14).
#[test]
fn set_level_is_a_request_and_harmless_as_a_notification() {
    let mut server = ServerRig::new(legacy_only(), json!({"logging": {}}));
    server.ready("2024-11-05", json!({}));
    let level = json!({"level": "error"});
    assert_eq!(
        server.request(1, "logging/setLevel", level.clone()),
        [Out::Serve("logging/setLevel".into())]
    );
    assert_eq!(
        server.notification("logging/setLevel", level),
        [Out::Observe("logging/setLevel".into())]
    );
}
