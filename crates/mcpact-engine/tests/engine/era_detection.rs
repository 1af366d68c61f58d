//! Era detection, from both sides.

use std::time::Duration;

use mcpact_engine::classify::{
    Endpoint, HeaderField, HttpFacts, LegacySessions, Route, SessionFact, TransportFacts, Verb,
    route,
};
use mcpact_engine::client::era_cache::{EraCache, EraLookup};
use mcpact_engine::client::probe::{Conclusion, Evidence, Observation, Question, conclude};
use mcpact_engine::client::{
    EraMode, EraVerdict, Failure, Input, Phase, ProbeFailure, TransportKind,
};
use mcpact_engine::policy::Policy;
use mcpact_engine::refusal::{Dialect, Misbehaviour, Refusal};
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Revision};
use mcpact_wire::batch::Frame;
use serde_json::{Value, json};

use crate::support::*;

fn question(transport: TransportKind) -> Question {
    Question {
        transport,
        supported: RevisionSet::ALL,
        method: Method::Discover,
        asked: Revision::V2026_07_28,
    }
}

fn error(code: i64, supported: &[&str], http_status: Option<u16>) -> Observation {
    Observation::Error {
        code,
        supported: supported.iter().map(|v| Box::from(*v)).collect(),
        http_status,
    }
}

fn listed(versions: &[&str]) -> Observation {
    Observation::Discovered {
        versions: versions.iter().map(|v| Box::from(*v)).collect(),
    }
}

/// N13, ER-01, ER-02, ER-03, ER-06, ER-07, ER-08: every row of the client's table in REVISIONS 3.3.
#[test]
fn the_client_table_of_3_3() {
    use TransportKind::{Child, Http, Stream};
    let modern = Conclusion::Modern(Revision::V2026_07_28);
    let legacy = Conclusion::Legacy;
    let fail = Conclusion::Fail;
    let rows = [
        (
            "ER-01 discover result",
            Child,
            listed(&["2026-07-28", "2025-11-25"]),
            modern.clone(),
        ),
        (
            "a list of legacy versions",
            Child,
            listed(&["2025-11-25"]),
            legacy(Evidence::Listed),
        ),
        (
            "a result of another kind",
            Child,
            Observation::Unreadable,
            legacy(Evidence::Result),
        ),
        (
            "ER-02 only legacy listed",
            Child,
            error(-32022, &["2025-06-18"], None),
            legacy(Evidence::Listed),
        ),
        (
            "-32020 is modern",
            Child,
            error(-32020, &[], None),
            fail(ProbeFailure::Refused(-32020)),
        ),
        (
            "-32021 is modern",
            Stream,
            error(-32021, &[], None),
            fail(ProbeFailure::Refused(-32021)),
        ),
        (
            "ER-03 -32601",
            Child,
            error(-32601, &[], None),
            legacy(Evidence::Error(-32601)),
        ),
        (
            "-32602",
            Stream,
            error(-32602, &[], None),
            legacy(Evidence::Error(-32602)),
        ),
        (
            "-32600",
            Stream,
            error(-32600, &[], None),
            legacy(Evidence::Error(-32600)),
        ),
        (
            "-32005 of erlmcp",
            Stream,
            error(-32005, &[], None),
            legacy(Evidence::Error(-32005)),
        ),
        (
            "a code of its own",
            Stream,
            error(1, &[], None),
            legacy(Evidence::Error(1)),
        ),
        (
            "ER-05 silence on a stream",
            Child,
            Observation::Silence,
            legacy(Evidence::Silence),
        ),
        (
            "the child died of it",
            Child,
            Observation::Exited,
            Conclusion::Respawn,
        ),
        (
            "a broken socket",
            Stream,
            Observation::Exited,
            fail(ProbeFailure::Closed),
        ),
        ("HTTP success", Http, listed(&["2026-07-28"]), modern),
        (
            "ER-06 -32020",
            Http,
            error(-32020, &[], Some(400)),
            fail(ProbeFailure::Refused(-32020)),
        ),
        (
            "ER-06 -32021",
            Http,
            error(-32021, &[], Some(400)),
            fail(ProbeFailure::Refused(-32021)),
        ),
        (
            "ER-07 400, empty",
            Http,
            Observation::Status(400),
            legacy(Evidence::Status(400)),
        ),
        (
            "ER-07 404, empty",
            Http,
            Observation::Status(404),
            legacy(Evidence::Status(404)),
        ),
        (
            "ER-07 405, empty",
            Http,
            Observation::Status(405),
            legacy(Evidence::Status(405)),
        ),
        (
            "406",
            Http,
            Observation::Status(406),
            legacy(Evidence::Status(406)),
        ),
        (
            "ER-07 400, other error",
            Http,
            error(-32000, &[], Some(400)),
            legacy(Evidence::Error(-32000)),
        ),
        (
            "-32602 to a complete probe",
            Http,
            error(-32602, &[], Some(400)),
            legacy(Evidence::Error(-32602)),
        ),
        (
            "-32601 to discover",
            Http,
            error(-32601, &[], Some(404)),
            legacy(Evidence::Error(-32601)),
        ),
        (
            "401 says nothing",
            Http,
            Observation::Status(401),
            fail(ProbeFailure::Authentication(401)),
        ),
        (
            "403 says nothing",
            Http,
            error(-32601, &[], Some(403)),
            fail(ProbeFailure::Authentication(403)),
        ),
        (
            "429 says nothing",
            Http,
            Observation::Status(429),
            fail(ProbeFailure::TooManyRequests),
        ),
        (
            "500 says nothing",
            Http,
            error(-32601, &[], Some(500)),
            fail(ProbeFailure::ServerTrouble(500)),
        ),
        (
            "503 says nothing",
            Http,
            Observation::Status(503),
            fail(ProbeFailure::ServerTrouble(503)),
        ),
        (
            "202 to whatever it does not know",
            Http,
            Observation::Status(202),
            legacy(Evidence::Status(202)),
        ),
        (
            "a place for another method",
            Http,
            Observation::Status(303),
            fail(ProbeFailure::NotMcp(303)),
        ),
        (
            "silence on HTTP",
            Http,
            Observation::Silence,
            fail(ProbeFailure::Silence),
        ),
    ];
    for (name, transport, saw, expected) in rows {
        assert_eq!(conclude(&question(transport), &saw), expected, "{name}");
    }
    let other = Question {
        method: Method::ToolsList,
        ..question(Http)
    };
    assert_eq!(
        conclude(&other, &error(-32601, &[], Some(404))),
        Conclusion::Modern(Revision::V2026_07_28),
        "ER-08: a modern server may lack any method but discover"
    );
}

/// N13: no fallback below what the owner is willing to speak.
#[test]
fn a_floor_is_never_undercut() {
    for change in [
        (|terms: &mut mcpact_engine::client::ClientTerms| terms.mode = EraMode::Modern)
            as fn(&mut _),
        |terms| terms.mode = EraMode::Pin(Revision::V2026_07_28),
        |terms| terms.floor = Some(Revision::V2026_07_28),
    ] {
        let mut client = ClientRig::with(spec_policy(), json!({}), change);
        let first = client.open().remove(0);
        let out = client.error_to(&first, -32601, json!(null));
        assert_eq!(out, [Out::HangUp]);
        assert!(matches!(
            client.machine().phase(),
            Phase::Failed(Failure::Probe(_))
        ));
    }
    let mut client = ClientRig::with(spec_policy(), json!({}), |t| {
        t.floor = Some(Revision::V2025_06_18)
    });
    let first = client.open().remove(0);
    let second = client.error_to(&first, -32601, json!(null)).remove(0);
    let out = client.answer_to(&second, initialize_result("2024-11-05", json!({})));
    assert_eq!(out, [Out::HangUp], "2024-11-05 is below the floor");
}

/// N13, ER-01: the probe is the first message, with a string id and complete metadata.
#[test]
fn er_01_a_modern_server_is_found() {
    let mut client = ClientRig::new(
        spec_policy(),
        json!({"roots": {"listChanged": true}, "sampling": {}}),
    );
    let first = client.open().remove(0);
    let probe = first.reply();
    assert_eq!(probe["method"], "server/discover");
    assert!(probe["id"].is_string());
    let meta = &probe["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    let declared = &meta["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(
        declared,
        &json!({"roots": {}, "sampling": {}}),
        "roots.listChanged went with 2025-11-25"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "cli");
    let out = client.answer_to(
        &first,
        discover_result(&["2026-07-28"], json!({"tools": {}})),
    );
    assert_eq!(
        out,
        [
            Out::Remember("Modern".into()),
            Out::Concluded(Revision::V2026_07_28)
        ]
    );
}

/// N13, ER-02: a recognised modern error never leads to `initialize`.
#[test]
fn er_02_a_modern_error_never_leads_to_a_handshake() {
    let mut client = ClientRig::new(spec_policy(), json!({}));
    let first = client.open().remove(0);
    let out = client.error_to(
        &first,
        -32022,
        json!({"supported": ["2027-01-01"], "requested": "2026-07-28"}),
    );
    assert_eq!(out, [Out::HangUp]);
}

/// N13, ER-03: any other error leads to a handshake on the same connection.
#[test]
fn er_03_any_other_error_leads_to_a_handshake() {
    for code in [-32601, -32602, -32600, -32603, -32000, -32005, 0, 42] {
        let mut client = ClientRig::new(spec_policy(), json!({}));
        let first = client.open().remove(0);
        let out = client.error_to(&first, code, json!(null));
        assert_eq!(out[0].reply()["method"], "initialize", "{code}");
        let out = client.answer_to(
            &out[0],
            initialize_result("2025-06-18", json!({"tools": {}})),
        );
        assert_eq!(out[0], Out::Remember("Legacy".into()));
        assert_eq!(out[1], Out::Concluded(Revision::V2025_06_18));
        assert_eq!(out[2].reply()["method"], "notifications/initialized");
    }
}

/// N13: who does not ask for the modern era learns nothing about whether the server has it.
#[test]
fn who_is_not_asked_is_not_judged() {
    for mode in [EraMode::Legacy, EraMode::Pin(Revision::V2025_06_18)] {
        let mut client = ClientRig::with(spec_policy(), json!({}), |terms| terms.mode = mode);
        let first = client.open().remove(0);
        assert_eq!(first.reply()["method"], "initialize", "{mode:?}");
        let out = client.answer_to(&first, initialize_result("2025-06-18", json!({})));
        assert_eq!(out[0], Out::Concluded(Revision::V2025_06_18), "{mode:?}");
    }
}

/// N13, ER-05: silence leads to a handshake, and the late answer is ignored.
#[test]
fn er_05_silence_leads_to_a_handshake_and_a_late_answer_is_ignored() {
    let mut client = ClientRig::new(spec_policy(), json!({}));
    let probe = client.open().remove(0);
    assert_eq!(client.after(9 * SECOND), []);
    let second = client.after(2 * SECOND).remove(0);
    assert_eq!(second.reply()["method"], "initialize");
    for late in [
        client.answer_to(&probe, discover_result(&["2026-07-28"], json!({}))),
        client.error_to(&probe, -32601, json!(null)),
    ] {
        assert!(matches!(&late[..], [Out::Dropped(_)]), "{late:?}");
    }
    let out = client.answer_to(&second, initialize_result("2025-11-25", json!({})));
    assert!(out.contains(&Out::Concluded(Revision::V2025_11_25)));
    let late = client.answer_to(&probe, discover_result(&["2026-07-28"], json!({})));
    assert!(matches!(&late[..], [Out::Dropped(_)]), "{late:?}");
}

/// N13: the wait is counted from the first sign of life.
#[test]
fn the_probe_timeout_starts_at_the_first_byte() {
    let mut client = ClientRig::new(spec_policy(), json!({}));
    client.open();
    client.after(8 * SECOND);
    client.input(Input::FirstByte);
    assert_eq!(
        client.after(Duration::from_millis(2900)),
        [],
        "10.9 s after the start"
    );
    assert_eq!(client.after(SECOND)[0].reply()["method"], "initialize");
}

/// N13: a server that exits on the probe is restarted once, straight into the handshake.
#[test]
fn a_server_that_dies_of_the_probe_is_respawned_once_and_remembered() {
    let child = |t: &mut mcpact_engine::client::ClientTerms| t.transport = TransportKind::Child;
    let mut client = ClientRig::with(spec_policy(), json!({}), child);
    client.open();
    assert_eq!(client.input(Input::Closed), [Out::Respawn]);
    let second = client.input(Input::Connected).remove(0);
    assert_eq!(second.reply()["method"], "initialize");
    let out = client.answer_to(&second, initialize_result("2025-11-25", json!({})));
    assert_eq!(out[0], Out::Remember("LegacyDiesOnProbe".into()));

    let mut known = ClientRig::with(spec_policy(), json!({}), |t| {
        t.transport = TransportKind::Child;
        t.prior = Some(EraVerdict::LegacyDiesOnProbe);
    });
    assert_eq!(
        known.open()[0].reply()["method"],
        "initialize",
        "remembered: not probed again"
    );
}

/// N13, ER-09: an HTTP server that refuses both openings may be one of the first revision.
#[test]
fn er_09_http_falls_back_to_http_sse() {
    let http = |t: &mut mcpact_engine::client::ClientTerms| t.transport = TransportKind::Http;
    for status in [400, 404, 405, 406, 415, 422] {
        let mut client = ClientRig::with(spec_policy(), json!({}), http);
        client.open();
        assert_eq!(
            client.input(Input::Status(status))[0].reply()["method"],
            "initialize"
        );
        assert_eq!(client.input(Input::Status(status)), [Out::TryHttpSse]);
        let again = client.input(Input::Connected).remove(0);
        assert_eq!(again.reply()["method"], "initialize");
        let out = client.answer_to(&again, initialize_result("2024-11-05", json!({})));
        assert!(out.contains(&Out::Concluded(Revision::V2024_11_05)));
    }
    let mut pinned = ClientRig::with(spec_policy(), json!({}), |t| {
        http(t);
        t.mode = EraMode::Pin(Revision::V2025_06_18);
    });
    pinned.open();
    assert_eq!(pinned.input(Input::Status(404)), [Out::TryHttpSse]);
    let again = pinned.input(Input::Connected).remove(0);
    let out = pinned.answer_to(&again, initialize_result("2025-06-18", json!({})));
    assert!(out.contains(&Out::Concluded(Revision::V2025_06_18)));
    let mut client = ClientRig::with(legacy_only(), json!({}), http);
    client.open();
    assert_eq!(client.input(Input::Status(401)), [Out::HangUp]);
    assert!(matches!(
        client.machine().phase(),
        Phase::Failed(Failure::Probe(ProbeFailure::Authentication(401)))
    ));
}

/// N13: what is a web page to both openings is no server, and to who speaks no legacy at the first.
#[test]
fn a_web_page_is_no_server() {
    let http = |t: &mut mcpact_engine::client::ClientTerms| t.transport = TransportKind::Http;
    let not_mcp = |client: &ClientRig| {
        let phase = client.machine().phase();
        let page = ProbeFailure::NotMcp(200);
        assert!(
            matches!(phase, Phase::Failed(Failure::Probe(failure)) if *failure == page),
            "{phase:?}"
        );
    };
    let mut client = ClientRig::with(spec_policy(), json!({}), http);
    client.open();
    let second = client.input(Input::Status(200)).remove(0);
    assert_eq!(second.reply()["method"], "initialize");
    assert_eq!(client.input(Input::Status(200)), [Out::HangUp]);
    not_mcp(&client);
    let mut modern = ClientRig::with(spec_policy(), json!({}), |t| {
        http(t);
        t.mode = EraMode::Modern;
    });
    modern.open();
    assert_eq!(modern.input(Input::Status(200)), [Out::HangUp]);
    not_mcp(&modern);
}

/// N13, ER-10: a verdict that no longer holds is found out by asking again.
#[test]
fn er_10_a_contradicted_verdict_is_probed_again() {
    let mut client = ClientRig::with(spec_policy(), json!({}), |t| {
        t.prior = Some(EraVerdict::Legacy)
    });
    let first = client.open().remove(0);
    assert_eq!(
        first.reply()["method"],
        "initialize",
        "the verdict is trusted"
    );
    let out = client.error_to(&first, -32601, json!(null));
    assert_eq!(
        out[0].reply()["method"],
        "server/discover",
        "and then questioned"
    );
    let out = client.answer_to(&out[0], discover_result(&["2026-07-28"], json!({})));
    assert_eq!(out[0], Out::Remember("Modern".into()));
}

/// N13: a slow modern server that was taken for legacy is asked again.
#[test]
fn a_version_error_to_initialize_leads_back_to_the_probe() {
    let mut client = ClientRig::new(spec_policy(), json!({}));
    client.open();
    let second = client.after(11 * SECOND).remove(0);
    let third = client.error_to(
        &second,
        -32022,
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}),
    );
    assert_eq!(third[0].reply()["method"], "server/discover");
    let out = client.answer_to(&third[0], discover_result(&["2026-07-28"], json!({})));
    assert!(out.contains(&Out::Concluded(Revision::V2026_07_28)));
}

/// N13: verdicts are dated, bounded, and asked for by one at a time.
#[test]
fn verdicts_are_kept_dated_bounded_and_single_flight() {
    let at = |seconds| Moment::at(Duration::from_secs(seconds));
    let mut book = EraCache::new(2, Duration::from_secs(100));
    assert_eq!(book.lookup("a", at(0)), EraLookup::Ask);
    assert_eq!(
        book.lookup("a", at(1)),
        EraLookup::Wait,
        "another connection probes already"
    );
    book.learn("a", EraVerdict::Legacy, at(2));
    assert_eq!(
        book.lookup("a", at(50)),
        EraLookup::Known(EraVerdict::Legacy)
    );
    assert_eq!(
        book.lookup("a", at(103)),
        EraLookup::Ask,
        "it has become old"
    );
    book.forget("a");
    assert_eq!(
        book.lookup("a", at(104)),
        EraLookup::Ask,
        "a failed asker makes room for the next"
    );
    book.learn("a", EraVerdict::Legacy, at(104));
    book.learn("b", EraVerdict::Modern, at(105));
    book.learn("c", EraVerdict::Modern, at(106));
    assert_eq!(book.len(), 2);
    assert_eq!(
        book.lookup("c", at(107)),
        EraLookup::Known(EraVerdict::Modern)
    );
    assert_eq!(
        book.lookup("a", at(107)),
        EraLookup::Ask,
        "the oldest made room"
    );
}

fn endpoint(policy: &Policy, sessions: LegacySessions) -> Endpoint {
    Endpoint::of(&policy.version, sessions)
}

fn code_of(refusal: &Refusal, revision: Revision) -> (i64, u16) {
    let wire = refusal.on_wire(Dialect {
        revision,
        errors: mcpact_engine::policy::ErrorDialect::Spec,
    });
    (wire.code, wire.http_status)
}

/// N14: every row of the server's table in REVISIONS 3.3.
#[test]
fn the_server_table_of_3_3() {
    let (dual, legacy, modern) = (spec_policy(), legacy_only(), modern_only());
    let required = LegacySessions::Required;
    let decide =
        |policy: &Policy, sessions, text: Option<Value>, facts: TransportFacts<'_>, negotiated| {
            let text = text.map(|v| v.to_string());
            let frame = text.as_ref().map(|t| Frame::parse(t.as_bytes()).unwrap());
            route(
                frame.as_ref(),
                &facts,
                negotiated,
                &endpoint(policy, sessions),
            )
        };
    let post = |facts: HttpFacts<'static>| TransportFacts::Http(facts);
    let bare = HttpFacts::BARE_POST;
    let list = || Some(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let enveloped = |method: &str| {
        Some(
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": modern_params(json!({}))}),
        )
    };
    let initialize = || {
        Some(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": initialize_params("2025-11-25", json!({}))}))
    };
    let batch = || Some(json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]));
    let live = |revision| HttpFacts {
        session: SessionFact::Live(revision),
        ..bare
    };
    let refused = |route: Route| match route {
        Route::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let r2 = Revision::V2025_03_26;
    let r4 = Revision::V2025_11_25;

    // 1: GET and DELETE
    for verb in [Verb::Get, Verb::Delete] {
        let facts = post(HttpFacts { verb, ..bare });
        assert_eq!(
            decide(&dual, required, None, facts, None),
            Route::LegacyControl
        );
        assert_eq!(
            decide(&modern, required, None, facts, None),
            Route::NotAllowed,
            "ER-13"
        );
    }
    // 2: arrays
    assert_eq!(
        decide(&dual, required, batch(), post(live(r2)), None),
        Route::Batch(r2)
    );
    assert_eq!(
        decide(&dual, required, batch(), post(bare), None),
        Route::Batch(r2)
    );
    assert_eq!(
        decide(&dual, required, batch(), TransportFacts::Stream, Some(r2)),
        Route::Batch(r2)
    );
    for route in [
        decide(&dual, required, batch(), post(live(r4)), None),
        decide(&modern, required, batch(), post(bare), None),
        decide(&dual, required, batch(), TransportFacts::Stream, None),
        decide(&dual, required, batch(), TransportFacts::Stream, Some(r4)),
    ] {
        assert_eq!(code_of(&refused(route), r4), (-32600, 400));
    }
    // 3: modern metadata wins, ER-14: whatever session or resume headers stand beside it
    for method in ["tools/list", "initialize", "ping"] {
        let unknown = HttpFacts {
            session: SessionFact::Unknown,
            ..bare
        };
        assert_eq!(
            decide(&dual, required, enveloped(method), post(unknown), None),
            Route::Modern
        );
        assert_eq!(
            decide(
                &dual,
                required,
                enveloped(method),
                TransportFacts::Stream,
                Some(r4)
            ),
            Route::Modern
        );
    }
    // 4: initialize opens a legacy conversation
    assert_eq!(
        decide(&dual, required, initialize(), post(bare), None),
        Route::LegacyOpen
    );
    assert_eq!(
        decide(&dual, required, initialize(), TransportFacts::Stream, None),
        Route::LegacyOpen
    );
    // 5: a live session, and its version header
    assert_eq!(
        decide(&dual, required, list(), post(live(r4)), None),
        Route::Legacy(r4)
    );
    let same = HttpFacts {
        version: HeaderField::Once("2025-11-25"),
        ..live(r4)
    };
    assert_eq!(
        decide(&dual, required, list(), post(same), None),
        Route::Legacy(r4)
    );
    for version in ["2025-06-18", "garbage", "2026-07-28"] {
        let other = HttpFacts {
            version: HeaderField::Once(version),
            ..live(r4)
        };
        let refusal = refused(decide(&dual, required, list(), post(other), None));
        assert_eq!(code_of(&refusal, r4).1, 400, "{version}");
    }
    // 6: an unknown session
    let unknown = HttpFacts {
        session: SessionFact::Unknown,
        ..bare
    };
    let refusal = refused(decide(&dual, required, list(), post(unknown), None));
    assert_eq!(code_of(&refusal, r4).1, 404);
    // 7: a modern header without metadata
    let header = HttpFacts {
        version: HeaderField::Once("2026-07-28"),
        ..bare
    };
    assert_eq!(
        decide(&dual, required, list(), post(header), None),
        Route::Modern
    );
    // 8: a legacy header without a session
    let header = HttpFacts {
        version: HeaderField::Once("2025-06-18"),
        ..bare
    };
    let refusal = refused(decide(&dual, required, list(), post(header), None));
    assert_eq!(code_of(&refusal, r4).1, 400);
    assert_eq!(
        decide(&dual, LegacySessions::Stateless, list(), post(header), None),
        Route::Legacy(Revision::V2025_06_18)
    );
    // 9: a header that means nothing
    let header = HttpFacts {
        version: HeaderField::Once("garbage"),
        ..bare
    };
    let refusal = refused(decide(&dual, required, list(), post(header), None));
    assert_eq!(code_of(&refusal, Revision::V2026_07_28), (-32022, 400));
    // 10: nothing at all
    assert_eq!(
        decide(&dual, LegacySessions::Stateless, list(), post(bare), None),
        Route::Legacy(r2)
    );
    assert_eq!(
        refused(decide(&dual, required, list(), post(bare), None)),
        Misbehaviour::MissingSession.into()
    );
    let refusal = refused(decide(&modern, required, list(), post(bare), None));
    assert_eq!(code_of(&refusal, Revision::V2026_07_28), (-32020, 400));
    // 11: a stream that was not opened
    let refusal = refused(decide(
        &dual,
        required,
        list(),
        TransportFacts::Stream,
        None,
    ));
    assert_eq!(code_of(&refusal, r4).0, -32602);
    let refusal = refused(decide(
        &legacy,
        required,
        list(),
        TransportFacts::Stream,
        None,
    ));
    assert_eq!(code_of(&refusal, r4).0, -32600);
    assert_eq!(
        decide(&modern, required, list(), TransportFacts::Stream, None),
        Route::Modern,
        "refused there with -32602"
    );
    // 12: an unexpected answer
    let response = Some(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(
        decide(&modern, required, response, TransportFacts::Stream, None),
        Route::StrayResponse
    );
}

/// N14: both eras at once on one connection, and neither disturbs the other.
#[test]
fn both_eras_are_served_on_one_connection() {
    let mut server = ServerRig::new(spec_policy(), json!({"tools": {}, "prompts": {}}));
    assert_eq!(
        server.request(1, "tools/list", modern_params(json!({}))),
        [Out::Serve("tools/list".into())]
    );
    server.ready("2025-06-18", json!({}));
    assert_eq!(
        server.request(2, "prompts/list", json!({})),
        [Out::Serve("prompts/list".into())]
    );
    assert_eq!(
        server.request(3, "tools/list", modern_params(json!({}))),
        [Out::Serve("tools/list".into())]
    );
    let modern = server.answer(3, json!({"tools": []}));
    assert_eq!(modern[0].result()["resultType"], "complete");
    let legacy = server.answer(2, json!({"prompts": []}));
    assert_eq!(legacy[0].result(), &json!({"prompts": []}));
}
