use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact_transport::budget::ConnectionAccount;
use mcpact_transport::http::server::HttpResponseBody;
use serde_json::{Value, json};

use super::*;
use crate::server::dispatch::Core;
use crate::server::{NoArgs, Server};

/// Server with a slow tool.
fn endpoint() -> HttpEndpoint<Core> {
    let server = Server::new("s", "1").tool("slow", "Takes a minute", |_: NoArgs, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok("done")
    });
    HttpEndpoint::new(server.build().unwrap())
}

fn http_request(headers: &[(&'static str, &str)], body: &Value) -> Box<HttpRequest> {
    let headers = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    Box::new(HttpRequest {
        verb: Verb::POST,
        path: String::from("/mcp"),
        query: None,
        headers: HeaderMap::from_iter(headers),
        body: Bytes::from(body.to_string()),
        peer: None,
        peer_uid: None,
        account: ConnectionAccount::default(),
        token_name: None,
    })
}

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Calls the tool as a client of this revision with this `Accept` header.
async fn call(
    endpoint: &HttpEndpoint<Core>,
    revision: Revision,
    accept: (&'static str, &str),
) -> HttpResponse {
    let mut params = json!({"name": "slow", "arguments": {}});
    let mut headers = vec![accept, ("mcp-protocol-version", revision.as_str())];
    let session;
    if revision == Revision::V2026_07_28 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision.as_str(),
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers.extend([("mcp-method", "tools/call"), ("mcp-name", "slow")]);
    } else {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision.as_str(), "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}}});
        let opened = endpoint.handle(http_request(&[BOTH], &hello)).await;
        let id = opened.headers.iter().find(|(name, _)| *name == SESSION_ID);
        session = id.unwrap().1.to_str().unwrap().to_owned();
        headers.push(("mcp-session-id", &session));
    }
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    endpoint.handle(http_request(&headers, &request)).await
}

/// Endpoint for this many sessions, two of them per connection.
fn small_endpoint(session_limit: usize) -> Arc<HttpEndpoint<Core>> {
    let server = Server::new("s", "1").settings(|settings| {
        settings.session_limit = session_limit;
        settings.sessions_per_connection = 2;
        settings.session_start = Duration::ZERO;
    });
    Arc::new(HttpEndpoint::new(server.build().unwrap()))
}

/// Sends a message on this connection, in this session; an `initialize` without one.
async fn send(
    endpoint: &HttpEndpoint<Core>,
    account: &ConnectionAccount,
    session: Option<&str>,
) -> HttpResponse {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut request = match session {
        None => http_request(&[BOTH], &initialize),
        Some(id) => http_request(&[BOTH, ("mcp-session-id", id)], &initialized),
    };
    request.account = account.clone();
    endpoint.handle(request).await
}

fn session_of(response: &HttpResponse) -> String {
    let mut headers = response.headers.iter();
    let id = headers.find(|(name, _)| *name == SESSION_ID).unwrap();
    id.1.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn connection_opens_a_limited_number_of_sessions() {
    let endpoint = small_endpoint(10);
    let (one, other) = (ConnectionAccount::default(), ConnectionAccount::default());
    let is_closed = |response: &HttpResponse| {
        let mut headers = response.headers.iter();
        headers.any(|(name, value)| name == "connection" && value == "close")
    };
    for is_last in [false, true] {
        let opened = send(&endpoint, &one, None).await;
        assert_eq!((opened.status, is_closed(&opened)), (200, is_last));
    }
    let refused = send(&endpoint, &one, None).await;
    assert_eq!((refused.status, is_closed(&refused)), (503, true));
    let HttpResponseBody::Json(text) = refused.body else {
        panic!("no JSON-RPC error");
    };
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("too_many_sessions") && text.contains("may open 2 sessions"),
        "{text}"
    );
    assert_eq!(send(&endpoint, &other, None).await.status, 200);
}

/// Sessions that no message followed make room first, then the one that is idle for longest.
#[tokio::test]
async fn idle_sessions_make_room_for_new_ones() {
    let endpoint = small_endpoint(3);
    let new = ConnectionAccount::default;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(session_of(&send(&endpoint, &new(), None).await));
    }
    for used in [0, 2] {
        let answer = send(&endpoint, &new(), Some(&sessions[used])).await;
        assert_eq!(answer.status, 202);
    }
    for expected in [[202, 404, 202], [404, 404, 202]] {
        let opened = session_of(&send(&endpoint, &new(), None).await);
        let live = sessions.iter().map(|id| endpoint.has_session(id));
        let live: Vec<bool> = live.collect();
        assert_eq!(live, expected.map(|status| status == 202));
        assert_eq!(send(&endpoint, &new(), Some(&opened)).await.status, 202);
    }
    assert_eq!(
        send(&endpoint, &new(), Some(&sessions[0])).await.status,
        404
    );
}

/// Sessions in use end one by one; unused ones end in batches.
#[tokio::test]
async fn one_started_session_makes_room_at_a_time() {
    let (limit, batch) = (200, 3);
    let endpoint = small_endpoint(limit);
    let new = ConnectionAccount::default;
    for _ in 0..limit {
        let opened = session_of(&send(&endpoint, &new(), None).await);
        send(&endpoint, &new(), Some(&opened)).await;
    }
    send(&endpoint, &new(), None).await;
    assert_eq!(endpoint.session_count(), limit);
    for session in lock(&endpoint.sessions).values() {
        lock(&session.usage).is_started = false;
    }
    send(&endpoint, &new(), None).await;
    assert_eq!(endpoint.session_count(), limit + 1 - batch);
}

#[tokio::test]
async fn session_without_a_second_message_ends() {
    let endpoint = small_endpoint(10);
    let account = ConnectionAccount::default();
    let silent = session_of(&send(&endpoint, &account, None).await);
    let started = session_of(&send(&endpoint, &account, None).await);
    send(&endpoint, &account, Some(&started)).await;
    endpoint.reap_idle();
    assert!(!endpoint.has_session(&silent) && endpoint.has_session(&started));
    assert_eq!(
        send(&endpoint, &account, None).await.status,
        200,
        "its slot is free"
    );
}

/// H15: a slow response becomes a stream with keep-alives, if the client accepts one.
#[tokio::test(start_paused = true)]
async fn slow_call_becomes_a_stream() {
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let endpoint = endpoint();
        let begin = tokio::time::Instant::now();
        let answer = call(&endpoint, revision, BOTH).await;
        assert!(begin.elapsed() < Duration::from_secs(30), "{revision}");
        let HttpResponseBody::Events(events) = answer.body else {
            panic!("{revision}: no stream");
        };
        let events: Vec<Bytes> = events.collect().await;
        let last = String::from_utf8(events.last().unwrap().to_vec()).unwrap();
        assert!(
            last.contains("\"id\":2") && last.contains("done"),
            "{revision}: {last}"
        );
        let plain = call(&endpoint, revision, ("accept", "application/json")).await;
        let HttpResponseBody::Json(text) = plain.body else {
            panic!("{revision}: not what was asked for");
        };
        assert!(
            String::from_utf8_lossy(&text).contains("done"),
            "{revision}"
        );
    }
}
