//! HTTP servers that refuse requests with JSON that is not a message, or with a status only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::TestClient;
use mcpact_sim::scripted::http_server::{HttpScript, event, result, stream};
use mcpact_sim::scripted::message::{discover_result, initialize_result, response, text_result};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::targets::upstream;

/// Responses of web frameworks in place of a message.
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

/// Result of a legacy server; none for methods that it does not know.
fn legacy_result(message: &Value, revision: &str) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(initialize_result(revision, json!({"tools": {}}))),
        "tools/call" => Some(json!({"content": [{"type": "text", "text": "done"}]})),
        _ => None,
    }
}

async fn called(bridge: &Arc<UpstreamServer>) -> Value {
    let mut client = TestClient::silent(bridge);
    let call = json!({"name": "it", "arguments": {}});
    client.call_modern(1, "tools/call", call).await
}

/// P6: a response to `server/discover` that is not a message leads to a legacy handshake.
#[tokio::test]
async fn discovery_without_a_message_leads_to_a_legacy_handshake() {
    for (status, body) in REFUSALS {
        let script = move |request: &HttpRequest, message: &Value| match legacy_result(
            message,
            "2025-06-18",
        ) {
            Some(known) => result(message, known),
            None if request.verb == Method::GET => HttpResponse::empty(405),
            None if message.get("id").is_none() => HttpResponse::empty(202),
            None => HttpResponse::json(status, body),
        };
        let (server, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(url));
        let answer = called(&bridge).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{status} {body}: {answer}");
        assert_eq!(
            server.received("server/discover").len(),
            1,
            "{status} {body}"
        );
    }
}

/// P6: a response to `initialize` that is not a message leads to HTTP+SSE, also if only legacy is tried.
#[tokio::test]
async fn initialize_without_a_message_leads_to_http_sse() {
    let refusals = REFUSALS.into_iter().filter(|(status, _)| *status >= 400);
    let modes = [EraMode::Auto, EraMode::Legacy];
    for ((status, body), mode) in refusals.flat_map(|refusal| modes.map(|mode| (refusal, mode))) {
        let open = Mutex::new(None);
        let script = move |request: &HttpRequest, message: &Value| {
            if request.verb == Method::GET {
                let (sender, answer) = stream();
                let endpoint = bytes::Bytes::from_static(b"event: endpoint\ndata: /messages\n\n");
                sender.send(endpoint).unwrap();
                *open.lock().unwrap() = Some(sender);
                return answer;
            }
            if request.path != "/messages" {
                return HttpResponse::json(status, body);
            }
            if let Some(known) = legacy_result(message, "2024-11-05") {
                let answer = event(None, None, &response(message, known).to_string());
                let open = open.lock().unwrap();
                open.as_ref().unwrap().send(answer).unwrap();
            }
            HttpResponse::empty(202)
        };
        let (_, url) = HttpScript::listen(script).await;
        let settings = UpstreamSettings {
            mode,
            ..UpstreamSettings::default()
        };
        let answer = called(&UpstreamServer::new(Target::url(url), settings).unwrap()).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, "done", "{status} {body} {mode:?}: {answer}");
    }
}

/// A modern server that refuses a call with a status only may have run it: the call is not sent again, and the error
/// contains the status.
#[tokio::test]
async fn call_refused_by_a_status_is_sent_once() {
    let bodies = [None, Some("Not Found"), Some(r#"{"detail":"Not Found"}"#)];
    for (status, body) in [404, 405]
        .into_iter()
        .flat_map(|status| bodies.map(|body| (status, body)))
    {
        let script = move |_: &HttpRequest, message: &Value| match message["method"].as_str() {
            Some("server/discover") => result(message, discover_result(json!({"tools": {}}))),
            _ => match body {
                Some(body) => HttpResponse::json(status, body),
                None => HttpResponse::empty(status),
            },
        };
        let (server, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(url));
        let answer = called(&bridge).await;
        let error = &answer["error"];
        assert_eq!(error["data"]["reason"], "upstream_status", "{answer}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(&format!("status {status}")), "{text}");
        assert_eq!(server.received("tools/call").len(), 1, "{status} {body:?}");
        assert_eq!(server.received("server/discover").len(), 2, "{body:?}");
    }
}

/// A server that became legacy, and answers modern requests with a status only, gets the call after a new handshake.
#[tokio::test]
async fn server_that_became_legacy_is_negotiated_again_after_a_status() {
    let is_legacy = Arc::new(AtomicBool::new(false));
    let turned = Arc::clone(&is_legacy);
    let script = move |request: &HttpRequest, message: &Value| {
        let is_legacy = is_legacy.load(Ordering::Relaxed);
        let is_modern_request = request.header("mcp-method").is_some();
        match legacy_result(message, "2025-06-18") {
            _ if is_legacy && is_modern_request => HttpResponse::empty(404),
            Some(known) if is_legacy => result(message, known),
            _ if is_legacy => HttpResponse::empty(202),
            _ if message["method"] == "server/discover" => {
                result(message, discover_result(json!({"tools": {}})))
            }
            _ => result(message, text_result("modern")),
        }
    };
    let (_, url) = HttpScript::listen(script).await;
    let bridge = upstream(Target::url(url));
    for expected in ["modern", "done"] {
        let answer = called(&bridge).await;
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(text, expected, "{answer}");
        turned.store(true, Ordering::Relaxed);
    }
}
