//! Requirements L1 to L10 and L20 to L28: a conversation from its first byte to its last.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Failure, Input, Phase};
use mcpact_engine::lint::{self, Mismatch};
use mcpact_engine::outstanding::{OnProgress, PendingRequests, RequestTimeout};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::{OnEarly, Profile};
use mcpact_engine::server::{self, Phase as ServerPhase};
use mcpact_engine::shutdown::{Carrier, EndEvent, EndStep, Ending, Grace};
use mcpact_engine::time::Moment;
use mcpact_spec::{Capability, Method, Revision, Side};
use mcpact_wire::id::Id;
use serde_json::json;

use crate::support::*;

/// L1: every state of the client, in its order.
#[test]
fn the_client_walks_through_its_states() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    assert!(matches!(client.machine().phase(), Phase::Disconnected));
    client.input(Input::Open);
    assert!(matches!(client.machine().phase(), Phase::Connecting));
    let first = client.input(Input::Connected).remove(0);
    assert!(matches!(client.machine().phase(), Phase::Initializing(_)));
    client.answer_to(
        &first,
        initialize_result("2025-11-25", json!({"tools": {}})),
    );
    assert!(matches!(client.machine().phase(), Phase::Ready(_)));
    client.ask(1, "tools/list", json!({}));
    assert_eq!(
        client.input(Input::Close),
        [],
        "a request is still in flight"
    );
    assert!(matches!(client.machine().phase(), Phase::Closing));
    let out = client.message(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}));
    assert_eq!(out[1], Out::HangUp);
    client.input(Input::Closed);
    assert!(matches!(client.machine().phase(), Phase::Closed));
}

/// L1: a connection that breaks before the agreement has failed.
#[test]
fn a_connection_that_breaks_early_has_failed() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.open();
    client.input(Input::Closed);
    assert!(matches!(
        client.machine().phase(),
        Phase::Failed(Failure::ConnectionClosed)
    ));
}

/// L2: every state of the server, in its order.
#[test]
fn the_server_walks_through_its_states() {
    let mut server = ServerRig::new(legacy_only(), json!({}));
    assert!(matches!(server.machine().phase(), ServerPhase::AwaitInit));
    server.initialize("2025-11-25", json!({}));
    assert!(matches!(
        server.machine().phase(),
        ServerPhase::AwaitInitialized(_)
    ));
    server.notification("notifications/initialized", json!({}));
    assert!(matches!(server.machine().phase(), ServerPhase::Ready(_)));
    server.input(server::Input::Closed);
    assert!(matches!(server.machine().phase(), ServerPhase::Closed));
    assert_eq!(
        server.request(1, "ping", json!({})),
        [Out::Dropped("message".into())]
    );
}

/// L2: the state belongs to the connection, not to the server: two clients, two versions.
#[test]
fn two_clients_have_two_states() {
    let set = caps(Side::Server, json!({"tools": {}}));
    let info = mcpact_wire::model::implementation::Implementation::new("s", "1");
    let terms = Arc::new(server::ServerTerms::new(info, set, legacy_only()));
    let mut one = ServerRig {
        server: Some(server::Server::new(Arc::clone(&terms), Moment::ZERO)),
        now: Moment::ZERO,
    };
    let mut two = ServerRig {
        server: Some(server::Server::new(terms, Moment::ZERO)),
        now: Moment::ZERO,
    };
    one.ready("2024-11-05", json!({}));
    assert_eq!(
        two.request(1, "tools/list", json!({}))[0].code(),
        -32600,
        "the other one is not open"
    );
    two.ready("2025-11-25", json!({}));
    let revision = |rig: &ServerRig| rig.machine().phase().pact().unwrap().revision();
    assert_eq!(
        (revision(&one), revision(&two)),
        (Revision::V2024_11_05, Revision::V2025_11_25)
    );
}

/// L3: a modern request is served before and without a handshake on a dual-era connection.
#[test]
fn modern_requests_need_no_handshake() {
    let mut server = ServerRig::new(spec_policy(), json!({"tools": {}}));
    assert_eq!(
        server.request(1, "tools/list", modern_params(json!({}))),
        [Out::Serve("tools/list".into())]
    );
    assert!(
        server.request(2, "server/discover", modern_params(json!({})))[0]
            .result()
            .is_object()
    );
    assert!(
        matches!(server.machine().phase(), ServerPhase::AwaitInit),
        "and it opens nothing"
    );
}

/// L4: before `initialize` every method is refused, in the words of the profile.
#[test]
fn every_method_is_blocked_before_initialize() {
    let everything = json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "logging": {}, "completions": {}});
    for &method in Method::ALL {
        let is_request = method
            .role(Revision::V2025_06_18)
            .allows(Side::Client, mcpact_spec::Kind::Request);
        if !is_request || matches!(method, Method::Initialize | Method::Ping) {
            continue;
        }
        let mut server = ServerRig::new(legacy_only(), everything.clone());
        assert_eq!(
            server.request(1, method.as_str(), json!({}))[0].code(),
            -32600,
            "{method}"
        );
        let mut erlmcp = ServerRig::new(Profile::Erlmcp.policy(), everything.clone());
        let out = erlmcp.request(1, method.as_str(), json!({}));
        assert_eq!(out[0].code(), -32005, "{method}");
        let text = out[0].error()["message"].as_str().unwrap().to_owned();
        assert!(text.ends_with("before server initialization"), "{text}");
    }
}

/// L5: after the handshake the same request is served.
#[test]
fn the_same_request_is_served_afterwards() {
    let mut server = ServerRig::new(legacy_only(), json!({"resources": {}}));
    assert_eq!(
        server.request(1, "resources/list", json!({}))[0].code(),
        -32600
    );
    server.ready("2025-06-18", json!({}));
    assert_eq!(
        server.request(1, "resources/list", json!({})),
        [Out::Serve("resources/list".into())]
    );
}

/// L6: a second `initialize` changes nothing, and the session goes on.
#[test]
fn a_second_initialize_is_refused_without_harm() {
    let mut server = ServerRig::new(legacy_only(), json!({"tools": {}}));
    server.ready("2025-06-18", json!({"roots": {}}));
    for version in ["2025-06-18", "2099-01-01"] {
        let out = server.initialize(version, json!({}));
        assert_eq!(out[0].code(), -32600);
        assert_eq!(out[0].error()["data"]["reason"], "already_initialized");
    }
    let pact = server.machine().phase().pact().unwrap();
    assert_eq!(pact.revision(), Revision::V2025_06_18);
    assert!(
        pact.declares(Capability::Roots),
        "the first declaration stands"
    );
    assert_eq!(
        server.request(1, "tools/list", json!({})),
        [Out::Serve("tools/list".into())]
    );
}

/// L7: a refused `initialize` leaves no trace; the client may try again.
#[test]
fn a_failed_initialize_can_be_repeated() {
    let mut server = ServerRig::new(Profile::McpvStrict.policy(), json!({"tools": {}}));
    assert_eq!(server.initialize("2024-11-05", json!({}))[0].code(), -32602);
    assert_eq!(
        server.initialize("2025-11-25", json!({"roots": []}))[0].code(),
        -32602
    );
    assert_eq!(
        server.request(1, "initialize", json!({"protocolVersion": "2025-11-25"}))[0].code(),
        -32602
    );
    let early = server.notification("notifications/initialized", json!({}));
    assert_eq!(
        early,
        [Out::Dropped("notifications/initialized".into())],
        "nothing was opened"
    );
    assert_eq!(server.request(2, "tools/list", json!({}))[0].code(), -32600);
    server.ready("2025-11-25", json!({}));
}

/// L8: the version is judged before anything else is read.
#[test]
fn a_bad_version_is_reported_first() {
    let mut server = ServerRig::new(Profile::McpvStrict.policy(), json!({}));
    let out = server.request(
        1,
        "initialize",
        json!({"protocolVersion": "2024-11-05", "capabilities": []}),
    );
    assert_eq!(out[0].error()["message"], "Unsupported protocol version");
}

/// L9: the result is stored before `initialized` is sent; the server never sends `initialized`.
#[test]
fn initialized_is_the_clients_to_send_and_comes_last() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    let first = client.open().remove(0);
    let out = client.answer_to(&first, initialize_result("2025-11-25", json!({})));
    assert_eq!(out[0], Out::Concluded(Revision::V2025_11_25));
    assert_eq!(
        out[1].reply(),
        &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    );
    let mut server = ServerRig::new(legacy_only(), json!({}));
    server.ready("2025-11-25", json!({}));
    let sent = server.notify("notifications/initialized", json!({}));
    assert!(matches!(&sent[..], [Out::Withheld(_)]));
    let got = client.message(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(got, [Out::Dropped("notifications/initialized".into())]);
}

/// L10: a request before `initialized` is served by default and refused where the policy says so.
#[test]
fn an_early_request_meets_the_policy() {
    let mut server = ServerRig::new(legacy_only(), json!({"tools": {}}));
    server.initialize("2025-11-25", json!({}));
    assert_eq!(
        server.request(1, "tools/list", json!({})),
        [Out::Serve("tools/list".into())]
    );
    let mut strict = legacy_only();
    strict.early = OnEarly::Refuse;
    let mut server = ServerRig::new(strict, json!({"tools": {}}));
    server.initialize("2025-11-25", json!({}));
    assert_eq!(server.request(1, "tools/list", json!({}))[0].code(), -32600);
}

/// L20: a handler without a declaration and a declaration without a handler are both found.
#[test]
fn handlers_and_declarations_are_compared() {
    let declared = caps(Side::Server, json!({"tools": {}, "prompts": {}}));
    let handlers = [
        Method::ToolsList,
        Method::ToolsCall,
        Method::PromptsList,
        Method::ResourcesRead,
    ];
    let found = lint::compare(&handlers, &declared, Revision::V2025_11_25);
    assert_eq!(
        found,
        [
            Mismatch::Unimplemented {
                capability: Capability::Prompts,
                method: Method::PromptsGet
            },
            Mismatch::Undeclared {
                method: Method::ResourcesRead,
                capability: Capability::Resources
            },
        ]
    );
    assert_eq!(
        found[1].explain(),
        "`resources/read` has a handler but `resources` is not declared: declare it, or remove the handler"
    );
    let follows = lint::declaration(Side::Server, &handlers[..2], &[], Revision::V2025_11_25);
    assert_eq!(
        lint::compare(&handlers[..2], &follows, Revision::V2025_11_25),
        []
    );
}

/// L21, U8: a fallback runs instead, and learns why.
#[test]
fn a_missing_feature_degrades_gracefully() {
    let pact: Pact = pact(
        Revision::V2025_06_18,
        json!({"sampling": {"tools": {}}}),
        json!({"prompts": {}}),
    );
    let pick = |owner, path| {
        pact.when_supported(
            owner,
            path,
            || String::from("used"),
            |disabled| disabled.why,
        )
    };
    assert_eq!(pick(Side::Server, "prompts"), "used");
    assert_eq!(
        pick(Side::Server, "tools"),
        "the server did not declare `tools`"
    );
    assert_eq!(
        pick(Side::Client, "sampling.tools"),
        "the client declared `sampling.tools`, but the negotiated revision does not define it"
    );
    let lost = pact.disabled([(Side::Server, "prompts"), (Side::Server, "logging")]);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].path, "logging");
}

fn timeout(timeout: u64, maximum: u64, on_progress: OnProgress) -> RequestTimeout {
    RequestTimeout {
        timeout: Duration::from_secs(timeout),
        maximum: Duration::from_secs(maximum),
        on_progress,
    }
}

/// L24: a request that takes too long is cancelled; progress may extend it, up to a hard maximum.
#[test]
fn requests_time_out_and_progress_extends_them() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2025-11-25", json!({"tools": {}}));
    let ask = |client: &mut ClientRig, id, timeout| {
        client.input(Input::Ask {
            id,
            method: "tools/call",
            params: Some(r#"{"name":"t","_meta":{"progressToken":"p"}}"#),
            timeout,
        })
    };
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": "p", "progress": 1}});
    ask(&mut client, 1, timeout(10, 25, OnProgress::Extend));
    assert_eq!(client.after(9 * SECOND), []);
    client.message(progress.clone());
    assert_eq!(client.after(9 * SECOND), [], "18 s: extended");
    client.message(progress.clone());
    let out = client.after(8 * SECOND);
    assert_eq!(
        out[0].reply()["params"],
        json!({"requestId": 1}),
        "26 s: beyond the maximum"
    );
    assert_eq!(out[1], Out::Settled("1".into(), Ended::TimedOut));
    let late = client.message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(late, [Out::Dropped("1".into())]);

    ask(&mut client, 2, timeout(10, 25, OnProgress::Ignore));
    client.after(9 * SECOND);
    client.message(progress);
    assert_eq!(client.after(2 * SECOND).len(), 2, "11 s: not extended");
}

/// L25: answers find their request in any order; duplicates and strangers are dropped; the end of
/// the connection ends every request.
#[test]
fn answers_are_matched_by_id() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2025-11-25", json!({"tools": {}}));
    for id in 1..=3 {
        client.ask(id, "tools/list", json!({}));
    }
    let answer = |id: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": {"n": id}});
    let out = client.message(answer(json!(2)));
    assert_eq!(
        out,
        [Out::Settled("2".into(), Ended::Result(json!({"n": 2})))]
    );
    assert_eq!(
        client.message(answer(json!(2))),
        [Out::Dropped("2".into())],
        "a duplicate"
    );
    assert_eq!(
        client.message(answer(json!("1"))),
        [Out::Dropped("\"1\"".into())],
        "another type"
    );
    let out = client.input(Input::Closed);
    let gone = |id: &str| Out::Settled(id.into(), Ended::ConnectionClosed);
    assert_eq!(out, [gone("1"), gone("3")]);
}

/// L25: the book of waiting requests is bounded, and knows string ids as well.
#[test]
fn the_book_of_waiting_requests_is_bounded() {
    let mut book = PendingRequests::new(2);
    let add = |book: &mut PendingRequests, id: Id| {
        book.add(id, "x", None, RequestTimeout::default(), Moment::ZERO)
            .is_ok()
    };
    assert!(add(&mut book, Id::text("a")));
    assert!(!add(&mut book, Id::text("a")), "taken");
    assert!(add(&mut book, Id::number(1)));
    assert!(!add(&mut book, Id::number(2)), "full");
    assert_eq!(
        book.settle(Id::text("a").as_ref()).unwrap().0,
        Id::text("a")
    );
    assert_eq!(book.len(), 1);
}

/// L26: politely first, then with force; HTTP deletes its session; what is in flight may finish.
#[test]
fn an_ending_escalates_step_by_step() {
    let at = |seconds| Moment::at(Duration::from_secs(seconds));
    let grace = Grace {
        drain: 5 * SECOND,
        exit: 2 * SECOND,
        terminate: 2 * SECOND,
    };
    let stubborn = Ending::begin(Carrier::Child, grace, at(0));
    let steps: Vec<_> = (0..12)
        .scan(stubborn, |ending, second| {
            *ending = ending.handle(EndEvent::Tick, at(second));
            Some(ending.step())
        })
        .collect();
    use EndStep::{CloseInput, DeleteSession, Done, Drain, Kill, Terminate};
    assert_eq!(
        steps,
        [
            Drain, Drain, Drain, Drain, Drain, CloseInput, CloseInput, Terminate, Terminate, Kill,
            Kill, Done
        ]
    );
    let polite = Ending::begin(Carrier::Child, grace, at(0)).handle(EndEvent::Idle, at(1));
    assert_eq!(polite.step(), CloseInput);
    assert_eq!(polite.handle(EndEvent::Gone, at(1)).step(), Done);
    let session = Ending::begin(Carrier::HttpSession, grace, at(0)).handle(EndEvent::Idle, at(0));
    assert_eq!(session.step(), DeleteSession);
    let stateless =
        Ending::begin(Carrier::HttpStateless, grace, at(0)).handle(EndEvent::Idle, at(0));
    assert_eq!(stateless.step(), Done);
}

/// L27: neither side waits for ever.
#[test]
fn an_opening_has_a_deadline() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.open();
    assert_eq!(client.after(59 * SECOND), []);
    assert_eq!(client.after(2 * SECOND), [Out::HangUp]);
    assert!(matches!(
        client.machine().phase(),
        Phase::Failed(Failure::InitTimeout)
    ));
    let mut server = ServerRig::new(legacy_only(), json!({}));
    assert_eq!(server.after(29 * SECOND), []);
    assert_eq!(server.after(2 * SECOND), [Out::HangUp]);
    let mut received = ServerRig::new(legacy_only(), json!({}));
    received.request(1, "ping", json!({}));
    assert_eq!(received.after(60 * SECOND), []);
}

/// L28: two peers without any capability can still talk.
#[test]
fn empty_capabilities_are_enough() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = ServerRig::new(spec_policy(), json!({}));
        server.ready(version, json!({}));
        assert_eq!(server.request(1, "ping", json!({}))[0].result(), &json!({}));
    }
}
