//! The sequence of the fourth source document: a newer client meets an older server.

use mcpact_engine::client::{Input, Phase};
use mcpact_spec::{Revision, Side};
use serde_json::json;

use crate::support::*;

/// L1, L9, L11, N13: `connect()`, analysis, result, storing, `initialized`, and a call that is never
/// sent (S3.7 to S3.14).
#[test]
fn the_sequence_diagram() {
    let mut client = ClientRig::new(spec_policy(), json!({"roots": {"listChanged": true}}));
    let mut server = ServerRig::new(
        speaking(&[Revision::V2024_11_05]),
        json!({"prompts": {}, "resources": {"subscribe": true}}),
    );
    // The newest client asks about the era first; the older server does not know the question.
    let probe = client.open().remove(0);
    let answer = server.message(probe.reply().clone()).remove(0);
    assert_eq!(answer.code(), -32600);
    let request = client.message(answer.reply().clone()).remove(0);
    assert_eq!(
        request.reply()["params"]["protocolVersion"],
        "2025-11-25",
        "my version"
    );
    let result = server.message(request.reply().clone()).remove(0);
    assert_eq!(
        result.result()["protocolVersion"],
        "2024-11-05",
        "the server's version"
    );
    let out = client.message(result.reply().clone());
    let stored = client
        .machine()
        .pact()
        .expect("stored before the notification")
        .clone();
    assert_eq!(stored.revision(), Revision::V2024_11_05);
    let initialized = out.last().unwrap();
    assert_eq!(initialized.reply()["method"], "notifications/initialized");
    server.message(initialized.reply().clone());

    let prompts = client.ask(1, "prompts/list", json!({})).remove(0);
    assert_eq!(
        server.message(prompts.reply().clone()),
        [Out::Serve("prompts/list".into())]
    );
    let answer = server.answer(1, json!({"prompts": []})).remove(0);
    let out = client.message(answer.reply().clone());
    assert_eq!(
        out,
        [Out::Settled(
            "1".into(),
            Ended::Result(json!({"prompts": []}))
        )]
    );

    let out = client.ask(2, "tools/call", json!({"name": "x"}));
    assert_eq!(
        out,
        [Out::Withheld(
            "`tools/call` was not sent: the server did not declare `tools`".into()
        )]
    );
    let fallback = stored.when_supported(Side::Server, "tools", || "tools", |_| "something else");
    assert_eq!(fallback, "something else", "the application goes on");
}

/// L25: closing the connection ends every request that waits (S3.19).
#[test]
fn closing_ends_what_waits() {
    let mut client = ClientRig::new(legacy_only(), json!({}));
    client.ready("2025-06-18", json!({"prompts": {}}));
    client.ask(1, "prompts/list", json!({}));
    let out = client.input(Input::Closed);
    assert_eq!(out, [Out::Settled("1".into(), Ended::ConnectionClosed)]);
    assert!(matches!(client.machine().phase(), Phase::Closed));
}

/// N18: a capability of the future is ignored by an old peer (S3.5).
#[test]
fn a_capability_of_the_future_is_ignored() {
    let mut server = ServerRig::new(speaking(&[Revision::V2024_11_05]), json!({"prompts": {}}));
    let out = server.initialize("2024-11-05", json!({"realtime-debugging": {"level": 9}}));
    assert!(out[0].result().is_object());
}

/// L22: a class of notifications is sent only to a client that can have asked for it (S3.6).
#[test]
fn notifications_are_opt_in() {
    let mut server = ServerRig::new(legacy_only(), json!({"resources": {"subscribe": true}}));
    server.ready("2025-06-18", json!({}));
    let out = server.notify("notifications/resources/updated", json!({"uri": "a:b"}));
    assert!(matches!(&out[..], [Out::Withheld(_)]));
}
