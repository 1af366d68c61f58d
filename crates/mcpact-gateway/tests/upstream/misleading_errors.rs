//! Modern HTTP servers with errors that look like those of another revision.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use mcpact_gateway::{Aggregator, AggregatorSettings, ServerEntry, Target, UpstreamServer};
use mcpact_sim::scripted::TestClient;
use mcpact_sim::scripted::http_server::{HttpScript, result};
use mcpact_sim::scripted::message::{
    discover_result, error_response, initialize_result, text_result,
};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::targets::upstream;

/// Errors of legacy servers for modern requests; a modern server may return them for other reasons.
const SESSION_ERRORS: [(u16, i64, &str); 4] = [
    (400, -32000, "Bad Request: No valid session ID provided"),
    (400, -32600, "this session is already in use"),
    (400, -32000, "the database is not initialized"),
    (404, -32001, "there is no chat session `7`"),
];

/// Errors of servers that do not support the revision of the request.
const VERSION_ERRORS: [(u16, i64, &str); 2] = [
    (400, -32022, "Unsupported protocol version"),
    (400, -32000, "Bad Request: Unsupported protocol version"),
];

fn refused(message: &Value, (status, code, text): (u16, i64, &str)) -> HttpResponse {
    let error = json!({"code": code, "message": text});
    HttpResponse::json(status, error_response(message, error).to_string())
}

/// Response of a modern server that refuses everything but `server/discover`.
fn modern(message: &Value, error: (u16, i64, &str)) -> HttpResponse {
    match message["method"].as_str() {
        Some("server/discover") => result(message, discover_result(json!({"tools": {}}))),
        _ => refused(message, error),
    }
}

/// Sends a request from a client of each era; returns the responses.
async fn ask_both(bridge: &Arc<UpstreamServer>, method: &str, params: Value) -> [Value; 2] {
    let mut modern = TestClient::silent(bridge);
    let mut legacy = TestClient::silent(bridge);
    legacy.open("2025-11-25", json!({})).await;
    [
        modern.call_modern(1, method, params.clone()).await,
        legacy.call(1, method, params).await,
    ]
}

fn call() -> Value {
    json!({"name": "it", "arguments": {}})
}

/// A request that a modern server refuses with a session error is sent once; the client gets the error.
#[tokio::test]
async fn session_error_of_a_modern_server_reaches_the_client() {
    let requests = [("tools/call", call()), ("tools/list", json!({}))];
    for (error, (method, params)) in SESSION_ERRORS
        .into_iter()
        .flat_map(|error| requests.clone().map(|request| (error, request)))
    {
        let script = move |_: &HttpRequest, message: &Value| modern(message, error);
        let (server, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(url));
        for answer in ask_both(&bridge, method, params).await {
            assert_eq!(answer["error"]["code"], error.1, "{error:?}: {answer}");
            assert_eq!(answer["error"]["message"], error.2, "{answer}");
        }
        let count = server.received(method).len();
        assert_eq!(count, 2, "one per client: {method} {error:?}");
    }
}

/// A server that refuses its own revision, and negotiates it again, gets a request once. The error names the server as
/// the cause.
#[tokio::test]
async fn request_is_sent_once_if_the_server_refuses_its_own_revision() {
    for error in VERSION_ERRORS {
        let script = move |_: &HttpRequest, message: &Value| modern(message, error);
        let (server, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(url));
        for answer in ask_both(&bridge, "tools/call", call()).await {
            let error = &answer["error"];
            assert_eq!(error["data"]["reason"], "upstream_misbehaved", "{answer}");
            let text = error["message"].as_str().unwrap();
            assert!(text.contains("rejects requests of 2026-07-28"), "{text}");
        }
        assert_eq!(server.received("tools/call").len(), 2, "one per client");
    }
}

/// The error data of a server never causes a resend.
#[tokio::test]
async fn error_data_of_a_server_never_causes_a_resend() {
    let script = move |_: &HttpRequest, message: &Value| match message["method"].as_str() {
        Some("server/discover") => result(message, discover_result(json!({"tools": {}}))),
        _ => {
            let data = json!({"reason": "upstream_changed"});
            let error = json!({"code": -32603, "message": "no", "data": data});
            HttpResponse::json(200, error_response(message, error).to_string())
        }
    };
    let (server, url) = HttpScript::listen(script).await;
    let bridge = upstream(Target::url(url));
    for answer in ask_both(&bridge, "tools/call", call()).await {
        assert_eq!(answer["error"]["message"], "no", "{answer}");
    }
    assert_eq!(server.received("tools/call").len(), 2, "one per client");
}

/// The aggregator requests a list once if a modern server refuses it with such an error, and reports the error.
#[tokio::test]
async fn aggregator_requests_a_refused_list_once() {
    let own = SESSION_ERRORS.map(|error| (error, error.2));
    let ours = VERSION_ERRORS.map(|error| (error, "it rejects requests of 2026-07-28"));
    for (error, reported) in own.into_iter().chain(ours) {
        let script = move |_: &HttpRequest, message: &Value| modern(message, error);
        let (server, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(url));
        let member = ServerEntry::new("far", bridge);
        let hub =
            Aggregator::new(vec![Arc::clone(&member)], AggregatorSettings::default()).unwrap();
        let mut client = TestClient::silent(&hub);
        let answer = client.call_modern(1, "tools/list", json!({})).await;
        assert_eq!(answer["result"]["tools"], json!([]), "{answer}");
        assert_eq!(server.received("tools/list").len(), 1, "{error:?}");
        let lacking = member.lacking().join("; ");
        assert!(lacking.contains(reported), "{error:?}: {lacking}");
        assert_eq!(member.failure(), None, "the server is available: {error:?}");
    }
}

/// A modern server was replaced by a legacy one, which requires a session: lists and calls are sent again after a new
/// handshake.
#[tokio::test]
async fn legacy_server_in_place_of_a_modern_one_is_negotiated_again() {
    for error in SESSION_ERRORS {
        let is_legacy = Arc::new(AtomicBool::new(false));
        let turned = Arc::clone(&is_legacy);
        let sessions = Mutex::new(0);
        let script = move |request: &HttpRequest, message: &Value| {
            if !is_legacy.load(Ordering::Relaxed) {
                return match message["method"].as_str() {
                    Some("tools/call") => result(message, text_result("modern")),
                    Some("tools/list") => result(message, listed("modern")),
                    _ => result(message, discover_result(json!({"tools": {}}))),
                };
            }
            let method = message["method"].as_str();
            if request.verb == Method::GET {
                return HttpResponse::empty(405);
            }
            if method == Some("initialize") {
                let introduction = initialize_result("2025-06-18", json!({"tools": {}}));
                let mut sessions = sessions.lock().unwrap();
                *sessions += 1;
                let header = http::HeaderName::from_static("mcp-session-id");
                return result(message, introduction).with(header, &format!("s{sessions}"));
            }
            match (request.header("mcp-session-id"), method) {
                (None, _) => refused(message, error),
                (_, Some("tools/call")) => result(message, text_result("legacy")),
                (_, Some("tools/list")) => result(message, listed("legacy")),
                _ => HttpResponse::empty(202),
            }
        };
        let (_, url) = HttpScript::listen(script).await;
        let bridge = upstream(Target::url(&url));
        let listing = upstream(Target::url(url));
        for expected in ["modern", "legacy"] {
            for answer in ask_both(&bridge, "tools/call", call()).await {
                let text = &answer["result"]["content"][0]["text"];
                assert_eq!(text, expected, "{error:?}: {answer}");
            }
            for answer in ask_both(&listing, "tools/list", json!({})).await {
                let name = &answer["result"]["tools"][0]["name"];
                assert_eq!(name, expected, "{error:?}: {answer}");
            }
            turned.store(true, Ordering::Relaxed);
        }
    }
}

fn listed(name: &str) -> Value {
    json!({
        "resultType": "complete",
        "tools": [{"name": name, "inputSchema": {"type": "object"}}],
        "ttlMs": 0,
        "cacheScope": "private",
    })
}
