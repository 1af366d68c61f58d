//! REVISIONS 8.6 and requirements L11 to L22: who may say what.

mod flags;
mod in_flight;
mod wanted;

use mcpact_engine::effect::Severity;
use mcpact_engine::policy::{ClientRequirement, Enforcement, OnUndeclared, OnUnknown};
use mcpact_engine::reason::Reason;
use mcpact_spec::{Capability, Kind, Method, Revision, Side};
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

fn with_level(level: Option<&str>) -> Value {
    let mut params = modern_params(json!({}));
    if let Some(level) = level {
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    params["name"] = json!("t");
    params
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
    for (policy, reported, hangs_up) in [
        (OnUndeclared::Drop, None, false),
        (OnUndeclared::Warn, Some(Severity::Warning), false),
        (OnUndeclared::Error, Some(Severity::Error), false),
        (OnUndeclared::Disconnect, Some(Severity::Error), true),
    ] {
        let mut own = legacy_only();
        own.undeclared = policy;
        let mut client = ClientRig::new(own, json!({}));
        client.ready("2025-11-25", json!({"resources": {}}));
        let out = client.message(changed.clone());
        assert!(matches!(&out[0], Out::Dropped(_)));
        let gravity = out.iter().find_map(|out| match out {
            Out::Report(_, gravity) => Some(*gravity),
            _ => None,
        });
        assert_eq!(gravity, reported, "{policy:?}");
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

/// N29: an unknown method of a client passes to a server with an extension that the tables do not know.
#[test]
fn unknown_methods_pass_to_a_server_with_an_unknown_extension() {
    for (id, reason) in [
        ("example.com/thing", Reason::PassedUnknown),
        ("io.modelcontextprotocol/ui", Reason::Unknown),
    ] {
        for revision in Revision::ALL {
            let pact = pact(revision, json!({}), json!({"extensions": {id: {}}}));
            let rule = |sender, kind, method| {
                let ruling = pact.rule_with(OnUnknown::Refuse, sender, kind, method);
                ruling.reason
            };
            assert_eq!(rule(Side::Client, Kind::Request, "vendor/do"), reason);
            assert_eq!(
                rule(Side::Server, Kind::Request, "vendor/do"),
                Reason::Unknown
            );
            assert_ne!(rule(Side::Client, Kind::Request, "tools/list"), reason);
        }
    }
}

/// The methods for skills need a declaration of the server only, and the one for directories its setting.
#[test]
fn methods_for_skills_need_the_extension_of_the_server() {
    let skills = mcpact_spec::Extension::Skills;
    let (open, lacking) = (
        Reason::OfServer(skills),
        Reason::NotShared(skills, Side::Server),
    );
    let closed = Reason::NoSetting(skills, "directoryRead");
    for (server, get, read) in [
        (json!({}), lacking, lacking),
        (json!({"extensions": {skills.id(): {}}}), open, closed),
        (
            json!({"extensions": {skills.id(): {"directoryRead": false}}}),
            open,
            closed,
        ),
        (
            json!({"extensions": {skills.id(): {"directoryRead": true}}}),
            open,
            open,
        ),
    ] {
        let modern = pact(Revision::V2026_07_28, json!({}), server.clone());
        let legacy = pact(Revision::V2025_11_25, json!({}), server);
        for (method, reason) in [
            (Method::SkillsList, get),
            (Method::SkillsGet, get),
            (Method::ResourcesDirectoryRead, read),
        ] {
            let rule = |pact: &mcpact_engine::pact::Pact| {
                pact.rule_on(Side::Client, Kind::Request, method).reason
            };
            assert_eq!(rule(&modern), reason);
            assert_eq!(rule(&legacy), Reason::NotInRevision);
        }
    }
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
        matches!(&out[..], [Out::Dropped(_), Out::Report(..)]),
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
