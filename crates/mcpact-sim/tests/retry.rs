//! A refused beginning leaves no trace.

use std::borrow::Cow;
use std::sync::Arc;

use mcpact_engine::classify::TransportFacts;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::policy::{OnUnsupported, Reading};
use mcpact_engine::server::{Input, Phase, Scope, Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_sim::peers::{self, FULL_SERVER, dual};
use mcpact_wire::id::Id;
use proptest::prelude::*;

const GOOD: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Beginnings that a strict server refuses, each for another reason.
const REFUSED: [&str; 12] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"1.0.0","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":"yes"}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"[{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}]"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
];

/// Inputs after a successful start: some of everything.
fn follow_up() -> Vec<Input<'static>> {
    let bytes = |text: &'static str| Input::Bytes {
        bytes: text.as_bytes(),
        facts: TransportFacts::Stream,
    };
    let ask = |id, method| Input::Ask {
        id,
        method,
        params: None,
        timeout: RequestTimeout::default(),
    };
    vec![
        bytes(GOOD),
        ask(1, "ping"),
        bytes(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ask(2, "roots/list"),
        ask(3, "elicitation/create"),
        bytes(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        bytes(GOOD),
        Input::Notify {
            scope: Scope::Connection,
            method: "notifications/message",
            params: Some(r#"{"level":"debug"}"#),
        },
        Input::Answer {
            id: Id::number(1),
            outcome: Ok("{}"),
        },
        bytes(r#"{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}"#),
        Input::Closed,
    ]
}

fn strict() -> Arc<ServerTerms> {
    let mut terms = peers::server(dual(), FULL_SERVER);
    terms.policy.version.on_unsupported = OnUnsupported::Reject;
    terms.policy.reading = Reading::Strict;
    terms.policy.required = vec![Cow::Borrowed("roots")];
    Arc::new(terms)
}

/// Effects and phases of a server for these inputs, as text.
fn told(mut server: Server, inputs: Vec<Input<'static>>) -> Vec<String> {
    let mut told = Vec::new();
    for input in inputs {
        let step = server.handle(input, Moment::ZERO);
        server = step.next;
        told.push(format!("{:?} {:?}", step.effects, server.phase()));
    }
    told.push(format!("{:?}", server.next_deadline()));
    told
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// L7, L5: after any number of refused beginnings the same server takes a good one, and from
    /// then on does exactly what one does that has seen nothing else.
    #[test]
    fn a_refused_beginning_leaves_no_trace(
        refused in proptest::collection::vec(proptest::sample::select(REFUSED.to_vec()), 1..8),
    ) {
        let mut tried = Server::new(strict(), Moment::ZERO);
        for text in refused {
            let facts = TransportFacts::Stream;
            let step = tried.handle(Input::Bytes { bytes: text.as_bytes(), facts }, Moment::ZERO);
            tried = step.next;
            prop_assert!(matches!(tried.phase(), Phase::AwaitInit), "{text}");
            prop_assert_eq!(tried.in_flight(), 0);
        }
        let fresh = Server::new(strict(), Moment::ZERO);
        prop_assert_eq!(told(tried, follow_up()), told(fresh, follow_up()));
    }
}
