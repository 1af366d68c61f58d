//! The documents and the worked example of the second source document.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Capability, Revision, Side};
use serde_json::{Value, json};

use crate::support::*;

fn example_client() -> Value {
    json!({
        "experimental": {"customFeature": true},
        "roots": {"listChanged": true},
        "sampling": {"enabled": true, "rate": 0.1},
    })
}

fn example_server() -> Value {
    json!({
        "experimental": {"betaFeature": true},
        "supportedProtocolVersions": ["2024-11-05"],
        "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "tools": {"listChanged": true},
        "logging": {"levels": ["debug", "info", "warn", "error"]},
        "maxBatchSize": 10,
    })
}

/// N17, N18: the example client is read; its sampling settings are kept and not interpreted
/// (S1.1, S1.3).
#[test]
fn the_example_client_document() {
    let set = caps(Side::Client, example_client());
    assert!(
        set.has("roots.listChanged")
            && set.has("sampling")
            && set.has("experimental.customFeature")
    );
    assert_eq!(parse(set.raw()), example_client());
    assert!(!set.has("sampling.tools"));
}

/// N17, N23: the example server is read whole, vendor extras included (S1.4 to S1.11).
#[test]
fn the_example_server_document() {
    let set = caps(Side::Server, example_server());
    for path in [
        "prompts.listChanged",
        "resources.subscribe",
        "resources.listChanged",
        "tools.listChanged",
        "logging",
    ] {
        assert!(set.has(path), "{path}");
    }
    assert_eq!(set.extras().max_batch_size, Some(10));
    assert_eq!(set.extras().supported_versions.len(), 1);
    assert_eq!(set.extras().log_levels.len(), 4);
}

/// N20: the worked example: shared features need both, the others belong to their side (S1.13).
#[test]
fn the_worked_example() {
    let pact = pact(
        Revision::V2024_11_05,
        json!({"experimental": {"feature1": true}, "roots": {"listChanged": true}}),
        json!({"experimental": {"feature1": true}, "prompts": {"listChanged": true}}),
    );
    let both: Vec<_> = pact.experimental().iter().map(|s| &*s.id).collect();
    assert_eq!(both, ["feature1"]);
    assert!(pact.declares(Capability::RootsListChanged), "the client's");
    assert!(
        pact.declares(Capability::PromptsListChanged),
        "the server's"
    );
    assert_eq!(pact.ignored(), []);
}

/// N19: minimal, full and invalid documents of both sides (S1.23).
#[test]
fn minimal_full_and_invalid_documents() {
    let read = |owner, document: Value| {
        CapabilitySet::parse(owner, Some(&document.to_string()), Reading::Strict).is_ok()
    };
    assert!(read(Side::Client, json!({})));
    assert!(read(Side::Client, example_client()));
    assert!(!read(Side::Client, json!({"roots": "yes"})));
    assert!(!read(
        Side::Client,
        json!({"roots": {"listChanged": "yes"}})
    ));
    assert!(
        read(Side::Server, json!({})),
        "prompts are not required: the set is open"
    );
    assert!(read(Side::Server, example_server()));
    assert!(!read(Side::Server, json!({"maxBatchSize": "not a number"})));
    assert!(!read(
        Side::Server,
        json!({"supportedProtocolVersions": "2024-11-05"})
    ));
}

/// N8: an `initialize` without its version fails with the place of the fault (S1.19).
#[test]
fn an_initialize_without_version_is_invalid() {
    let mut server = ServerRig::new(legacy_only(), json!({}));
    let out = server.request(
        1,
        "initialize",
        json!({"capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}),
    );
    assert_eq!(out[0].code(), -32602);
    assert_eq!(out[0].error()["data"], json!({"path": "protocolVersion"}));
}

/// N27: absent members are simply absent, and defaults are the caller's (S1.15, S1.16).
#[test]
fn absent_members_have_defaults() {
    let set = caps(Side::Server, json!({"tools": {}}));
    assert!(!set.flag_or("tools.listChanged", false));
    assert!(!set.flag_or("prompts.listChanged", false));
    assert_eq!(set.extras().max_batch_size, None);
}
