//! The 21 tests that the fifth source document names, under the same names and against the real
//! engine, in its profile.

use mcpact_engine::capability::{CapabilitySet, State};
use mcpact_engine::gate::require_of_client;
use mcpact_engine::lint;
use mcpact_engine::policy::{ErrorDialect, Policy, Profile, Reading};
use mcpact_engine::refusal::Dialect;
use mcpact_engine::revisions::RevisionId;
use mcpact_engine::version;
use mcpact_spec::{Capability, Method, Revision, Side};
use serde_json::{Value, json};

use crate::support::*;

fn policy() -> Policy {
    Profile::Erlmcp.policy()
}

fn offer() -> Value {
    json!({
        "resources": {"subscribe": true, "listChanged": true},
        "tools": {},
        "prompts": {"listChanged": true},
        "logging": {},
    })
}

/// The client of the document declares what its access table asks for.
fn client() -> Value {
    json!({"roots": {}, "sampling": {}, "experimental": {"custom_feature": true},
        "resources": {}, "tools": {}, "prompts": {}})
}

fn server() -> ServerRig {
    ServerRig::new(policy(), offer())
}

fn validate(text: &str) -> Result<(), String> {
    let dialect = Dialect {
        revision: Revision::V2025_06_18,
        errors: ErrorDialect::Erlmcp,
    };
    version::validate(&policy().version, &RevisionId::parse(text))
        .map_err(|refusal| refusal.on_wire(dialect).message)
}

/// N25
#[test]
fn test_initialize_response_includes_capabilities() {
    let out = server().initialize("2025-06-18", client());
    assert_eq!(out[0].result()["capabilities"], offer());
}

/// N10
#[test]
fn test_initialize_response_protocol_version() {
    let out = server().initialize("2025-06-18", client());
    assert_eq!(out[0].result()["protocolVersion"], "2025-06-18");
    let older = server().initialize("2025-03-26", client());
    assert_eq!(
        older[0].result()["protocolVersion"],
        "2025-03-26",
        "not hard-coded"
    );
}

/// N31
#[test]
fn test_server_info_in_response() {
    let out = server().initialize("2025-06-18", client());
    assert_eq!(
        out[0].result()["serverInfo"],
        json!({"name": "srv", "version": "9.9.9"})
    );
}

/// N26, N17
#[test]
fn test_extract_client_capabilities() {
    let mut rig = server();
    rig.initialize("2025-06-18", client());
    let pact = rig.machine().phase().pact().unwrap();
    let extracted = &pact.party(Side::Client).capabilities;
    assert!(extracted.has("roots") && extracted.has("sampling"));
    assert_eq!(
        extracted.experimental().collect::<Vec<_>>(),
        [("custom_feature", "true")],
        "verbatim"
    );
}

/// N16
#[test]
fn test_extract_roots_capability() {
    let set = caps(Side::Client, json!({"roots": {}}));
    assert_eq!(
        set.state("roots"),
        State::Present,
        "an empty object is enabled"
    );
    assert!(!set.has("roots.listChanged"));
    assert!(caps(Side::Client, json!({"roots": {"listChanged": true}})).has("roots.listChanged"));
}

/// N16
#[test]
fn test_extract_sampling_capability() {
    assert!(caps(Side::Client, json!({"sampling": {}})).has("sampling"));
    assert!(!caps(Side::Client, json!({"sampling": null})).has("sampling"));
}

/// L28, N16
#[test]
fn test_extract_empty_capabilities() {
    let set = caps(Side::Client, json!({}));
    assert_eq!(set.declared().iter().count(), 0);
    assert!(!set.has("roots"), "absent is not enabled");
    server().ready("2025-06-18", json!({}));
}

/// N6
#[test]
fn test_validate_matching_protocol_version() {
    assert_eq!(validate("2025-06-18"), Ok(()));
}

/// N8
#[test]
fn test_validate_default_protocol_version() {
    let mut params = initialize_params("", client());
    params.as_object_mut().unwrap().remove("protocolVersion");
    let out = server().request(1, "initialize", params);
    assert_eq!(out[0].result()["protocolVersion"], "2025-06-18");
}

/// N6, L7
#[test]
fn test_reject_incompatible_protocol_version() {
    assert_eq!(
        validate("2099-01-01"),
        Err("Protocol version not yet supported".into())
    );
    assert_eq!(
        validate("2024-06-18"),
        Err("Protocol version too old".into())
    );
    let mut rig = server();
    let out = rig.initialize("2099-01-01", client());
    assert_eq!(
        (out[0].code(), &out[0].error()["message"]),
        (-32602, &json!("Protocol version not yet supported"))
    );
    rig.ready("2025-06-18", client());
}

/// N7
#[test]
fn test_validate_major_version_only() {
    for bad in ["2025", "1.0", "2025-06", "v2025-06-18", ""] {
        assert_eq!(
            validate(bad),
            Err("Invalid protocol version format".into()),
            "{bad}"
        );
    }
}

fn blocked(method: &str, text: &str) {
    let mut rig = server();
    let out = rig.request(1, method, json!({}));
    assert_eq!(
        (out[0].code(), out[0].error()["message"].as_str()),
        (-32005, Some(text))
    );
}

/// L4
#[test]
fn test_block_resources_before_initialization() {
    blocked(
        "resources/list",
        "Cannot list resources before server initialization",
    );
}

/// L4
#[test]
fn test_block_tools_before_initialization() {
    blocked(
        "tools/list",
        "Cannot list tools before server initialization",
    );
    blocked(
        "tools/call",
        "Cannot call tools before server initialization",
    );
}

/// L4
#[test]
fn test_block_prompts_before_initialization() {
    blocked(
        "prompts/list",
        "Cannot list prompts before server initialization",
    );
}

/// L5, L6
#[test]
fn test_allow_resources_after_initialization() {
    let mut rig = server();
    rig.ready("2025-06-18", client());
    assert_eq!(
        rig.request(1, "resources/list", json!({})),
        [Out::Serve("resources/list".into())]
    );
    let again = rig.initialize("2025-06-18", client());
    assert_eq!(again[0].code(), -32005);
    assert_eq!(
        again[0].error()["message"],
        "Server already initialized. Initialize must be called only once."
    );
}

/// L14
#[test]
fn test_check_client_roots_capability() {
    let mut with = server();
    with.ready("2025-06-18", client());
    assert!(matches!(
        &with.ask(1, "roots/list", json!({}))[..],
        [Out::Write(_)]
    ));
    let mut without = server();
    without.ready("2025-06-18", json!({}));
    assert!(matches!(
        &without.ask(1, "roots/list", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

/// L14, L17
#[test]
fn test_check_client_sampling_capability() {
    let check = |client: Value, method: &str| {
        let pact = pact(Revision::V2025_06_18, client, offer());
        let dialect = Dialect {
            revision: Revision::V2025_06_18,
            errors: ErrorDialect::Erlmcp,
        };
        require_of_client(&pact, &policy(), method).map_err(|r| r.on_wire(dialect).message)
    };
    assert_eq!(check(client(), "sampling/createMessage"), Ok(()));
    assert_eq!(
        check(json!({}), "sampling/createMessage"),
        Err("Client does not support sampling capability".into())
    );
    for (method, noun) in [
        ("resources/list", "resources"),
        ("resources/read", "resources"),
        ("resources/subscribe", "resources"),
        ("resources/unsubscribe", "resources"),
        ("tools/list", "tools"),
        ("tools/call", "tools"),
        ("prompts/list", "prompts"),
        ("prompts/get", "prompts"),
    ] {
        assert_eq!(check(client(), method), Ok(()), "{method}");
        assert_eq!(
            check(json!({}), method),
            Err(format!("Client does not support {noun} capability"))
        );
    }
    let mut rig = server();
    rig.ready("2025-06-18", json!({}));
    assert_eq!(
        rig.request(1, "resources/list", json!({}))[0].error()["message"],
        "Client does not support resources capability"
    );
}

/// N22
#[test]
fn test_check_experimental_capability() {
    let set = caps(Side::Client, client());
    assert!(set.has("experimental.custom_feature"));
    assert!(!set.has("experimental.other"));
}

fn with_tasks() -> CapabilitySet {
    let handlers = [
        Method::ToolsList,
        Method::ToolsCall,
        Method::TasksGet,
        Method::TasksResult,
        Method::TasksList,
        Method::TasksCancel,
    ];
    let flags = [Capability::ServerTasksToolsCall];
    lint::declaration(Side::Server, &handlers, &flags, Revision::V2025_11_25)
}

fn task_server() -> ServerRig {
    ServerRig::new(legacy_only(), parse(with_tasks().raw()))
}

/// N25, N24
#[test]
fn test_include_task_capability_in_server_response() {
    let out = task_server().initialize("2025-11-25", json!({}));
    assert!(out[0].result()["capabilities"]["tasks"].is_object());
    let older = task_server().initialize("2025-06-18", json!({}));
    assert_eq!(
        older[0].result()["capabilities"].get("tasks"),
        None,
        "2025-06-18 has no tasks"
    );
}

/// N17
#[test]
fn test_task_capability_features() {
    let out = task_server().initialize("2025-11-25", json!({}));
    assert_eq!(
        out[0].result()["capabilities"]["tasks"],
        json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    );
}

/// L13
#[test]
fn test_task_create_allowed_with_capability() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2025-11-25", parse(with_tasks().raw()));
    let out = client.ask(1, "tools/call", json!({"name": "t", "task": {"ttl": 1000}}));
    assert!(matches!(&out[..], [Out::Write(_)]), "{out:?}");
    let mut rig = task_server();
    rig.ready("2025-11-25", json!({}));
    assert_eq!(
        rig.message(out[0].reply().clone()),
        [Out::Serve("tools/call".into())]
    );
    assert_eq!(
        rig.request(2, "tasks/list", json!({})),
        [Out::Serve("tasks/list".into())]
    );
}

/// N19: a document that is no object does not stop a lenient server.
#[test]
fn a_malformed_document_does_not_stop_it() {
    assert_eq!(policy().reading, Reading::Lenient);
    let out = server().initialize("2025-06-18", json!([]));
    assert!(out[0].result().is_object());
}
