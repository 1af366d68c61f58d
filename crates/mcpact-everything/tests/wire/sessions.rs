//! Legacy sessions on HTTP: opened, spoken to, listened to, resumed, ended.

use mcpact_spec::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{Raw, Running, modern, request};

fn list() -> Value {
    request(1, "tools/list", &json!({}))
}

/// T3: SE-01 and the 404 and 405 rules: a session is needed, known, and can be ended.
#[tokio::test]
async fn a_session_is_needed_and_can_be_ended() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    assert!(
        id.len() >= 32 && id.bytes().all(|b| (0x21..=0x7e).contains(&b)),
        "{id}"
    );
    assert_ne!(id, server.session("2025-11-25").await);
    let with = |id: &str| Raw::post(&list()).with("mcp-session-id", id);
    assert_eq!(server.send(&with(&id)).await.status, 200);
    assert_eq!(server.send(&Raw::post(&list())).await.status, 400, "SE-01");
    assert_eq!(server.send(&with("unknown")).await.status, 404);
    let delete = Raw::new("DELETE", "/mcp").with("mcp-session-id", &id);
    assert_eq!(server.send(&delete).await.status, 200);
    assert_eq!(server.send(&with(&id)).await.status, 404);
    assert_eq!(server.send(&delete).await.status, 404);
}

/// T3: HH-18: the version header must be the negotiated one, or absent.
#[tokio::test]
async fn the_version_header_must_be_the_negotiated_one() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-06-18").await;
    let with = |version: &str| {
        Raw::post(&list())
            .with("mcp-session-id", &id)
            .with("mcp-protocol-version", version)
    };
    assert_eq!(server.send(&with("2025-06-18")).await.status, 200);
    for version in ["2025-11-25", "garbage", "2026-07-28"] {
        assert_eq!(server.send(&with(version)).await.status, 400, "{version}");
    }
}

/// T3, L6: a second `initialize` in a session is refused with 200, and the session lives on.
#[tokio::test]
async fn a_second_initialize_does_no_harm() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let second = Raw::post(&request(4, "initialize", &params)).with("mcp-session-id", &id);
    let refused = server.send(&second).await;
    assert_eq!((refused.code(), refused.status), (-32600, 200));
    assert_eq!(
        refused.header("mcp-session-id"),
        None,
        "no other session was opened"
    );
    let prompts = request(5, "prompts/list", &json!({}));
    let reply = server
        .send(&Raw::post(&prompts).with("mcp-session-id", &id))
        .await;
    assert!(reply.json()["result"]["prompts"].is_array());
    let unknown = request(6, "no/such", &json!({}));
    let reply = server
        .send(&Raw::post(&unknown).with("mcp-session-id", &id))
        .await;
    assert_eq!(
        (reply.code(), reply.status),
        (-32601, 200),
        "never 404 in a session"
    );
}

/// T3: a call that says something on the way answers with a stream, which can be resumed.
#[tokio::test]
async fn a_stream_can_be_resumed() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    let call = request(
        7,
        "tools/call",
        &json!({"name": "test_reconnection", "arguments": {}}),
    );
    let broken = server
        .send(&Raw::post(&call).with("mcp-session-id", &id))
        .await;
    assert_eq!(broken.header("content-type"), Some("text/event-stream"));
    assert!(broken.events().is_empty(), "the server let go: {broken:?}");
    let place = broken
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back()
        .unwrap()
        .to_owned();
    assert!(broken.body.contains("retry: 500"), "{broken:?}");
    let resumed = server
        .send(
            &Raw::new("GET", "/mcp")
                .with("mcp-session-id", &id)
                .with("last-event-id", &place),
        )
        .await;
    let events = resumed.events();
    assert_eq!(events.len(), 1, "{resumed:?}");
    assert_eq!(events[0]["id"], 7);
    let unknown = Raw::new("GET", "/mcp")
        .with("mcp-session-id", &id)
        .with("last-event-id", "99-1");
    let refused = server.send(&unknown).await;
    assert_eq!(refused.status, 400, "404 would end the session");
    assert!(refused.body.contains("Last-Event-ID"), "{refused:?}");
}

/// F4, T3: an update that comes before the client has opened its stream waits for it.
#[tokio::test]
async fn an_early_update_waits_for_the_stream() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    for message in [
        request(
            1,
            "resources/subscribe",
            &json!({"uri": "test://watched-resource"}),
        ),
        request(
            2,
            "tools/call",
            &json!({"name": "test_trigger_resource_update"}),
        ),
    ] {
        let reply = server
            .send(&Raw::post(&message).with("mcp-session-id", &id))
            .await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let listen = Raw::new("GET", "/mcp").with("mcp-session-id", &id);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(listen.encode().as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200", "the stream is open");
    let delete = Raw::new("DELETE", "/mcp").with("mcp-session-id", &id);
    assert_eq!(server.send(&delete).await.status, 200);
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert!(heard.contains("notifications/resources/updated"), "{heard}");
}

/// F2, T3: NL-11 and NL-14: batches are served at 2025-03-26 and refused elsewhere.
#[tokio::test]
async fn batches_follow_the_revision() {
    let server = Running::everything(&Revision::ALL).await;
    let ping = |id| request(id, "ping", &json!({}));
    let batch = json!([ping(1), request(2, "tools/list", &json!({}))]);
    let id = server.session("2025-03-26").await;
    let reply = server
        .send(&Raw::post(&batch).with("mcp-session-id", &id))
        .await
        .json();
    let mut ids: Vec<_> = reply
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    let notes = json!([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}]);
    let reply = server
        .send(&Raw::post(&notes).with("mcp-session-id", &id))
        .await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""), "NL-14");
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let id = server.session(version).await;
        let reply = server
            .send(&Raw::post(&batch).with("mcp-session-id", &id))
            .await;
        assert_eq!((reply.code(), reply.status), (-32600, 400), "{version}");
    }
}

/// T5: the transport of 2024-11-05, when it is switched on.
#[tokio::test]
async fn http_sse_is_served_when_asked_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.http_sse = true);
    let server = Running::start(server).await;
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    stream
        .write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut seen = String::new();
    let mut chunk = [0; 4096];
    while !seen.contains("sessionId=") || !seen.ends_with("\n\r\n") {
        let count = stream.read(&mut chunk).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    assert!(seen.contains("event: endpoint"), "{seen}");
    let path = seen
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap()
        .to_owned();
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut post = Raw::post(&request(1, "initialize", &params));
    post = post.at(&path);
    assert_eq!(server.send(&post).await.status, 202);
    while !seen.contains("\"result\"") {
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    assert!(seen.contains("2024-11-05"), "{seen}");
    let without = Running::everything(&Revision::ALL).await;
    assert_eq!(
        without.send(&Raw::new("GET", "/sse")).await.status,
        404,
        "off by default"
    );
}

/// T4, L26, P10: a server that stops ends its listeners with a result, and does not wait for them.
#[tokio::test]
async fn a_server_that_stops_ends_its_listeners() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = mcpact_everything::server(&Revision::ALL);
    let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(listening.address())
        .await
        .unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(listening.run(async {
        let _ = stopped.await;
    }));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = Raw::modern(&modern(9, "subscriptions/listen", wanted));
    stream.write_all(listen.encode().as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut chunk = [0; 4096];
    while !seen.contains("acknowledged") {
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(
        rest.contains(r#""id":9"#) && rest.contains("complete"),
        "{rest}"
    );
}
