//! Servers on HTTP that refuse in JSON of their framework, which is no message, or with a status alone.

use std::sync::Mutex;

use http::Method;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_transport::http::server::{Answer, Arrival};
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::scripted::{Scripted, event, result, stream};

/// What frameworks say where a client expects a message.
const REFUSALS: [(u16, &str); 10] = [
    (400, r#"{"error":"Missing session"}"#),
    (
        400,
        r#"{"error":{"message":"Bad Request: no session","code":400}}"#,
    ),
    (400, r#""bad request""#),
    (400, "null"),
    (404, r#"{"detail":"Not Found"}"#),
    (405, r#"{"detail":"Method Not Allowed"}"#),
    (406, r#"{"message":"Not Acceptable","statusCode":406}"#),
    (415, r#"{"title":"Unsupported Media Type","status":415}"#),
    (422, r#"{"detail":[{"loc":["body","method"]}]}"#),
    (200, "{}"),
];

fn introduction(revision: &str) -> Value {
    json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "wordless", "version": "1"},
    })
}

/// What a legacy server answers, once it listens.
fn told(message: &Value, revision: &str) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(introduction(revision)),
        "tools/call" => Some(json!({"content": [{"type": "text", "text": "done"}]})),
        _ => None,
    }
}

async fn called(bridge: &std::sync::Arc<Bridge>) -> Value {
    let mut client = Raw::before(bridge);
    let call = json!({"name": "it", "arguments": {}});
    client.ask_modern(1, "tools/call", call).await
}

/// P6: a refusal of the first question that is no message leads to a handshake, whatever JSON it is.
#[tokio::test]
async fn json_that_is_no_message_means_legacy() {
    for (status, body) in REFUSALS {
        let script = move |arrival: &Arrival, message: &Value| match told(message, "2025-06-18") {
            Some(told) => result(message, told),
            None if arrival.verb == Method::GET => Answer::empty(405),
            None if message.get("id").is_none() => Answer::empty(202),
            None => Answer::json(status, body),
        };
        let (server, target) = Scripted::listen(script).await;
        let bridge = Bridge::new(target, BridgeSettings::default()).unwrap();
        let answer = called(&bridge).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{status} {body}: {answer}");
        assert_eq!(server.heard("server/discover").len(), 1, "{status} {body}");
    }
}

/// P6: the same to `initialize` leads to the transport of the first revision, also where only legacy is tried.
#[tokio::test]
async fn json_that_is_no_message_leads_to_http_sse() {
    let refusals = REFUSALS.into_iter().filter(|(status, _)| *status >= 400);
    let modes = [EraMode::Auto, EraMode::Legacy];
    for ((status, body), mode) in refusals.flat_map(|refusal| modes.map(|mode| (refusal, mode))) {
        let open = Mutex::new(None);
        let script = move |arrival: &Arrival, message: &Value| {
            if arrival.verb == Method::GET {
                let (sender, answer) = stream();
                let endpoint = bytes::Bytes::from_static(b"event: endpoint\ndata: /messages\n\n");
                sender.send(endpoint).unwrap();
                *open.lock().unwrap() = Some(sender);
                return answer;
            }
            if arrival.path != "/messages" {
                return Answer::json(status, body);
            }
            if let Some(told) = told(message, "2024-11-05") {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": told});
                let answer = event(None, None, &answer.to_string());
                let open = open.lock().unwrap();
                open.as_ref().unwrap().send(answer).unwrap();
            }
            Answer::empty(202)
        };
        let (_, target) = Scripted::listen(script).await;
        let settings = BridgeSettings {
            mode,
            ..BridgeSettings::default()
        };
        let answer = called(&Bridge::new(target, settings).unwrap()).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{status} {body} {mode:?}: {answer}");
    }
}
