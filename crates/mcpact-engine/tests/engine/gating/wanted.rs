//! Messages that only go to those who want them.

use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_wire::id::Id;
use serde_json::json;

use super::{server_at, with_level};
use crate::support::*;

fn modern_with_logging() -> ServerRig {
    ServerRig::new(modern_only(), json!({"tools": {}, "logging": {}}))
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

/// L22: a subscription that is refused is none; one that there was before stays.
#[test]
fn a_refused_subscription_is_none() {
    let mut server = server_at(
        "2025-11-25",
        json!({"resources": {"subscribe": true}}),
        json!({}),
    );
    let uri = || json!({"uri": "a:b"});
    let updated = |server: &mut ServerRig| {
        let out = server.notify("notifications/resources/updated", uri());
        matches!(&out[..], [Out::Write(_)])
    };
    server.request(1, "resources/subscribe", uri());
    assert!(updated(&mut server), "it may be told before the answer");
    server.refuse(1);
    assert!(!updated(&mut server), "refused");
    server.request(2, "resources/subscribe", uri());
    server.answer(2, json!({}));
    server.request(3, "resources/subscribe", uri());
    server.refuse(3);
    assert!(updated(&mut server), "as before");
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
