//! Streamable HTTP of the legacy era: sessions, streams and resumption.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpact::client::{Client, ClientError, EraMode};
use mcpact_sim::scripted::message::initialize_result;
use serde_json::{Value, json};

use crate::http_server::{Event, HttpServer, Reply, Seen};

fn hello(seen: &Seen, version: &str, session: &str) -> Reply {
    let result = initialize_result(
        version,
        json!({ "tools": {}, "resources": { "subscribe": true } }),
    );
    let answer = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result });
    Reply::Json(200, vec![("Mcp-Session-Id", session.to_owned())], answer)
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn legacy() -> mcpact::client::ClientBuilder {
    Client::builder("t", "1").mode(EraMode::Legacy)
}

/// T3: the session id is sent after `initialize`, the version header from 2025-06-18 on, the standalone stream is
/// opened after the handshake, and the session is deleted at the end.
#[tokio::test]
async fn session_id_and_version_headers_are_sent() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = HttpServer::start(move |seen| match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => Reply::Empty(405, Vec::new()),
            ("DELETE", _) => Reply::Empty(200, Vec::new()),
            (_, "initialize") => hello(seen, version, "s-1"),
            (_, "notifications/initialized") => Reply::accepted(),
            _ => Reply::result(seen, json!({ "tools": [] })),
        })
        .await;
        let client = legacy()
            .header("X-Team", "blue")
            .connect(&server.url)
            .await
            .unwrap();
        assert_eq!(client.pact().revision().as_str(), version);
        client.list_tools().await.unwrap();
        server.until(|server| server.verbs("GET").len() == 1).await;
        client.close().await;

        let all = server.seen();
        let first = &all[0];
        assert_eq!(first.header("mcp-session-id"), None);
        assert_eq!(first.header("mcp-protocol-version"), None);
        assert_eq!(first.header("mcp-method"), None);
        assert_eq!(all[1].method(), "notifications/initialized");
        for seen in &all {
            assert_eq!(seen.header("x-team"), Some("blue"));
        }
        for seen in &all[1..] {
            assert_eq!(seen.header("mcp-session-id"), Some("s-1"), "{seen:?}");
            let expected = (version != "2025-03-26").then_some(version);
            assert_eq!(seen.header("mcp-protocol-version"), expected, "{seen:?}");
        }
        for post in server.verbs("POST") {
            assert_eq!(
                post.header("accept"),
                Some("application/json, text/event-stream")
            );
            assert_eq!(post.header("content-type"), Some("application/json"));
        }
        assert_eq!(
            server.verbs("GET")[0].header("accept"),
            Some("text/event-stream")
        );
        assert_eq!(server.verbs("DELETE").len(), 1);
    }
}

/// T3: a lost session is reopened once, and the request is resent.
#[tokio::test]
async fn lost_session_is_reopened_once() {
    let sessions = AtomicUsize::new(0);
    let server = HttpServer::start(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("GET" | "DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => {
            let number = sessions.fetch_add(1, Ordering::SeqCst);
            hello(seen, "2025-11-25", &format!("s-{number}"))
        }
        (_, "notifications/initialized") => Reply::accepted(),
        _ if seen.header("mcp-session-id") == Some("s-0") => Reply::Empty(404, Vec::new()),
        _ => Reply::result(seen, text("second")),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    let calls = (0..5).map(|_| client.call_tool("t", json!({})));
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap().all_text(), "second");
    }
    assert_eq!(server.of("initialize").len(), 2);
    assert_eq!(server.of("initialize")[1].header("mcp-session-id"), None);
    client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(server.of("initialize").len(), 2);
}

/// T3: a session that is lost again right away is an error, not a loop.
#[tokio::test]
async fn repeatedly_lost_session_is_an_error() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET" | "DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => hello(seen, "2025-11-25", "s"),
        (_, "notifications/initialized") => Reply::accepted(),
        _ => Reply::Json(
            404,
            Vec::new(),
            json!({ "jsonrpc": "2.0", "id": null,
            "error": { "code": -32001, "message": "Session not found" } }),
        ),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    let failed = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(matches!(failed, ClientError::SessionLost), "{failed:?}");
    assert_eq!(server.of("initialize").len(), 2);
    assert_eq!(server.of("tools/call").len(), 2);
}

/// T3, SE-10: a stream that ends before the response is resumed with the last event id after the server's delay, and
/// the response arrives there.
#[tokio::test]
async fn broken_stream_is_resumed() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => match seen.header("last-event-id") {
            Some("e-1") => Reply::Events(vec![Event::Text("id: e-2\nretry: 1".to_owned())]),
            Some("e-2") => Reply::Events(vec![Event::Data(
                json!({ "jsonrpc": "2.0", "id": 1, "result": text("late") }),
            )]),
            Some(_) | None => Reply::Empty(405, Vec::new()),
        },
        ("DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => hello(seen, "2025-11-25", "s"),
        (_, "notifications/initialized") => Reply::accepted(),
        _ => Reply::Events(vec![Event::Text("id: e-1\nretry: 120\ndata:".to_owned())]),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    let answer = client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(answer.all_text(), "late");
    let mut resumed = server.verbs("GET");
    resumed.retain(|seen| seen.header("last-event-id").is_some());
    assert_eq!(resumed.len(), 2);
    assert_eq!(resumed[0].header("mcp-session-id"), Some("s"));
    let waited = resumed[0].at - server.of("tools/call")[0].at;
    assert!(waited >= Duration::from_millis(115), "{waited:?}");
    assert_eq!(server.of("tools/call").len(), 1);
}

/// T3: without an event id a stream cannot be resumed: the call fails and is not resent.
#[tokio::test]
async fn broken_stream_without_event_id_is_an_error() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET" | "DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => hello(seen, "2025-11-25", "s"),
        (_, "notifications/initialized") => Reply::accepted(),
        _ => Reply::Events(vec![Event::Text(": nothing".to_owned())]),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    let failed = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::ProtocolViolation(_)),
        "{failed:?}"
    );
    assert_eq!(server.of("tools/call").len(), 1);
}

/// T3: the standalone stream delivers requests, their answers are posted, and the stream is resumed at its end.
#[tokio::test]
async fn standalone_stream_delivers_requests() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => match seen.header("last-event-id") {
            None => Reply::Events(vec![Event::Text(
                "id: g-1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}"
                    .to_owned(),
            )]),
            Some(_) => Reply::Events(vec![Event::Hold]),
        },
        ("DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => hello(seen, "2025-11-25", "s"),
        _ => Reply::accepted(),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    server
        .until(|server| server.seen().iter().any(|seen| seen.body["id"] == "p"))
        .await;
    server.until(|server| server.verbs("GET").len() == 2).await;
    assert_eq!(server.verbs("GET")[1].header("last-event-id"), Some("g-1"));
    let answer = server
        .seen()
        .into_iter()
        .find(|seen| seen.body["id"] == "p")
        .unwrap();
    assert_eq!(answer.body["result"], json!({}));
    assert_eq!(answer.header("mcp-session-id"), Some("s"));
    client.close().await;
}

/// F13: cancellation in the legacy era is a notification.
#[tokio::test]
async fn cancellation_is_a_notification() {
    let server = HttpServer::start(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET" | "DELETE", _) => Reply::Empty(405, Vec::new()),
        (_, "initialize") => hello(seen, "2025-11-25", "s"),
        (_, "tools/call") => Reply::Events(vec![Event::Hold]),
        _ => Reply::accepted(),
    })
    .await;
    let client = legacy().connect(&server.url).await.unwrap();
    let options = mcpact::client::CallOptions::new().timeout(Duration::from_millis(50));
    let failed = client
        .call_tool_with("t", json!({}), options)
        .await
        .unwrap_err();
    assert!(matches!(failed, ClientError::Timeout { .. }), "{failed:?}");
    server
        .until(|server| server.of("notifications/cancelled").len() == 1)
        .await;
    let cancelled = &server.of("notifications/cancelled")[0];
    assert_eq!(
        cancelled.body["params"]["requestId"],
        server.of("tools/call")[0].body["id"]
    );
}
