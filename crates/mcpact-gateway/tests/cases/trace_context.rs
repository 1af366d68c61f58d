//! Trace context between clients and servers.

use mcpact_sim::scripted::{HttpTestClient, TestClient, listen};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use crate::upstream;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";

fn traced() -> Value {
    json!({"name": "t", "arguments": {}, "_meta": {"traceparent": PARENT, "tracestate": "a=1,b=2",
        "baggage": "user=alice;ttl=3", "x/y": 1}})
}

fn assert_traced(said: &ReceivedMessage, between: &str) {
    let found = &said.params()["_meta"];
    for (key, value) in traced()["_meta"].as_object().unwrap() {
        assert_eq!(&found[key], value, "{key} {between}: {}", said.message);
    }
}

async fn on_the_web(url: &str, revision: Revision) -> HttpTestClient {
    match revision.era() {
        Era::Legacy => HttpTestClient::legacy(url, revision.as_str(), json!({})).await,
        Era::Modern => HttpTestClient::modern(url, json!({})),
    }
}

/// Returns the next call that the server receives; sessions also open a stream.
async fn call_heard(scripted: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = scripted.recv().await;
        if said.method() == "tools/call" {
            return said;
        }
    }
}

/// The trace context of a message reaches the server unchanged, in every combination of revisions.
#[tokio::test(start_paused = true)]
async fn trace_context_in_messages_is_forwarded() {
    for up in Revision::ALL {
        for down in Revision::ALL {
            let mut scripted = ScriptedServer::lines(Role::new(up));
            let upstream = upstream(&scripted);
            let mut peer = match down.era() {
                Era::Legacy => TestClient::legacy(&upstream, down.as_str(), json!({})).await,
                Era::Modern => TestClient::modern(&upstream, json!({})),
            };
            peer.request(1, "tools/call", traced()).await;
            let said = call_heard(&mut scripted).await;
            assert_traced(&said, &format!("from {down} to {up}"));
            said.text("done");
            let answer = peer.recv().await;
            assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
        }
    }
}

/// The trace context of HTTP headers is forwarded in the message and in the headers; that of the message takes
/// precedence.
#[tokio::test]
async fn trace_context_in_headers_is_forwarded() {
    let plain = json!({"name": "t", "arguments": {}});
    for up in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for down in [Revision::V2025_03_26, Revision::V2026_07_28] {
            let between = format!("from {down} to {up}");
            let mut scripted = ScriptedServer::http(Role::new(up)).await;
            let upstream = upstream(&scripted);
            let url = listen(&upstream).await;
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
                let said = call_heard(&mut scripted).await;
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
