//! Requests that are being answered, and their cancellation.

use mcpact_engine::classify::{HttpFacts, SessionFact, TransportFacts};
use mcpact_engine::client::{self, Input};
use mcpact_engine::server;
use mcpact_spec::Revision;
use serde_json::json;

use super::{client_at, server_at};
use crate::support::*;

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
    let facts = TransportFacts::Http(HttpFacts {
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

/// L24: a cancelled request gets no answer.
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
fn cancelling_follows_the_era() {
    let mut legacy = client_at("2025-11-25", json!({}), json!({"tools": {}}));
    legacy.ask(5, "tools/list", json!({}));
    let out = legacy.input(Input::Cancel { id: 5 });
    assert_eq!(out[0].reply()["params"], json!({"requestId": 5}));
    assert_eq!(out[1], Out::Settled("5".into(), Ended::Cancelled));
    let mut modern = ClientRig::with(modern_only(), json!({}), |t| {
        t.transport = client::TransportKind::Http
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
