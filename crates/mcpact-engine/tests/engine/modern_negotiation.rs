//! REVISIONS 8.2 and the ladder of 3.4.

use mcpact_engine::classify::{HeaderField, HttpFacts, TransportFacts};
use mcpact_engine::client::{Failure, Phase, ProbeFailure};
use mcpact_engine::refusal::Incompatible;
use mcpact_spec::{Extension, Method, Revision, Side};
use serde_json::{Value, json};

use crate::support::*;

fn everything() -> Value {
    json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    })
}

fn modern_server() -> ServerRig {
    ServerRig::new(modern_only(), everything())
}

fn http(version: &'static str, method: &'static str) -> HttpFacts<'static> {
    HttpFacts {
        version: HeaderField::Once(version),
        method: HeaderField::Once(method),
        ..HttpFacts::BARE_POST
    }
}

/// One cell of the ladder: what is sent, and what comes back.
struct Cell {
    name: &'static str,
    method: &'static str,
    params: Value,
    http: Option<HttpFacts<'static>>,
    code: i64,
    status: u16,
}

fn good(capabilities: Value) -> Value {
    modern_params(capabilities)
}

fn named(key: &str, value: &str) -> Value {
    let mut params = good(json!({}));
    params[key] = json!(value);
    params
}

fn without(key: &str) -> Value {
    let mut params = good(json!({}));
    params["_meta"].as_object_mut().unwrap().remove(key);
    params
}

fn with_meta(key: &str, value: Value) -> Value {
    let mut params = good(json!({}));
    params["_meta"][key] = value;
    params
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Every check of REVISIONS 3.4 in its order, over HTTP and on a stream.
fn ladder() -> Vec<Cell> {
    let ok = || Some(http("2026-07-28", "tools/list"));
    let cell = |name, method, params, http, code, status| Cell {
        name,
        method,
        params,
        http,
        code,
        status,
    };
    vec![
        cell(
            "NM-01 no _meta at all",
            "tools/list",
            json!({}),
            ok(),
            -32602,
            400,
        ),
        cell(
            "NM-02 no version",
            "tools/list",
            without(VERSION),
            ok(),
            -32602,
            400,
        ),
        cell(
            "NM-03 no capabilities",
            "tools/list",
            without(CAPABILITIES),
            ok(),
            -32602,
            400,
        ),
        cell(
            "NM-03 on a stream",
            "tools/list",
            without(CAPABILITIES),
            None,
            -32602,
            400,
        ),
        cell(
            "version is no string",
            "tools/list",
            with_meta(VERSION, json!(1)),
            ok(),
            -32602,
            400,
        ),
        cell(
            "capabilities are a list",
            "tools/list",
            with_meta(CAPABILITIES, json!([])),
            ok(),
            -32602,
            400,
        ),
        cell(
            "header differs although the version is unsupported, too",
            "tools/list",
            json!({"_meta": meta("v999", json!({}))}),
            ok(),
            -32020,
            400,
        ),
        cell(
            "no version header",
            "tools/list",
            good(json!({})),
            Some(HttpFacts {
                method: HeaderField::Once("tools/list"),
                ..HttpFacts::BARE_POST
            }),
            -32020,
            400,
        ),
        cell(
            "version header twice",
            "tools/list",
            good(json!({})),
            Some(HttpFacts {
                version: HeaderField::Repeated,
                ..http("", "tools/list")
            }),
            -32020,
            400,
        ),
        cell(
            "NM-05 unsupported",
            "tools/list",
            json!({"_meta": meta("v999.0.0", json!({}))}),
            Some(http("v999.0.0", "tools/list")),
            -32022,
            400,
        ),
        cell(
            "a legacy version is not served per request",
            "tools/list",
            json!({"_meta": meta("2025-11-25", json!({}))}),
            None,
            -32022,
            400,
        ),
        cell(
            "method header missing",
            "tools/list",
            good(json!({})),
            Some(HttpFacts {
                method: HeaderField::Absent,
                ..http("2026-07-28", "")
            }),
            -32020,
            400,
        ),
        cell(
            "method header differs",
            "tools/list",
            good(json!({})),
            Some(http("2026-07-28", "tools/call")),
            -32020,
            400,
        ),
        cell(
            "values compare with case",
            "tools/list",
            good(json!({})),
            Some(http("2026-07-28", "Tools/List")),
            -32020,
            400,
        ),
        cell(
            "unknown method",
            "x/y",
            good(json!({})),
            Some(http("2026-07-28", "x/y")),
            -32601,
            404,
        ),
        cell(
            "NM-11 initialize",
            "initialize",
            good(json!({})),
            Some(http("2026-07-28", "initialize")),
            -32601,
            404,
        ),
        cell(
            "NM-14 ping",
            "ping",
            good(json!({})),
            Some(http("2026-07-28", "ping")),
            -32601,
            404,
        ),
        cell(
            "NM-14 setLevel",
            "logging/setLevel",
            good(json!({})),
            Some(http("2026-07-28", "logging/setLevel")),
            -32601,
            404,
        ),
        cell(
            "NM-14 subscribe",
            "resources/subscribe",
            named("uri", "a:b"),
            Some(http("2026-07-28", "resources/subscribe")),
            -32601,
            404,
        ),
        cell(
            "NM-14 unsubscribe",
            "resources/unsubscribe",
            named("uri", "a:b"),
            Some(http("2026-07-28", "resources/unsubscribe")),
            -32601,
            404,
        ),
        cell(
            "an embedded question as a request",
            "roots/list",
            good(json!({"roots": {}})),
            Some(http("2026-07-28", "roots/list")),
            -32601,
            404,
        ),
        cell(
            "name header missing",
            "tools/call",
            named("name", "t"),
            Some(http("2026-07-28", "tools/call")),
            -32020,
            400,
        ),
        cell(
            "name header differs",
            "tools/call",
            named("name", "t"),
            Some(HttpFacts {
                name: HeaderField::Once("u"),
                ..http("2026-07-28", "tools/call")
            }),
            -32020,
            400,
        ),
        cell(
            "name header is bad base64",
            "prompts/get",
            named("name", "t"),
            Some(HttpFacts {
                name: HeaderField::Once("=?base64?!?="),
                ..http("2026-07-28", "prompts/get")
            }),
            -32020,
            400,
        ),
        cell(
            "name header of a task differs",
            "tasks/get",
            {
                let mut params = good(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
                params["taskId"] = json!("1");
                params
            },
            Some(HttpFacts {
                name: HeaderField::Once("2"),
                ..http("2026-07-28", "tasks/get")
            }),
            -32020,
            400,
        ),
        cell(
            "unknown log level",
            "tools/list",
            with_meta(LOG_LEVEL, json!("loud")),
            ok(),
            -32602,
            200,
        ),
        cell(
            "log level is no string",
            "tools/list",
            with_meta(LOG_LEVEL, json!(3)),
            None,
            -32602,
            200,
        ),
    ]
}

/// N11, NM-01, NM-02, NM-03, NM-05, NM-11, NM-14: each check refuses with its own code and status.
#[test]
fn every_rung_of_the_ladder_refuses_in_its_own_way() {
    for cell in ladder() {
        let mut server = modern_server();
        let facts = cell
            .http
            .map_or(TransportFacts::Stream, TransportFacts::Http);
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": cell.method, "params": cell.params});
        let out = server.bytes_with(&message.to_string(), facts);
        assert_eq!(out.len(), 1, "{}: {out:?}", cell.name);
        assert_eq!(
            (out[0].code(), out[0].status()),
            (cell.code, cell.status),
            "{}: {out:?}",
            cell.name
        );
        assert_eq!(out[0].reply()["id"], 1, "{}", cell.name);
    }
}

/// N11: a complete request passes every check, encoded names included.
#[test]
fn a_complete_request_passes_every_rung() {
    for (method, key, name, header) in [
        ("tools/call", "name", "plain", "plain"),
        ("tools/call", "name", "naïve", "=?base64?bmHDr3Zl?="),
        ("resources/read", "uri", "file:///a b", "file:///a b"),
        (
            "prompts/get",
            "name",
            "=?base64?literal?=",
            "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
        ),
    ] {
        let mut server = modern_server();
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": named(key, name)});
        let facts = HttpFacts {
            name: HeaderField::Once(header),
            version: HeaderField::Once(" 2026-07-28 "),
            method: HeaderField::Once(method),
            ..HttpFacts::BARE_POST
        };
        let out = server.bytes_with(&message.to_string(), TransportFacts::Http(facts));
        assert_eq!(out, [Out::Serve(method.into())], "{name}");
    }
}

/// NM-04: who the client is is recommended, not required.
#[test]
fn nm_04_client_info_is_optional() {
    let out = modern_server().request(1, "tools/list", good(json!({})));
    assert_eq!(out, [Out::Serve("tools/list".into())]);
}

/// N11, NM-05, NM-10: the error names what is supported, and that is what discover lists.
#[test]
fn nm_05_and_10_the_supported_list_is_the_discovered_one() {
    for policy in [modern_only(), spec_policy()] {
        let mut server = ServerRig::new(policy, everything());
        let refused = server.request(
            1,
            "tools/list",
            json!({"_meta": meta("v999.0.0", json!({}))}),
        );
        let found = server.request(2, "server/discover", good(json!({})));
        assert_eq!(refused[0].code(), -32022);
        assert_eq!(refused[0].error()["data"]["requested"], "v999.0.0");
        assert_eq!(
            refused[0].error()["data"]["supported"],
            found[0].result()["supportedVersions"]
        );
    }
}

/// N13, NM-07: a client that is offered another modern version asks again with it, under a new id.
#[test]
fn nm_07_a_version_error_is_answered_with_a_retry() {
    use mcpact_engine::client::TransportKind;
    use mcpact_engine::client::probe::{Conclusion, Observation, Question, conclude};
    use mcpact_engine::revisions::RevisionSet;
    // There is one modern revision so far; the retry is a conclusion about a question that was
    // asked under another one.
    let question = Question {
        transport: TransportKind::Stream,
        supported: RevisionSet::ALL,
        method: Method::Discover,
        asked: Revision::V2025_11_25,
    };
    let saw = Observation::Error {
        code: -32022,
        supported: vec!["2026-07-28".into(), "2027-01-01".into()],
        http_status: None,
    };
    assert_eq!(
        conclude(&question, &saw),
        Conclusion::Retry(Revision::V2026_07_28)
    );
}

/// N13, NM-08: versions that the client does not speak are an error, not a loop.
#[test]
fn nm_08_a_hopeless_version_error_is_surfaced() {
    for supported in [
        json!(["2027-01-01"]),
        json!(["1.0"]),
        json!([]),
        json!(["2026-07-28"]),
    ] {
        let mut client = ClientRig::new(modern_only(), json!({}));
        let first = client.open().remove(0);
        let out = client.error_to(
            &first,
            -32022,
            json!({"supported": supported, "requested": "x"}),
        );
        assert_eq!(out, [Out::HangUp]);
        assert!(
            matches!(
                client.machine().phase(),
                Phase::Failed(Failure::Probe(ProbeFailure::Incompatible(
                    Incompatible::NoCommonVersion { .. }
                )))
            ),
            "{:?}",
            client.machine().phase()
        );
    }
}

/// N12, NM-09: discover tells everything that a client needs.
#[test]
fn nm_09_discover_is_complete() {
    let out = modern_server().request(1, "server/discover", good(json!({})));
    let result = out[0].result();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["capabilities"], everything());
    assert!(result["ttlMs"].as_u64().is_some());
    assert!(matches!(
        result["cacheScope"].as_str(),
        Some("public" | "private")
    ));
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info, &json!({"name": "srv", "version": "9.9.9"}));
    assert_eq!(result.get("serverInfo"), None, "it is not a body field");
}

/// N12: instructions stand in discover as they stand in a handshake.
#[test]
fn instructions_are_sent_in_both_eras() {
    use mcpact_engine::server::ServerTerms;
    use mcpact_wire::model::implementation::Implementation;
    let set = caps(Side::Server, json!({}));
    let mut terms = ServerTerms::new(Implementation::new("s", "1"), set, spec_policy());
    terms.instructions = Some("be kind".into());
    let mut server = ServerRig::with(terms);
    let found = server.request(1, "server/discover", good(json!({})));
    assert_eq!(found[0].result()["instructions"], "be kind");
    let opened = server.initialize("2025-06-18", json!({}));
    assert_eq!(opened[0].result()["instructions"], "be kind");
}

/// NM-13: a modern-only server names its versions to a client that shakes hands.
#[test]
fn nm_13_a_bare_initialize_gets_the_supported_versions() {
    let out = modern_server().initialize("2025-11-25", json!({}));
    assert_eq!(out[0].error()["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(out[0].error()["data"]["requested"], "2025-11-25");
    assert_eq!(out[0].code(), -32022);
}

/// N32, NM-16: nothing is inferred from an earlier request.
#[test]
fn nm_16_capabilities_are_never_remembered() {
    let mut server = modern_server();
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut params = good(tasks);
    params["taskId"] = json!("t");
    assert_eq!(
        server.request(1, "tasks/get", params),
        [Out::Serve("tasks/get".into())]
    );
    let out = server.request(2, "tasks/get", named("taskId", "t"));
    assert_eq!(out[0].code(), -32021);
}

/// NM-17, NM-18, N28: what a tool needs of the client is asked for as a document.
#[test]
fn nm_17_and_18_a_missing_client_capability_is_named() {
    use mcpact_engine::policy::ClientRequirement;
    for (path, declared, required) in [
        ("sampling", json!({}), json!({"sampling": {}})),
        (
            "elicitation.url",
            json!({"elicitation": {}}),
            json!({"elicitation": {"url": {}}}),
        ),
    ] {
        let mut policy = modern_only();
        policy.client_requirements = vec![ClientRequirement {
            method: "tools/call".into(),
            path: path.into(),
        }];
        let mut server = ServerRig::new(policy, everything());
        let mut params = good(declared);
        params["name"] = json!("t");
        let out = server.request(1, "tools/call", params);
        assert_eq!((out[0].code(), out[0].status()), (-32021, 400));
        assert_eq!(out[0].error()["data"]["requiredCapabilities"], required);
    }
}

/// NM-18: a question in a mode that the client did not declare is not put.
#[test]
fn nm_18_an_undeclared_mode_is_not_asked_for() {
    let pact = pact(
        Revision::V2026_07_28,
        json!({"elicitation": {}}),
        everything(),
    );
    assert!(pact.rule_on_input(Method::ElicitationCreate).is_open());
    let url = pact
        .rule_on_params(Method::ElicitationCreate, Some(r#"{"mode":"url"}"#))
        .unwrap();
    assert_eq!(url.capability.path(), "elicitation.url");
    assert!(
        pact.rule_on_params(Method::ElicitationCreate, Some(r#"{"mode":"form"}"#))
            .is_none()
    );
    assert!(!pact.rule_on_input(Method::SamplingCreateMessage).is_open());
}

/// N29: extensions must be declared by both, every time.
#[test]
fn the_tasks_extension_needs_both_sides() {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let lacking = |client: &Value, server: &Value| {
        pact(Revision::V2026_07_28, client.clone(), server.clone()).lacking(Extension::Tasks)
    };
    assert_eq!(lacking(&tasks, &tasks), None);
    assert_eq!(lacking(&json!({}), &tasks), Some(Side::Client));
    assert_eq!(lacking(&tasks, &json!({})), Some(Side::Server));
    let legacy = pact(Revision::V2025_11_25, tasks.clone(), tasks);
    assert_eq!(
        legacy.lacking(Extension::Tasks),
        Some(Side::Client),
        "not in force under legacy"
    );
}
