//! REVISIONS 8.6 and requirements L11 to L22: who may say what.

use mcpact_engine::classify::{CarrierFacts, HttpFacts, SessionFact};
use mcpact_engine::client::{self, Input};
use mcpact_engine::policy::{ClientRequirement, Enforcement, OnUndeclared, OnUnknown};
use mcpact_engine::reason::Reason;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_engine::server::{self, Scope};
use mcpact_spec::{Capability, Kind, Method, Revision, Side};
use mcpact_wire::id::Id;
use serde_json::{Value, json};

use crate::support::*;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn client_at(version: &str, own: Value, server: Value) -> ClientRig {
    let mut client = ClientRig::new(legacy_only(), own);
    client.ready(version, server);
    client
}

fn server_at(version: &str, own: Value, client: Value) -> ServerRig {
    let mut server = ServerRig::new(legacy_only(), own);
    server.ready(version, client);
    server
}

fn server_asks(client: &mut ClientRig, method: &str, params: Value) -> Vec<Out> {
    client.message(json!({"jsonrpc": "2.0", "id": "s1", "method": method, "params": params}))
}

/// L11: what the server lacks is not written, and the error names capability and method.
#[test]
fn the_outgoing_gate_writes_nothing() {
    for version in LEGACY {
        let mut client = client_at(version, json!({}), json!({"tools": {}}));
        let out = client.ask(1, "resources/list", json!({}));
        let [Out::Withheld(text)] = &out[..] else {
            panic!("{out:?}")
        };
        assert_eq!(
            text,
            "`resources/list` was not sent: the server did not declare `resources`"
        );
        assert!(matches!(
            &client.ask(2, "tools/list", json!({}))[..],
            [Out::Write(_)]
        ));
    }
    let mut modern = ClientRig::new(modern_only(), json!({}));
    modern.ready_modern(json!({"tools": {}}));
    assert!(matches!(
        &modern.ask(1, "prompts/list", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

/// L12: every feature request behind an undeclared capability is `-32601`, in both eras.
#[test]
fn the_incoming_gate_refuses_what_was_not_declared() {
    for &method in Method::ALL {
        let gated = method.gate(Revision::V2025_06_18).capability(Side::Client);
        let is_request = method
            .role(Revision::V2025_06_18)
            .allows(Side::Client, Kind::Request);
        let (Some(capability), true) = (gated, is_request) else {
            continue;
        };
        let mut server = server_at("2025-06-18", json!({}), json!({}));
        let out = server.request(1, method.as_str(), json!({}));
        assert_eq!(out[0].code(), -32601, "{method}");
        assert_eq!(out[0].error()["message"], "Method not found");
        let reason = out[0].error()["data"]["reason"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(reason, format!("the server did not declare `{capability}`"));
    }
    let mut modern = ServerRig::new(modern_only(), json!({}));
    let out = modern.request(1, "tools/list", modern_params(json!({})));
    assert_eq!((out[0].code(), out[0].status()), (-32601, 404));
}

/// L13: subscribing needs the flag, not only `resources`.
#[test]
fn subscribing_needs_its_own_flag() {
    let mut server = server_at("2025-11-25", json!({"resources": {}}), json!({}));
    assert_eq!(
        server.request(1, "resources/list", json!({})),
        [Out::Serve("resources/list".into())]
    );
    assert_eq!(
        server.request(2, "resources/subscribe", json!({"uri": "a:b"}))[0].code(),
        -32601
    );
    let mut client = client_at(
        "2025-11-25",
        json!({}),
        json!({"resources": {"subscribe": false}}),
    );
    assert!(matches!(
        &client.ask(1, "resources/subscribe", json!({"uri": "a:b"}))[..],
        [Out::Withheld(_)]
    ));
}

/// L13: tasks have a flag for each method.
#[test]
fn task_methods_have_their_own_flags() {
    let mut server = server_at("2025-11-25", json!({"tasks": {"list": {}}}), json!({}));
    assert_eq!(
        server.request(1, "tasks/get", json!({"taskId": "t"})),
        [Out::Serve("tasks/get".into())]
    );
    assert_eq!(
        server.request(2, "tasks/list", json!({})),
        [Out::Serve("tasks/list".into())]
    );
    assert_eq!(
        server.request(3, "tasks/cancel", json!({"taskId": "t"}))[0].code(),
        -32601
    );
}

/// L13: tools in sampling are refused by a client that did not declare them, and not sent to it.
#[test]
fn sampling_with_tools_needs_its_flag() {
    let params = json!({"messages": [], "maxTokens": 1, "tools": []});
    let mut client = client_at("2025-11-25", json!({"sampling": {}}), json!({}));
    let out = server_asks(&mut client, "sampling/createMessage", params.clone());
    assert_eq!(out[0].code(), -32602);
    assert_eq!(
        out[0].error()["data"]["requiredCapabilities"],
        json!({"sampling": {"tools": {}}})
    );
    let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {}}));
    assert!(matches!(
        &server.ask(1, "sampling/createMessage", params.clone())[..],
        [Out::Withheld(_)]
    ));
    let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {"tools": {}}}));
    assert!(matches!(
        &server.ask(1, "sampling/createMessage", params)[..],
        [Out::Write(_)]
    ));
}

/// L13: context of other servers is not asked for without its flag; a client that gets it anyway may
/// ignore it.
#[test]
fn include_context_needs_its_flag() {
    for (value, needs) in [("none", false), ("thisServer", true), ("allServers", true)] {
        let params = json!({"messages": [], "maxTokens": 1, "includeContext": value});
        let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {}}));
        let out = server.ask(1, "sampling/createMessage", params.clone());
        assert_eq!(matches!(&out[..], [Out::Withheld(_)]), needs, "{value}");
        let mut client = client_at("2025-11-25", json!({"sampling": {}}), json!({}));
        let out = server_asks(&mut client, "sampling/createMessage", params);
        assert_eq!(out, [Out::Serve("sampling/createMessage".into())]);
    }
    let mut older = server_at("2025-06-18", json!({}), json!({"sampling": {}}));
    let params = json!({"messages": [], "maxTokens": 1, "includeContext": "allServers"});
    assert!(
        matches!(
            &older.ask(1, "sampling/createMessage", params)[..],
            [Out::Write(_)]
        ),
        "ungated before 2025-11-25"
    );
}

/// L14: sampling, elicitation and roots only if the client declared them.
#[test]
fn the_server_asks_only_what_the_client_declared() {
    for version in LEGACY {
        for (method, capability) in [
            ("sampling/createMessage", "sampling"),
            ("roots/list", "roots"),
            ("elicitation/create", "elicitation"),
        ] {
            let mut without = server_at(version, json!({}), json!({}));
            let out = without.ask(1, method, json!({}));
            assert!(matches!(&out[..], [Out::Withheld(_)]), "{version} {method}");
            let mut with = server_at(version, json!({}), json!({capability: {}}));
            let out = with.ask(1, method, json!({}));
            let exists = capability != "elicitation" || version >= "2025-06-18";
            assert_eq!(
                matches!(&out[..], [Out::Write(_)]),
                exists,
                "{version} {method}"
            );
        }
    }
}

/// L14, GA-01: a client without roots answers `-32601`.
#[test]
fn ga_01_a_client_without_roots_says_so() {
    for version in LEGACY {
        let mut client = client_at(version, json!({}), json!({}));
        assert_eq!(
            server_asks(&mut client, "roots/list", json!({}))[0].code(),
            -32601,
            "{version}"
        );
    }
}

/// L13, GA-02: a mode that was not declared is `-32602`.
#[test]
fn ga_02_an_undeclared_elicitation_mode_is_refused() {
    let url =
        json!({"mode": "url", "url": "https://x.example", "elicitationId": "e", "message": "m"});
    let form = json!({"message": "m", "requestedSchema": {}});
    let mut forms = client_at(
        "2025-11-25",
        json!({"elicitation": {"form": {}}}),
        json!({}),
    );
    assert_eq!(
        server_asks(&mut forms, "elicitation/create", url.clone())[0].code(),
        -32602
    );
    let mut empty = client_at("2025-11-25", json!({"elicitation": {}}), json!({}));
    assert_eq!(
        server_asks(&mut empty, "elicitation/create", form.clone()),
        [Out::Serve("elicitation/create".into())]
    );
    let mut urls = client_at("2025-11-25", json!({"elicitation": {"url": {}}}), json!({}));
    assert_eq!(
        server_asks(&mut urls, "elicitation/create", form)[0].code(),
        -32602
    );
    assert_eq!(
        server_asks(&mut urls, "elicitation/create", url),
        [Out::Serve("elicitation/create".into())]
    );
}

/// L13, GA-04: from 2025-03-26 on completion has a capability of its own.
#[test]
fn ga_04_completion_needs_its_capability() {
    for version in &LEGACY[1..] {
        let mut server = server_at(version, json!({"prompts": {}, "resources": {}}), json!({}));
        assert_eq!(
            server.request(1, "completion/complete", json!({}))[0].code(),
            -32601
        );
    }
}

/// L13, GA-05: in 2024-11-05 there is no such capability; prompts or resources are enough.
#[test]
fn ga_05_completion_is_free_in_2024_11_05() {
    for declared in [json!({"prompts": {}}), json!({"resources": {}})] {
        let mut client = client_at("2024-11-05", json!({}), declared);
        let ask = client.ask(1, "completion/complete", json!({})).remove(0);
        let out = client.error_to(&ask, -32601, json!(null));
        assert!(
            matches!(&out[..], [Out::Settled(_, Ended::Error(_))]),
            "tolerated: {out:?}"
        );
    }
    let mut none = client_at("2024-11-05", json!({}), json!({"tools": {}}));
    assert!(matches!(
        &none.ask(1, "completion/complete", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

fn modern_with_logging() -> ServerRig {
    ServerRig::new(modern_only(), json!({"tools": {}, "logging": {}}))
}

fn with_level(level: Option<&str>) -> Value {
    let mut params = modern_params(json!({}));
    if let Some(level) = level {
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    params["name"] = json!("t");
    params
}

fn log(server: &mut ServerRig, id: i64, level: &str) -> Vec<Out> {
    let scope = Scope::Request(Id::number(id));
    server.notify_in(
        scope,
        "notifications/message",
        json!({"level": level, "data": 1}),
    )
}

/// L22, GA-06: without a level in the request there is silence.
#[test]
fn ga_06_no_level_no_messages() {
    let mut server = modern_with_logging();
    server.request(1, "tools/call", with_level(None));
    assert!(matches!(
        &log(&mut server, 1, "emergency")[..],
        [Out::Withheld(_)]
    ));
    let outside = server.notify(
        "notifications/message",
        json!({"level": "error", "data": 1}),
    );
    assert!(
        matches!(&outside[..], [Out::Withheld(_)]),
        "never outside of a request"
    );
}

/// L22, GA-07: only what is at least as severe as asked for.
#[test]
fn ga_07_only_messages_of_the_wanted_level() {
    let mut server = modern_with_logging();
    server.request(1, "tools/call", with_level(Some("warning")));
    assert!(matches!(
        &log(&mut server, 1, "info")[..],
        [Out::Withheld(_)]
    ));
    assert!(matches!(
        &log(&mut server, 1, "warning")[..],
        [Out::Write(_)]
    ));
    assert!(matches!(&log(&mut server, 1, "error")[..], [Out::Write(_)]));
}

/// L22: on a legacy session the level is the session's.
#[test]
fn a_legacy_level_holds_for_the_session() {
    let mut server = server_at("2025-11-25", json!({"logging": {}}), json!({}));
    let message = |level: &str| json!({"level": level, "data": 1});
    assert!(matches!(
        &server.notify("notifications/message", message("debug"))[..],
        [Out::Write(_)]
    ));
    server.request(1, "logging/setLevel", json!({"level": "error"}));
    assert!(matches!(
        &server.notify("notifications/message", message("warning"))[..],
        [Out::Withheld(_)]
    ));
    assert!(matches!(
        &server.notify("notifications/message", message("alert"))[..],
        [Out::Write(_)]
    ));
}

/// L22: updates of a resource go only to a client that subscribed.
#[test]
fn updates_go_only_to_subscribers() {
    let mut server = server_at(
        "2025-11-25",
        json!({"resources": {"subscribe": true}}),
        json!({}),
    );
    let updated = |server: &mut ServerRig| {
        server.notify("notifications/resources/updated", json!({"uri": "a:b"}))
    };
    assert!(matches!(&updated(&mut server)[..], [Out::Withheld(_)]));
    server.request(1, "resources/subscribe", json!({"uri": "a:b"}));
    assert!(matches!(&updated(&mut server)[..], [Out::Write(_)]));
    let other = server.notify("notifications/resources/updated", json!({"uri": "a:c"}));
    assert!(matches!(&other[..], [Out::Withheld(_)]), "another resource");
    server.request(2, "resources/unsubscribe", json!({"uri": "a:b"}));
    assert!(
        matches!(&updated(&mut server)[..], [Out::Withheld(_)]),
        "no more"
    );
}

/// L22, GA-10: what the server cannot do is left out of the acknowledgement; the stream opens.
#[test]
fn ga_10_the_acknowledgement_tells_what_is_granted() {
    let mut server = ServerRig::new(
        modern_only(),
        json!({"tools": {"listChanged": true}, "resources": {}}),
    );
    let mut params = modern_params(json!({}));
    params["notifications"] = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a:b"]});
    let out = server.message(
        json!({"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": params}),
    );
    assert_eq!(
        out[0],
        Out::Write(json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {"io.modelcontextprotocol/subscriptionId": "sub"},
                "notifications": {"toolsListChanged": true},
            },
        }))
    );
    assert_eq!(out[1], Out::Serve("subscriptions/listen".into()));
    let scope = || Scope::Request(Id::text("sub"));
    let changed = server.notify_in(scope(), "notifications/tools/list_changed", json!({}));
    assert_eq!(
        changed[0].reply()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "sub"
    );
    for method in [
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
        "notifications/message",
    ] {
        let out = server.notify_in(scope(), method, json!({}));
        assert!(matches!(&out[..], [Out::Withheld(_)]), "{method}");
    }
    let unscoped = server.notify("notifications/tools/list_changed", json!({}));
    assert!(
        matches!(&unscoped[..], [Out::Withheld(_)]),
        "only on the stream that asked"
    );
}

/// GA-10: the subscription id keeps the JSON type of the request's id.
#[test]
fn a_subscription_id_keeps_its_type() {
    let mut server = ServerRig::new(modern_only(), json!({"tools": {"listChanged": true}}));
    let mut params = modern_params(json!({}));
    params["notifications"] = json!({"toolsListChanged": true});
    let out = server.request(7, "subscriptions/listen", params);
    let id = &out[0].reply()["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, &json!(7));
    assert_eq!(ListenFilter::parse(None), None);
}

/// GA-11: only three methods may be answered with a question.
#[test]
fn ga_11_only_three_methods_may_ask_for_input() {
    let asking: Vec<_> = Method::ALL
        .iter()
        .filter(|m| m.may_ask_for_input())
        .collect();
    assert_eq!(
        asking,
        [
            &Method::ToolsCall,
            &Method::PromptsGet,
            &Method::ResourcesRead
        ]
    );
}

/// GA-12: a client that does not declare the tasks extension is told to.
#[test]
fn ga_12_tasks_need_the_extension_on_every_request() {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut server = ServerRig::new(modern_only(), extension.clone());
    let mut params = modern_params(json!({}));
    params["taskId"] = json!("t");
    let out = server.request(1, "tasks/get", params);
    assert_eq!((out[0].code(), out[0].status()), (-32021, 400));
    assert_eq!(out[0].error()["data"]["requiredCapabilities"], extension);
    let mut without = ServerRig::new(modern_only(), json!({}));
    let mut params = modern_params(extension);
    params["taskId"] = json!("t");
    assert_eq!(
        without.request(1, "tasks/get", params)[0].code(),
        -32601,
        "the server lacks it"
    );
}

/// L13, GA-14, GA-15: a `task` that cannot be honoured is ignored by the receiver and never sent.
#[test]
fn ga_14_and_15_an_unsupported_task_is_ignored() {
    let params = json!({"name": "t", "task": {"ttl": 1}});
    let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
    assert_eq!(
        server.request(1, "tools/call", params.clone()),
        [Out::Serve("tools/call".into())]
    );
    let mut client = client_at("2025-11-25", json!({}), json!({"tools": {}}));
    assert!(matches!(
        &client.ask(1, "tools/call", params.clone())[..],
        [Out::Withheld(_)]
    ));
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let mut client = client_at("2025-11-25", json!({}), able);
    assert!(matches!(
        &client.ask(1, "tools/call", params)[..],
        [Out::Write(_)]
    ));
    let mut modern = ServerRig::new(modern_only(), json!({"tools": {}}));
    let mut params = modern_params(json!({}));
    params["name"] = json!("t");
    params["task"] = json!({"ttl": 1});
    assert_eq!(
        modern.request(1, "tools/call", params),
        [Out::Serve("tools/call".into())]
    );
}

/// L15: a notification goes out only if its own side declared the flag.
#[test]
fn the_notification_gate_asks_our_own_declaration() {
    for (method, declared) in [
        (
            "notifications/tools/list_changed",
            json!({"tools": {"listChanged": true}}),
        ),
        (
            "notifications/prompts/list_changed",
            json!({"prompts": {"listChanged": true}}),
        ),
        (
            "notifications/resources/list_changed",
            json!({"resources": {"listChanged": true}}),
        ),
        ("notifications/message", json!({"logging": {}})),
    ] {
        let mut silent = server_at(
            "2025-11-25",
            json!({"tools": {}, "prompts": {}, "resources": {}}),
            json!({}),
        );
        assert!(
            matches!(&silent.notify(method, json!({}))[..], [Out::Withheld(_)]),
            "{method}"
        );
        let mut open = server_at("2025-11-25", declared, json!({}));
        assert!(
            matches!(&open.notify(method, json!({}))[..], [Out::Write(_)]),
            "{method}"
        );
    }
    let roots = "notifications/roots/list_changed";
    let mut silent = client_at("2025-11-25", json!({"roots": {}}), json!({}));
    assert!(matches!(
        &silent.notify(roots, json!({}))[..],
        [Out::Withheld(_)]
    ));
    let mut open = client_at(
        "2025-11-25",
        json!({"roots": {"listChanged": true}}),
        json!({}),
    );
    assert!(matches!(
        &open.notify(roots, json!({}))[..],
        [Out::Write(_)]
    ));
}

/// L16: what comes undeclared is dropped, told, or ends the connection, as the policy says.
#[test]
fn an_undeclared_notification_meets_the_policy() {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"});
    for (policy, reports, hangs_up) in [
        (OnUndeclared::Drop, false, false),
        (OnUndeclared::Warn, true, false),
        (OnUndeclared::Error, true, false),
        (OnUndeclared::Disconnect, true, true),
    ] {
        let mut own = legacy_only();
        own.undeclared = policy;
        let mut client = ClientRig::new(own, json!({}));
        client.ready("2025-11-25", json!({"resources": {}}));
        let out = client.message(changed.clone());
        assert!(matches!(&out[0], Out::Dropped(_)));
        assert_eq!(
            out.iter().any(|o| matches!(o, Out::Report(_))),
            reports,
            "{policy:?}"
        );
        assert_eq!(out.contains(&Out::HangUp), hangs_up, "{policy:?}");
        let works = !matches!(
            &client.ask(1, "resources/list", json!({}))[..],
            [Out::Withheld(_)]
        );
        assert_eq!(works, !hangs_up);
    }
    let mut own = legacy_only();
    own.undeclared = OnUndeclared::Disconnect;
    let mut server = ServerRig::new(own, json!({}));
    server.ready("2025-11-25", json!({}));
    let out = server.notification("notifications/roots/list_changed", json!({}));
    assert!(out.contains(&Out::HangUp));
}

/// L17: a server may ask more of its clients; by default it asks nothing.
#[test]
fn a_server_may_require_a_client_capability() {
    let mut policy = legacy_only();
    assert!(policy.client_requirements.is_empty());
    policy.client_requirements = vec![ClientRequirement {
        method: "tools/call".into(),
        path: "sampling".into(),
    }];
    let mut server = ServerRig::new(policy.clone(), json!({"tools": {}}));
    server.ready("2025-11-25", json!({}));
    let out = server.request(1, "tools/call", json!({"name": "t"}));
    assert_eq!(out[0].code(), -32602);
    assert_eq!(
        out[0].error()["message"],
        "Client does not support sampling capability"
    );
    assert_eq!(
        server.request(2, "tools/list", json!({})),
        [Out::Serve("tools/list".into())]
    );
    let mut server = ServerRig::new(policy, json!({"tools": {}}));
    server.ready("2025-11-25", json!({"sampling": {}}));
    assert_eq!(
        server.request(1, "tools/call", json!({"name": "t"})),
        [Out::Serve("tools/call".into())]
    );
}

/// L18: methods that no revision defines are refused, or pass where the policy lets them.
#[test]
fn unknown_methods_meet_the_policy() {
    let mut server = server_at("2025-11-25", json!({}), json!({}));
    assert_eq!(
        server.request(1, "vendor/thing", json!({}))[0].code(),
        -32601
    );
    let mut client = client_at("2025-11-25", json!({}), json!({}));
    assert!(matches!(
        &client.ask(1, "vendor/thing", json!({}))[..],
        [Out::Withheld(_)]
    ));

    let mut open = legacy_only();
    open.unknown = OnUnknown::Pass;
    let mut server = ServerRig::new(open.clone(), json!({}));
    server.ready("2025-11-25", json!({}));
    assert_eq!(
        server.request(1, "vendor/thing", json!({})),
        [Out::Serve("vendor/thing".into())]
    );
    assert_eq!(
        server.request(2, "tools/list", json!({}))[0].code(),
        -32601,
        "known ones stay gated"
    );
    let mut client = ClientRig::new(open, json!({}));
    client.ready("2025-11-25", json!({}));
    assert!(matches!(
        &client.ask(1, "vendor/thing", json!({}))[..],
        [Out::Write(_)]
    ));
}

/// L19: the outgoing gate can be switched off.
#[test]
fn a_lenient_gate_lets_everything_out() {
    let mut policy = legacy_only();
    assert_eq!(
        policy.outgoing,
        Enforcement::Strict,
        "strict is the default"
    );
    policy.outgoing = Enforcement::Lenient;
    let mut client = ClientRig::new(policy, json!({}));
    client.ready("2025-11-25", json!({}));
    assert!(matches!(
        &client.ask(1, "resources/list", json!({}))[..],
        [Out::Write(_)]
    ));
}

/// L13: names of notifications without their prefix are understood and never sent.
#[test]
fn unprefixed_notifications_are_understood() {
    let mut client = client_at(
        "2025-11-25",
        json!({}),
        json!({"resources": {"listChanged": true}}),
    );
    let out = client.message(json!({"jsonrpc": "2.0", "method": "resources/list_changed"}));
    assert_eq!(out, [Out::Observe("resources/list_changed".into())]);
    let mut server = server_at(
        "2025-11-25",
        json!({"resources": {"listChanged": true}}),
        json!({}),
    );
    assert!(matches!(
        &server.notify("resources/list_changed", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

/// L14: in the modern era the server writes no requests, and one that comes is not answered.
#[test]
fn no_server_requests_in_the_modern_era() {
    let mut server = ServerRig::new(modern_only(), json!({"tools": {}}));
    server.request(1, "tools/call", with_level(None));
    assert!(matches!(
        &server.ask(1, "roots/list", json!({}))[..],
        [Out::Withheld(_)]
    ));
    let mut client = ClientRig::new(modern_only(), json!({"roots": {}}));
    client.ready_modern(json!({"tools": {}}));
    let out = server_asks(&mut client, "roots/list", json!({}));
    assert!(
        matches!(&out[..], [Out::Dropped(_), Out::Report(_)]),
        "{out:?}"
    );
}

/// N26: the checks of the pact are plain functions with a reason.
#[test]
fn a_ruling_carries_its_reason() {
    let pact = pact(Revision::V2025_06_18, json!({}), json!({"tools": {}}));
    let rule = |sender, kind, method| pact.rule(sender, kind, method).reason;
    use Kind::{Notification, Request};
    use Side::{Client, Server};
    assert_eq!(
        rule(Client, Request, "tools/list"),
        Reason::Declared(Capability::Tools)
    );
    assert_eq!(rule(Client, Request, "ping"), Reason::Ungated);
    assert_eq!(
        rule(Client, Request, "prompts/list"),
        Reason::Undeclared(Capability::Prompts)
    );
    assert_eq!(rule(Client, Request, "tasks/get"), Reason::NotInRevision);
    assert_eq!(rule(Server, Request, "tools/list"), Reason::WrongSender);
    assert_eq!(rule(Client, Notification, "tools/list"), Reason::WrongKind);
    assert_eq!(rule(Client, Request, "nope"), Reason::Unknown);
    let ruling = pact.rule(Client, Request, "prompts/list");
    assert_eq!(ruling.explain(), "the server did not declare `prompts`");
    assert_eq!(
        ruling.remedy().unwrap(),
        "declare `prompts` in the server's capabilities, or do without"
    );
    assert_eq!(ruling.page().unwrap(), "2025-06-18 server/prompts");
    let input = pact.rule(Server, Request, "roots/list");
    assert_eq!(input.reason, Reason::Undeclared(Capability::Roots));
}

/// L25: a second request with an id in flight is refused and the first one is not disturbed.
#[test]
fn an_id_in_flight_is_not_taken_twice() {
    let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
    assert_eq!(server.request(1, "tools/list", json!({})).len(), 1);
    let out = server.request(1, "tools/call", json!({"name": "t"}));
    assert_eq!(
        (out[0].code(), &out[0].error()["data"]["reason"]),
        (-32600, &json!("duplicate_id"))
    );
    assert_eq!(
        server.answer(1, json!({"tools": []}))[0].result(),
        &json!({"tools": []})
    );
    assert_eq!(
        server.request(1, "tools/list", json!({})),
        [Out::Serve("tools/list".into())],
        "free again"
    );
}

/// L25: where every request has an answer of its own, an id in flight may come again; cancelling it
/// cancels all of them, and until those have ended it cannot be used.
#[test]
fn an_id_in_flight_may_come_again_on_http() {
    let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
    let facts = CarrierFacts::Http(HttpFacts {
        session: SessionFact::Live(Revision::V2025_11_25),
        ..HttpFacts::BARE_POST
    });
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for count in 1..=3 {
        let served = [Out::Serve("tools/list".into())];
        assert_eq!(server.bytes_with(&list, facts), served);
        assert_eq!(server.machine().in_flight(), count);
    }
    let result = json!({"tools": []});
    assert_eq!(server.answer(1, result.clone())[0].result(), &result);
    server.notification("notifications/cancelled", json!({"requestId": 1}));
    let refused = server.bytes_with(&list, facts);
    assert_eq!(refused[0].error()["data"]["reason"], "duplicate_id");
    for left in [1, 0] {
        assert!(
            !matches!(server.answer(1, result.clone())[..], [Out::Reply(..)]),
            "it was cancelled"
        );
        assert_eq!(server.machine().in_flight(), left);
    }
    let again = server.bytes_with(&list, facts);
    assert_eq!(again, [Out::Serve("tools/list".into())], "free again");
}

/// L24: a cancelled request is not answered any more.
#[test]
fn a_cancelled_request_gets_no_answer() {
    let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
    server.request(1, "tools/call", json!({"name": "t"}));
    let out = server.notification("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(out, [Out::Observe("notifications/cancelled".into())]);
    assert_eq!(server.answer(1, json!({})), [Out::Dropped("1".into())]);
    let unknown = server.notification("notifications/cancelled", json!({"requestId": 9}));
    assert_eq!(unknown, [Out::Dropped("notifications/cancelled".into())]);
}

/// P8: of a cancellation and an answer exactly one wins, in whatever order and however often they
/// come: the server answers once or never, and the owner of a request hears one end.
#[test]
fn a_cancellation_and_an_answer_never_both_win() {
    let orders = |count: usize| -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for _ in 0..count {
            let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                (0..3)
                    .map(|step| [order.clone(), vec![step]].concat())
                    .collect()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    };
    for order in orders(4) {
        let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
        server.request(1, "tools/call", json!({"name": "t"}));
        let mut replies = 0;
        let mut cancelled_first = None;
        for step in &order {
            let out = match step {
                0 => server.notification("notifications/cancelled", json!({"requestId": 1})),
                1 => server.answer(1, json!({})),
                _ => server.notification("notifications/cancelled", json!({"requestId": 2})),
            };
            if *step < 2 {
                cancelled_first.get_or_insert(*step == 0);
            }
            replies += out
                .iter()
                .filter(|out| matches!(out, Out::Reply(..)))
                .count();
        }
        let expected = usize::from(cancelled_first == Some(false));
        assert_eq!(replies, expected, "{order:?}");
        let mut client = client_at("2025-11-25", json!({}), json!({"tools": {}}));
        client.ask(5, "tools/list", json!({}));
        let mut ends = 0;
        for step in &order {
            let out = match step {
                0 => client.input(Input::Cancel { id: 5 }),
                1 => client.message(json!({"jsonrpc": "2.0", "id": 5, "result": {"tools": []}})),
                _ => client.after(core::time::Duration::from_secs(3600)),
            };
            ends += out
                .iter()
                .filter(|out| matches!(out, Out::Settled(..)))
                .count();
        }
        assert_eq!(ends, 1, "{order:?}");
    }
}

/// L24: cancelling is a notification on a stream, and the end of the stream on modern HTTP.
#[test]
fn cancelling_is_told_in_the_way_of_the_era() {
    let mut legacy = client_at("2025-11-25", json!({}), json!({"tools": {}}));
    legacy.ask(5, "tools/list", json!({}));
    let out = legacy.input(Input::Cancel { id: 5 });
    assert_eq!(out[0].reply()["params"], json!({"requestId": 5}));
    assert_eq!(out[1], Out::Settled("5".into(), Ended::Cancelled));
    let mut modern = ClientRig::with(modern_only(), json!({}), |t| {
        t.carrier = client::CarrierKind::Http
    });
    modern.ready_modern(json!({"tools": {}}));
    modern.ask(5, "tools/list", json!({}));
    let out = modern.input(Input::Cancel { id: 5 });
    assert_eq!(
        out,
        [
            Out::Abandon("5".into()),
            Out::Settled("5".into(), Ended::Cancelled)
        ]
    );
    let mut server = server_at("2025-11-25", json!({}), json!({"roots": {}}));
    server.ask(3, "roots/list", json!({}));
    let out = server.input(server::Input::Cancel { id: 3 });
    assert_eq!(out[0].reply()["method"], "notifications/cancelled");
}

/// L13, GA-13: a tool that runs only as a task is not found without one; a request type that must be
/// a task is invalid without one.
#[test]
fn ga_13_task_support_is_enforced() {
    use mcpact_engine::policy::ErrorDialect;
    use mcpact_engine::refusal::Dialect;
    use mcpact_engine::task_rule::{Demand, TaskSupport, Wish, judge};
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let able = pact(Revision::V2025_11_25, json!({}), able);
    let unable = pact(Revision::V2025_11_25, json!({}), json!({"tools": {}}));
    let dialect = Dialect {
        revision: Revision::V2025_11_25,
        errors: ErrorDialect::Spec,
    };
    let run = |pact, support, wish, demand| {
        judge(pact, TaskSupport::parse(support), wish, demand)
            .map_err(|refusal| refusal.on_wire(dialect).code)
    };
    use Demand::{Always, ByTool};
    use Wish::{Plain, Task};
    for (support, wish, demand, expected) in [
        (Some("required"), Plain, ByTool, Err(-32601)),
        (Some("required"), Task, ByTool, Ok(Task)),
        (Some("optional"), Plain, ByTool, Ok(Plain)),
        (Some("optional"), Task, ByTool, Ok(Task)),
        (Some("forbidden"), Task, ByTool, Err(-32601)),
        (None, Task, ByTool, Err(-32601)),
        (None, Plain, ByTool, Ok(Plain)),
        (Some("optional"), Plain, Always, Err(-32600)),
        (Some("optional"), Task, Always, Ok(Task)),
    ] {
        assert_eq!(
            run(&able, support, wish, demand),
            expected,
            "{support:?} {wish:?} {demand:?}"
        );
    }
    assert_eq!(
        run(&unable, Some("optional"), Task, ByTool),
        Ok(Plain),
        "GA-14: ignored"
    );
}
