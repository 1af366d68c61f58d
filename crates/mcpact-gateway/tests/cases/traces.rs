//! To which trace a request belongs, from the client to the server.

use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{Role, Said, Stage};
use crate::web::{Web, listen};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

fn traced() -> Value {
    json!({"name": "t", "arguments": {}, "_meta": {"traceparent": PARENT, "tracestate": "a=1,b=2",
        "baggage": "user=alice;ttl=3", "x/y": 1}})
}

fn assert_traced(said: &Said, between: &str) {
    let found = &said.params()["_meta"];
    for (key, value) in traced()["_meta"].as_object().unwrap() {
        assert_eq!(&found[key], value, "{key} {between}: {}", said.message);
    }
}

async fn on_the_web(url: &str, revision: Revision) -> Web {
    match revision.era() {
        Era::Legacy => Web::legacy(url, revision.as_str(), json!({})).await,
        Era::Modern => Web::modern(url, json!({})),
    }
}

/// The next call that the server hears; sessions open a stream besides.
async fn call_heard(stage: &mut Stage) -> Said {
    loop {
        let said = stage.hear().await;
        if said.method() == "tools/call" {
            return said;
        }
    }
}

/// Whatever two revisions meet, what a client says of its trace reaches the server as it is.
#[tokio::test(start_paused = true)]
async fn traces_in_messages_cross_between_all_revisions() {
    for up in Revision::ALL {
        for down in Revision::ALL {
            let mut stage = Stage::lines(Role::new(up));
            let bridge = Bridge::new(stage.target.clone(), BridgeSettings::default()).unwrap();
            let mut peer = match down.era() {
                Era::Legacy => Peer::legacy(&bridge, down.as_str(), json!({})).await,
                Era::Modern => Peer::modern(&bridge, json!({})),
            };
            peer.request(1, "tools/call", traced()).await;
            let said = call_heard(&mut stage).await;
            assert_traced(&said, &format!("from {down} to {up}"));
            said.text("done");
            let answer = peer.hear().await;
            assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
        }
    }
}

/// A trace that only the headers of a client name is told in the message and in the headers of the
/// server; one that the message names goes before.
#[tokio::test]
async fn traces_in_headers_are_told_in_messages_and_headers() {
    let plain = json!({"name": "t", "arguments": {}});
    for up in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for down in [Revision::V2025_03_26, Revision::V2026_07_28] {
            let between = format!("from {down} to {up}");
            let mut stage = Stage::http(Role::new(up)).await;
            let bridge = Bridge::new(stage.target.clone(), BridgeSettings::default()).unwrap();
            let url = listen(&bridge).await;
            let web = on_the_web(&url, down).await;
            let with_header = web.clone().with("traceparent", PARENT);
            let with_both = with_header.clone().with("tracestate", "v=1");
            let broken = web.clone().with("traceparent", "canary");
            let cells = [
                (&web, plain.clone(), None, None),
                (&with_header, plain.clone(), Some(PARENT), None),
                (&with_both, plain.clone(), Some(PARENT), Some("v=1")),
                (
                    &web.clone().with("traceparent", OTHER),
                    traced(),
                    Some(PARENT),
                    Some("a=1,b=2"),
                ),
                (&web, traced(), Some(PARENT), Some("a=1,b=2")),
                (&broken, plain.clone(), None, None),
            ];
            for (number, (web, params, parent, state)) in cells.into_iter().enumerate() {
                let web = web.clone();
                let calling =
                    tokio::spawn(async move { web.request(number, "tools/call", params).await });
                let said = call_heard(&mut stage).await;
                said.text("done");
                let answer = calling.await.unwrap().only().await;
                assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
                let found = &said.params()["_meta"];
                assert_eq!(found["traceparent"].as_str(), parent, "{between} {number}");
                assert_eq!(found["tracestate"].as_str(), state, "{between} {number}");
                assert_eq!(said.header("traceparent"), parent, "{between} {number}");
                assert_eq!(said.header("tracestate"), state, "{between} {number}");
            }
        }
    }
}
