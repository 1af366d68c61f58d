//! Servers on HTTP that refuse in JSON of their framework, which is no message, or with a status alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::scripted::{Scripted, discovered, event, result, stream, texted};

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

async fn called(bridge: &Arc<UpstreamServer>) -> Value {
    let mut client = Raw::before(bridge);
    let call = json!({"name": "it", "arguments": {}});
    client.ask_modern(1, "tools/call", call).await
}

/// P6: a refusal of the first question that is no message leads to a handshake, whatever JSON it is.
#[tokio::test]
async fn json_that_is_no_message_means_legacy() {
    for (status, body) in REFUSALS {
        let script = move |arrival: &HttpRequest, message: &Value| match told(message, "2025-06-18")
        {
            Some(told) => result(message, told),
            None if arrival.verb == Method::GET => HttpResponse::empty(405),
            None if message.get("id").is_none() => HttpResponse::empty(202),
            None => HttpResponse::json(status, body),
        };
        let (server, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
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
        let script = move |arrival: &HttpRequest, message: &Value| {
            if arrival.verb == Method::GET {
                let (sender, answer) = stream();
                let endpoint = bytes::Bytes::from_static(b"event: endpoint\ndata: /messages\n\n");
                sender.send(endpoint).unwrap();
                *open.lock().unwrap() = Some(sender);
                return answer;
            }
            if arrival.path != "/messages" {
                return HttpResponse::json(status, body);
            }
            if let Some(told) = told(message, "2024-11-05") {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": told});
                let answer = event(None, None, &answer.to_string());
                let open = open.lock().unwrap();
                open.as_ref().unwrap().send(answer).unwrap();
            }
            HttpResponse::empty(202)
        };
        let (_, target) = Scripted::listen(script).await;
        let settings = UpstreamSettings {
            mode,
            ..UpstreamSettings::default()
        };
        let answer = called(&UpstreamServer::new(target, settings).unwrap()).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{status} {body} {mode:?}: {answer}");
    }
}

/// A modern server that refuses a call with a status alone, and is the same as before, may have seen the call: it
/// is not made again, and the status is told.
#[tokio::test]
async fn a_call_that_is_refused_by_a_status_is_made_once() {
    let bodies = [None, Some("Not Found"), Some(r#"{"detail":"Not Found"}"#)];
    for (status, body) in [404, 405]
        .into_iter()
        .flat_map(|status| bodies.map(|body| (status, body)))
    {
        let script = move |_: &HttpRequest, message: &Value| match message["method"].as_str() {
            Some("server/discover") => result(message, discovered(json!({"tools": {}}))),
            _ => match body {
                Some(body) => HttpResponse::json(status, body),
                None => HttpResponse::empty(status),
            },
        };
        let (server, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
        let answer = called(&bridge).await;
        let error = &answer["error"];
        assert_eq!(error["data"]["reason"], "upstream_status", "{answer}");
        let told = error["message"].as_str().unwrap();
        assert!(told.contains(&format!("status {status}")), "{told}");
        assert_eq!(server.heard("tools/call").len(), 1, "{status} {body:?}");
        assert_eq!(server.heard("server/discover").len(), 2, "{body:?}");
    }
}

/// A server that has become a legacy one, and knows nothing of modern requests, gets the call once it is met anew.
#[tokio::test]
async fn a_server_that_became_legacy_without_a_word_is_met_anew() {
    let is_legacy = Arc::new(AtomicBool::new(false));
    let turned = Arc::clone(&is_legacy);
    let script = move |arrival: &HttpRequest, message: &Value| {
        let is_legacy = is_legacy.load(Ordering::Relaxed);
        let is_modern_request = arrival.header("mcp-method").is_some();
        match told(message, "2025-06-18") {
            _ if is_legacy && is_modern_request => HttpResponse::empty(404),
            Some(told) if is_legacy => result(message, told),
            _ if is_legacy => HttpResponse::empty(202),
            _ if message["method"] == "server/discover" => {
                result(message, discovered(json!({"tools": {}})))
            }
            _ => result(message, texted("modern")),
        }
    };
    let (_, target) = Scripted::listen(script).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    for expected in ["modern", "done"] {
        let answer = called(&bridge).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, expected, "{answer}");
        turned.store(true, Ordering::Relaxed);
    }
}
