//! REVISIONS 8.1, and the version rules of the handshake.

use crate::support::*;
use mcpact_engine::client::{Failure, Input, Phase};
use mcpact_engine::policy::{OnMissing, OnUnsupported, Policy, Profile, VersionRule};
use mcpact_engine::refusal::{Incompatible, Refusal};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::server::Phase as ServerPhase;
use mcpact_engine::version::{self, is_date};
use mcpact_spec::Revision;
use serde_json::json;

/// N2: versions are opaque; only the registry has an order, and nothing panics.
#[test]
fn unknown_versions_are_only_unknown() {
    for text in [
        "1.0.0",
        "1.1",
        "2099-01-01",
        "",
        "zzz",
        "2025-11-25 ",
        "２０２５",
    ] {
        let id = RevisionId::parse(text);
        assert_eq!(id.known(), None, "{text}");
        assert_eq!(id.as_str(), text);
    }
    let names: Vec<_> = Revision::ALL.iter().map(|r| r.as_str()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(
        names, sorted,
        "the registry's order is the order of publication"
    );
}

/// N3: the client offers its highest legacy version.
#[test]
fn the_client_offers_its_highest_version() {
    let mut client = ClientRig::new(
        speaking(&[Revision::V2024_11_05, Revision::V2025_06_18]),
        json!({}),
    );
    let out = client.open();
    assert_eq!(out[0].reply()["method"], "initialize");
    assert_eq!(out[0].reply()["params"]["protocolVersion"], "2025-06-18");
}

/// N4, N14: a supported version is echoed, for every legacy revision.
#[test]
fn a_supported_version_is_echoed() {
    for revision in RevisionSet::ALL.in_era(mcpact_spec::Era::Legacy).iter() {
        let mut server = ServerRig::new(spec_policy(), json!({"tools": {}}));
        let out = server.initialize(revision.as_str(), json!({}));
        assert_eq!(out[0].result()["protocolVersion"], revision.as_str());
        assert_eq!(out[1], Out::Concluded(revision));
    }
}

/// N4, NL-02: an unknown version gets a successful result with the newest one.
#[test]
fn nl_02_unknown_version_is_counter_offered() {
    for version in ["1.0.0", "2099-01-01", "2023-01-01", "garbage", ""] {
        let mut server = ServerRig::new(legacy_only(), json!({}));
        let out = server.initialize(version, json!({}));
        assert_eq!(
            out[0].result()["protocolVersion"],
            "2025-11-25",
            "{version}"
        );
    }
}

/// N10, NL-03: 2026-07-28 has no `initialize`, so it is never the answer to one.
#[test]
fn nl_03_the_modern_revision_is_never_answered_in_a_handshake() {
    let mut server = ServerRig::new(spec_policy(), json!({}));
    let out = server.initialize("2026-07-28", json!({}));
    assert_eq!(out[0].result()["protocolVersion"], "2025-11-25");
}

/// N9, NL-04: a version that the client does not speak ends the connection; no `initialized`.
#[test]
fn nl_04_an_unspeakable_answer_ends_the_connection() {
    let mut client = ClientRig::new(speaking(&[Revision::V2024_11_05]), json!({}));
    let first = client.open().remove(0);
    let out = client.answer_to(&first, initialize_result("2025-03-26", json!({})));
    assert_eq!(out, [Out::HangUp]);
    let Phase::Failed(Failure::Refused(Refusal::PeerIncompatible(Incompatible::Answered {
        answered,
        ours,
    }))) = client.machine().phase()
    else {
        panic!("{:?}", client.machine().phase());
    };
    assert_eq!(answered.as_str(), "2025-03-26");
    assert_eq!(ours.names(), ["2024-11-05"]);
    assert!(matches!(
        &client.ask(1, "tools/list", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

/// N9: garbage as an answered version is refused, too.
#[test]
fn an_unknown_answer_ends_the_connection() {
    for version in ["1999-01-01", "2099-01-01", "garbage", "2026-07-28"] {
        let mut client = ClientRig::new(legacy_only(), json!({}));
        let first = client.open().remove(0);
        let out = client.answer_to(&first, initialize_result(version, json!({})));
        assert_eq!(out, [Out::HangUp], "{version}");
    }
}

/// L3, NL-05: a request before `initialize` is refused and changes nothing.
#[test]
fn nl_05_a_request_before_initialize_is_refused() {
    let mut server = ServerRig::new(legacy_only(), json!({"tools": {}}));
    let out = server.request(1, "tools/list", json!({}));
    assert_eq!(out[0].code(), -32600);
    assert_eq!(out[0].error()["data"]["reason"], "not_initialized");
    assert!(matches!(server.machine().phase(), ServerPhase::AwaitInit));
    server.ready("2025-11-25", json!({}));
}

/// L23, NL-06: ping is answered in any state, from either side.
#[test]
fn nl_06_ping_is_answered_in_any_state() {
    let mut server = ServerRig::new(legacy_only(), json!({}));
    let ping = |server: &mut ServerRig| server.request(7, "ping", json!({}))[0].result().clone();
    assert_eq!(ping(&mut server), json!({}));
    server.initialize("2025-06-18", json!({}));
    assert_eq!(ping(&mut server), json!({}));
    server.notification("notifications/initialized", json!({}));
    assert_eq!(ping(&mut server), json!({}));

    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.open();
    let out = client.message(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert_eq!(
        out,
        [Out::Write(
            json!({"jsonrpc": "2.0", "id": "p", "result": {}})
        )]
    );
}

/// L23: the modern era has no ping: as a method it does not exist, as a request it is not answered.
#[test]
fn ping_is_not_part_of_the_modern_era() {
    let mut client = ClientRig::new(modern_only(), json!({}));
    client.ready_modern(json!({}));
    assert!(matches!(
        &client.ask(1, "ping", json!({}))[..],
        [Out::Withheld(_)]
    ));
    let out = client.message(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    assert!(
        matches!(&out[..], [Out::Dropped(_), Out::Report(..)]),
        "{out:?}"
    );
}

/// L10, NL-07: before `initialized` the server may log, and nothing else of its own.
#[test]
fn nl_07_before_initialized_only_logging_and_ping_go_out() {
    let mut server = ServerRig::new(
        spec_policy(),
        json!({"logging": {}, "tools": {"listChanged": true}}),
    );
    server.initialize("2025-11-25", json!({"roots": {}}));
    let log = json!({"level": "info", "data": "x"});
    assert!(matches!(
        &server.notify("notifications/message", log)[..],
        [Out::Write(_)]
    ));
    assert!(matches!(
        &server.ask(1, "ping", json!({}))[..],
        [Out::Write(_)]
    ));
    assert!(matches!(
        &server.ask(2, "roots/list", json!({}))[..],
        [Out::Withheld(_)]
    ));
    let changed = server.notify("notifications/tools/list_changed", json!({}));
    assert!(matches!(&changed[..], [Out::Withheld(_)]));
    server.notification("notifications/initialized", json!({}));
    assert!(matches!(
        &server.ask(3, "roots/list", json!({}))[..],
        [Out::Write(_)]
    ));
}

/// NL-09: `initialize` is never cancelled.
#[test]
fn nl_09_initialize_cannot_be_cancelled() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.open();
    let out = client.input(Input::Cancel { id: 0 });
    assert_eq!(
        out,
        [Out::Withheld("`initialize` cannot be cancelled".into())]
    );
}

/// NL-11: a batch at 2025-03-26 is answered member by member.
#[test]
fn nl_11_a_batch_is_answered_at_2025_03_26() {
    let mut server = ServerRig::new(spec_policy(), json!({"tools": {}}));
    server.ready("2025-03-26", json!({}));
    let out = server.message(json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    ]));
    assert_eq!(out[0].result(), &json!({}));
    assert_eq!(out[1], Out::Serve("tools/list".into()));
    assert_eq!(out[2], Out::Dropped("notifications/cancelled".into()));
    assert_eq!(server.answer(2, json!({"tools": []}))[0].reply()["id"], 2);
}

/// NL-11: `initialize` must not be part of a batch, and a batch has a limit.
#[test]
fn a_batch_has_no_place_for_initialize_and_a_limit() {
    let mut policy = spec_policy();
    policy.batch_limit = 2;
    let mut server = ServerRig::new(policy, json!({}));
    server.ready("2025-03-26", json!({}));
    let initialize = json!({"jsonrpc": "2.0", "id": 5, "method": "initialize",
        "params": initialize_params("2025-03-26", json!({}))});
    let out = server.message(json!([initialize]));
    assert_eq!((out[0].code(), &out[0].reply()["id"]), (-32600, &json!(5)));
    let detail = &out[0].error()["data"]["detail"];
    assert_eq!(detail, "`initialize` cannot be part of a batch");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let out = server.message(json!([ping, ping, ping]));
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].code(), -32600);
    let detail = out[0].error()["data"]["detail"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(detail, "a batch may hold at most 2 messages");
}

/// NL-13: everywhere else an array is an invalid request.
#[test]
fn nl_13_a_batch_is_refused_elsewhere() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut server = ServerRig::new(spec_policy(), json!({}));
        server.ready(version, json!({}));
        let out = server.message(json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]));
        assert_eq!((out[0].code(), out[0].status()), (-32600, 400), "{version}");
    }
}

/// NL-15: a request with a null id is invalid.
#[test]
fn nl_15_a_null_id_is_refused() {
    let mut server = ServerRig::new(spec_policy(), json!({}));
    let out = server.message(json!({"jsonrpc": "2.0", "id": null, "method": "ping"}));
    assert_eq!(out[0].code(), -32600);
}

/// L25, NL-16: the client does not use an id twice in a session.
#[test]
fn nl_16_an_id_is_never_used_twice() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2025-11-25", json!({"tools": {}}));
    let first = client.ask(4, "tools/list", json!({})).remove(0);
    client.answer_to(&first, json!({"tools": []}));
    for id in [4, 3] {
        let out = client.ask(id, "tools/list", json!({}));
        assert_eq!(
            out,
            [Out::Withheld(format!(
                "id {id} was used before in this session"
            ))]
        );
    }
}

fn with_rule(rule: VersionRule, on_unsupported: OnUnsupported) -> Policy {
    let mut policy = spec_policy();
    policy.version.rule = rule;
    policy.version.on_unsupported = on_unsupported;
    policy
}

/// N5: `Exact` rejects every other version and lists what is supported.
#[test]
fn exact_rejects_every_other_version() {
    let policy = with_rule(
        VersionRule::Exact(Revision::V2025_06_18),
        OnUnsupported::Reject,
    );
    for version in ["2024-11-05", "2025-11-25", "2026-07-28", "x"] {
        let mut server = ServerRig::new(policy.clone(), json!({}));
        let out = server.initialize(version, json!({}));
        assert_eq!(out[0].code(), -32602, "{version}");
        assert_eq!(out[0].error()["message"], "Unsupported protocol version");
        assert_eq!(
            out[0].error()["data"],
            json!({"supported": ["2025-06-18"], "requested": version})
        );
    }
    let mut server = ServerRig::new(policy, json!({}));
    assert_eq!(
        server.initialize("2025-06-18", json!({}))[0].result()["protocolVersion"],
        "2025-06-18"
    );
}

/// N6: `Range` says in which direction a version is out of it; the ends are inside.
#[test]
fn range_tells_too_old_from_too_new() {
    let range = VersionRule::Range {
        min: "2025-01-01".into(),
        max: "2025-06-18".into(),
    };
    let policy = with_rule(range, OnUnsupported::Reject);
    let check = |text: &str| {
        version::validate(&policy.version, &RevisionId::parse(text))
            .map_err(|refusal| refusal.on_wire(dialect()).message)
    };
    assert_eq!(check("2025-01-01"), Ok(()));
    assert_eq!(check("2025-06-18"), Ok(()));
    assert_eq!(check("2025-03-26"), Ok(()));
    assert_eq!(check("2024-06-18"), Err("Protocol version too old".into()));
    assert_eq!(check("2024-12-31"), Err("Protocol version too old".into()));
    assert_eq!(
        check("2099-01-01"),
        Err("Protocol version not yet supported".into())
    );
    assert_eq!(
        check("2025-06-19"),
        Err("Protocol version not yet supported".into())
    );
}

/// N10: a date inside the range that is no revision is answered with a supported one.
#[test]
fn an_unknown_date_is_never_echoed() {
    let range = VersionRule::Range {
        min: "2025-01-01".into(),
        max: "2025-06-18".into(),
    };
    let mut server = ServerRig::new(with_rule(range, OnUnsupported::Reject), json!({}));
    let out = server.initialize("2025-01-01", json!({}));
    assert_eq!(out[0].result()["protocolVersion"], "2025-06-18");
}

fn dialect() -> mcpact_engine::refusal::Dialect {
    mcpact_engine::refusal::Dialect {
        revision: Revision::V2025_11_25,
        errors: mcpact_engine::policy::ErrorDialect::Spec,
    }
}

/// N7: the form `YYYY-MM-DD` can be checked, and a version that is no string is named as such.
#[test]
fn the_form_of_a_version_is_checked() {
    for good in ["2025-06-18", "2099-12-31"] {
        assert!(is_date(good), "{good}");
    }
    for bad in [
        "2025-13-01",
        "2025-00-10",
        "2025-06-32",
        "25-06-18",
        "2025/06/18",
        "1.0",
        "",
    ] {
        assert!(!is_date(bad), "{bad}");
    }
    for version in [json!(20250618), json!(["2025-06-18"]), json!(true)] {
        let mut server = ServerRig::new(spec_policy(), json!({}));
        let mut params = initialize_params("", json!({}));
        params["protocolVersion"] = version;
        let out = server.request(1, "initialize", params);
        assert_eq!(out[0].code(), -32602);
        assert_eq!(out[0].error()["message"], "Invalid protocol version format");
    }
}

/// N8: a missing version is an error with its path, or the preferred one where the policy says so.
#[test]
fn a_missing_version_is_refused_or_assumed() {
    let without = || {
        let mut params = initialize_params("", json!({}));
        params.as_object_mut().unwrap().remove("protocolVersion");
        params
    };
    let mut server = ServerRig::new(spec_policy(), json!({}));
    let out = server.request(1, "initialize", without());
    assert_eq!(out[0].code(), -32602);
    assert_eq!(out[0].error()["data"]["path"], "protocolVersion");

    let mut policy = spec_policy();
    policy.version.on_missing = OnMissing::AssumePreferred;
    let mut server = ServerRig::new(policy, json!({}));
    let out = server.request(1, "initialize", without());
    assert_eq!(out[0].result()["protocolVersion"], "2025-11-25");
    let transcript = serde_json::to_string(server.machine().transcript()).unwrap();
    assert!(transcript.contains(r#""how":"assumed""#), "{transcript}");
}

/// N35: a profile changes only the policies that it is for.
#[test]
fn profiles_change_only_what_they_are_for() {
    let spec = Profile::Spec.policy();
    let mcpv = Profile::McpvStrict.policy();
    let erlmcp = Profile::Erlmcp.policy();
    assert_eq!(Policy::default(), spec);
    assert_eq!(
        Policy {
            version: spec.version.clone(),
            reading: spec.reading,
            ..mcpv
        },
        spec
    );
    let erlmcp_as_spec = Policy {
        version: spec.version.clone(),
        client_requirements: Vec::new(),
        errors: spec.errors,
        ..erlmcp
    };
    assert_eq!(erlmcp_as_spec, spec);
    for profile in Profile::ALL {
        assert_eq!(Profile::parse(profile.as_str()), Some(profile));
    }
    assert_eq!(Profile::parse("nope"), None);
}

/// N3, L18: a server that rejects with a list is offered what it listed, once.
#[test]
fn a_rejected_offer_is_repeated_with_a_listed_version() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    let first = client.open().remove(0);
    let out = client.error_to(
        &first,
        -32602,
        json!({"supported": ["2025-03-26", "2024-11-05"], "requested": "2025-11-25"}),
    );
    assert_eq!(out[0].reply()["method"], "initialize");
    assert_eq!(out[0].reply()["params"]["protocolVersion"], "2025-03-26");
    let again = client.error_to(&out[0], -32602, json!({"supported": ["2025-03-26"]}));
    assert_eq!(again, [Out::HangUp]);
    assert!(matches!(
        client.machine().phase(),
        Phase::Failed(Failure::Rejected { code: -32602, .. })
    ));
}
