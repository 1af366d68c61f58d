//! Modern servers on HTTP that refuse requests in the words of servers of another revision.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use http::Method;
use mcpact_gateway::{
    Aggregator, AggregatorSettings, ServerEntry, UpstreamServer, UpstreamSettings,
};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use mcpact_transport::memory;
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::scripted::{Scripted, discovered, result, texted};

/// What a legacy server says to a modern request, and a modern one may say of what was called.
const WORDS: [(u16, i64, &str); 4] = [
    (400, -32000, "Bad Request: No valid session ID provided"),
    (400, -32600, "this session is taken by somebody else"),
    (400, -32000, "the database is not initialized"),
    (404, -32001, "there is no chat session `7`"),
];

/// What a server says that does not speak the revision of the request.
const DISAGREEMENTS: [(u16, i64, &str); 2] = [
    (400, -32022, "Unsupported protocol version"),
    (400, -32000, "Bad Request: Unsupported protocol version"),
];

fn refused(message: &Value, (status, code, text): (u16, i64, &str)) -> HttpResponse {
    let error = json!({"code": code, "message": text});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    HttpResponse::json(status, answer.to_string())
}

/// What a modern server answers that refuses everything but the first question.
fn modern(message: &Value, words: (u16, i64, &str)) -> HttpResponse {
    match message["method"].as_str() {
        Some("server/discover") => result(message, discovered(json!({"tools": {}}))),
        _ => refused(message, words),
    }
}

/// What two clients, one of each era, are told.
async fn asked(bridge: &Arc<UpstreamServer>, method: &str, params: Value) -> [Value; 2] {
    let mut modern = Raw::before(bridge);
    let mut legacy = Raw::before(bridge);
    legacy.shake("2025-11-25", json!({})).await;
    [
        modern.ask_modern(1, method, params.clone()).await,
        legacy.ask(1, method, params).await,
    ]
}

fn call() -> Value {
    json!({"name": "it", "arguments": {}})
}

/// A modern server that names a session when it refuses a request, and is the same as before when it is met anew,
/// is given the request once, and its client is told what it said.
#[tokio::test]
async fn a_modern_server_may_speak_of_sessions() {
    let requests = [("tools/call", call()), ("tools/list", json!({}))];
    for (words, (method, params)) in WORDS
        .into_iter()
        .flat_map(|words| requests.clone().map(|request| (words, request)))
    {
        let script = move |_: &HttpRequest, message: &Value| modern(message, words);
        let (server, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
        for answer in asked(&bridge, method, params).await {
            assert_eq!(answer["error"]["code"], words.1, "{words:?}: {answer}");
            assert_eq!(answer["error"]["message"], words.2, "{answer}");
        }
        let heard = server.heard(method).len();
        assert_eq!(heard, 2, "each of them once: {method} {words:?}");
    }
}

/// A server that says of its own revision that it does not speak it, and agrees to it again when it is met anew, is
/// not another one: it is given a request once, and the client is told who is to blame.
#[tokio::test]
async fn a_server_that_refuses_its_own_revision_is_asked_once() {
    for words in DISAGREEMENTS {
        let script = move |_: &HttpRequest, message: &Value| modern(message, words);
        let (server, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
        for answer in asked(&bridge, "tools/call", call()).await {
            let error = &answer["error"];
            assert_eq!(error["data"]["reason"], "upstream_misbehaved", "{answer}");
            let told = error["message"].as_str().unwrap();
            assert!(told.contains("refuses requests of 2026-07-28"), "{told}");
        }
        assert_eq!(server.heard("tools/call").len(), 2, "each of them once");
    }
}

/// No error of a server makes it get a request twice, whatever the error says.
#[tokio::test]
async fn a_server_cannot_ask_for_a_call_again() {
    let script = move |_: &HttpRequest, message: &Value| match message["method"].as_str() {
        Some("server/discover") => result(message, discovered(json!({"tools": {}}))),
        _ => {
            let data = json!({"reason": "upstream_changed"});
            let error = json!({"code": -32603, "message": "no", "data": data});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            HttpResponse::json(200, answer.to_string())
        }
    };
    let (server, target) = Scripted::listen(script).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    for answer in asked(&bridge, "tools/call", call()).await {
        assert_eq!(answer["error"]["message"], "no", "{answer}");
    }
    assert_eq!(server.heard("tools/call").len(), 2, "each of them once");
}

/// A list that a modern server refuses in such words is asked for once by whoever shows many servers as one,
/// and what the server said is told.
#[tokio::test]
async fn a_list_that_is_refused_is_asked_for_once() {
    let own = WORDS.map(|words| (words, words.2));
    let ours = DISAGREEMENTS.map(|words| (words, "it refuses requests of 2026-07-28"));
    for (words, told) in own.into_iter().chain(ours) {
        let script = move |_: &HttpRequest, message: &Value| modern(message, words);
        let (server, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
        let member = ServerEntry::new("far", bridge);
        let hub =
            Aggregator::new(vec![Arc::clone(&member)], AggregatorSettings::default()).unwrap();
        let (link, theirs) = memory::pair();
        tokio::spawn(async move { hub.serve(theirs).await });
        let mut client = Raw::on(link);
        let answer = client.ask_modern(1, "tools/list", json!({})).await;
        assert_eq!(answer["result"]["tools"], json!([]), "{answer}");
        assert_eq!(server.heard("tools/list").len(), 1, "{words:?}");
        let lacking = member.lacking().join("; ");
        assert!(lacking.contains(told), "{words:?}: {lacking}");
        assert_eq!(member.failure(), None, "it is there: {words:?}");
    }
}

/// A legacy server that has taken the place of a modern one, and says that it wants a session, gets what it was
/// asked for once it is met anew, a list as well as a call.
#[tokio::test]
async fn a_server_that_became_legacy_and_wants_a_session_is_met_anew() {
    for words in WORDS {
        let is_legacy = Arc::new(AtomicBool::new(false));
        let turned = Arc::clone(&is_legacy);
        let sessions = Mutex::new(0);
        let script = move |arrival: &HttpRequest, message: &Value| {
            if !is_legacy.load(Ordering::Relaxed) {
                return match message["method"].as_str() {
                    Some("tools/call") => result(message, texted("modern")),
                    Some("tools/list") => result(message, listed("modern")),
                    _ => result(message, discovered(json!({"tools": {}}))),
                };
            }
            let method = message["method"].as_str();
            if arrival.verb == Method::GET {
                return HttpResponse::empty(405);
            }
            if method == Some("initialize") {
                let introduction = json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "legacy", "version": "1"},
                });
                let mut sessions = sessions.lock().unwrap();
                *sessions += 1;
                let header = http::HeaderName::from_static("mcp-session-id");
                return result(message, introduction).with(header, &format!("s{sessions}"));
            }
            match (arrival.header("mcp-session-id"), method) {
                (None, _) => refused(message, words),
                (_, Some("tools/call")) => result(message, texted("legacy")),
                (_, Some("tools/list")) => result(message, listed("legacy")),
                _ => HttpResponse::empty(202),
            }
        };
        let (_, target) = Scripted::listen(script).await;
        let bridge = UpstreamServer::new(target.clone(), UpstreamSettings::default()).unwrap();
        let listing = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
        for expected in ["modern", "legacy"] {
            for answer in asked(&bridge, "tools/call", call()).await {
                let text = &answer["result"]["content"][0]["text"];
                assert_eq!(text, expected, "{words:?}: {answer}");
            }
            for answer in asked(&listing, "tools/list", json!({})).await {
                let name = &answer["result"]["tools"][0]["name"];
                assert_eq!(name, expected, "{words:?}: {answer}");
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
