//! REVISIONS 8.5: streams, who hears what on them, and what leaving means.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::{Context, NoArgs, Server};
use mcpact_spec::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::http::{Raw, Running, modern, request};
use crate::peer::Peer;

const PATIENCE: Duration = Duration::from_secs(20);

/// A request with a streamed response.
pub(crate) struct Listener {
    stream: TcpStream,
    seen: String,
}

impl Listener {
    pub(crate) async fn open(server: &Running, raw: &Raw) -> Self {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(raw.encode().as_bytes()).await.unwrap();
        Self {
            stream,
            seen: String::new(),
        }
    }

    /// Reads until everything read so far satisfies this.
    pub(crate) async fn until(&mut self, is_enough: impl Fn(&str) -> bool) -> &str {
        let mut chunk = [0; 4096];
        while !is_enough(&self.seen) {
            let reading = timeout(PATIENCE, self.stream.read(&mut chunk));
            let count = reading
                .await
                .unwrap_or_else(|_| panic!("silence after {}", self.seen))
                .unwrap();
            assert!(count > 0, "it ended: {}", self.seen);
            self.seen
                .push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
        &self.seen
    }

    /// Reads until the stream is over.
    async fn end(&mut self) {
        self.until(|seen| seen.ends_with("\r\n0\r\n\r\n")).await;
    }
}

/// The last event that was read.
fn last_id(seen: &str) -> String {
    let mut ids = seen.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.next_back().unwrap().to_owned()
}

/// A tool that says something, then works until it is let go; `cancelled` counts those that never were.
fn patient() -> (Server, Arc<Semaphore>, Arc<Semaphore>) {
    struct Leaving(Option<Arc<Semaphore>>);
    impl Drop for Leaving {
        fn drop(&mut self) {
            if let Some(cancelled) = self.0.take() {
                cancelled.add_permits(1);
            }
        }
    }
    let (go_on, cancelled) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (gate, count) = (Arc::clone(&go_on), Arc::clone(&cancelled));
    let server = Server::new("t", "1").tool("work", "Works", move |_: NoArgs, context: Context| {
        let (gate, count) = (Arc::clone(&gate), Arc::clone(&count));
        async move {
            let mut leaving = Leaving(Some(count));
            context.progress(1.0, None, None).await?;
            gate.acquire().await?.forget();
            leaving.0 = None;
            Ok("worked")
        }
    });
    (server, go_on, cancelled)
}

fn work(id: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "work", "_meta": {"progressToken": "p"}}})
}

/// H14, SE-06: a disconnecting legacy client cancels nothing: the call continues, and its result is kept for a resumed
/// stream.
#[tokio::test]
async fn leaving_a_legacy_stream_is_no_cancellation() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (server, go_on, cancelled) = patient();
        let server = Running::start(server).await;
        let id = server.session(version).await;
        let mut listener =
            Listener::open(&server, &Raw::post(&work(1)).with("mcp-session-id", &id)).await;
        let seen = listener
            .until(|seen| seen.contains("notifications/progress") && seen.ends_with("\n\r\n"))
            .await;
        let place = last_id(seen);
        drop(listener);
        go_on.add_permits(1);
        let again = Raw::new("GET", "/mcp")
            .with("mcp-session-id", &id)
            .with("last-event-id", &place);
        let mut resumed = Listener::open(&server, &again).await;
        resumed.until(|seen| seen.contains("worked")).await;
        assert_eq!(cancelled.available_permits(), 0, "{version}");
    }
}

/// H14, SE-06, T3: a client that comes back for its stream takes it over, also from a connection that still stands.
#[tokio::test]
async fn a_stream_is_taken_over_from_a_connection_that_stands() {
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (server, go_on, _) = patient();
        let server = Running::start(server).await;
        let id = server.session(version).await;
        let with = |raw: Raw| raw.with("mcp-session-id", &id);
        let mut old = Listener::open(&server, &with(Raw::post(&work(1)))).await;
        let seen = old
            .until(|seen| seen.contains("notifications/progress") && seen.ends_with("\n\r\n"))
            .await;
        let place = last_id(seen);
        let again = with(Raw::new("GET", "/mcp")).with("last-event-id", &place);
        let mut first = Listener::open(&server, &again).await;
        first.until(|seen| seen.contains("200 OK")).await;
        old.end().await;
        let mut second = Listener::open(&server, &again).await;
        second.until(|seen| seen.contains("200 OK")).await;
        first.end().await;
        go_on.add_permits(1);
        second.until(|seen| seen.contains("worked")).await;
        assert!(!old.seen.contains("worked"), "{version}");
        assert!(!first.seen.contains("worked"), "{version}");
    }
}

/// H14, SE-07: a modern client that leaves cancels: the work ends.
#[tokio::test]
async fn leaving_a_modern_stream_cancels() {
    let (server, _go_on, cancelled) = patient();
    let server = Running::start(server).await;
    let mut call = modern(1, "tools/call", json!({"name": "work"}));
    call["params"]["_meta"]["progressToken"] = json!("p");
    let mut listener = Listener::open(&server, &Raw::modern(&call)).await;
    listener
        .until(|seen| seen.contains("notifications/progress"))
        .await;
    drop(listener);
    let ended = timeout(PATIENCE, cancelled.acquire()).await.unwrap();
    ended.unwrap().forget();
}

/// H15: event streams tell proxies not to hold them back.
#[tokio::test]
async fn streams_are_not_buffered() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    let get = Raw::new("GET", "/mcp").with("mcp-session-id", &id);
    let listen = modern(
        1,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}}),
    );
    for raw in [get, Raw::modern(&listen)] {
        let mut listener = Listener::open(&server, &raw).await;
        let head = listener
            .until(|seen| seen.contains("\r\n\r\n"))
            .await
            .to_ascii_lowercase();
        assert!(head.contains("x-accel-buffering: no"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        assert!(head.contains("cache-control: no-"), "{head}");
    }
}

/// H18, SE-09, SE-11: a message goes out on exactly one stream; no event id is given twice in a session; a replay
/// brings back its own stream only, and another session's ids bring back nothing.
#[tokio::test]
async fn a_message_is_on_one_stream_only() {
    let (server, go_on, _) = patient();
    let server = server.tool(
        "change",
        "Tells a change",
        |_: NoArgs, context: Context| async move {
            context.tools_changed();
            Ok("changed")
        },
    );
    let server = Running::start(server).await;
    let id = server.session("2025-11-25").await;
    let with = |raw: Raw| raw.with("mcp-session-id", &id);
    let mut own = Listener::open(&server, &with(Raw::new("GET", "/mcp"))).await;
    own.until(|seen| seen.contains("\r\n\r\n")).await;
    let mut call = Listener::open(&server, &with(Raw::post(&work(1)))).await;
    call.until(|seen| seen.contains("notifications/progress"))
        .await;
    let trigger = request(2, "tools/call", &json!({"name": "change"}));
    let answered = server.send(&with(Raw::post(&trigger))).await;
    assert!(!answered.body.contains("list_changed"), "{answered:?}");
    own.until(|seen| seen.contains("list_changed")).await;
    go_on.add_permits(1);
    call.until(|seen| seen.contains("worked")).await;
    assert!(!call.seen.contains("list_changed"), "{}", call.seen);
    assert_eq!(own.seen.matches("list_changed").count(), 1);
    assert!(
        !own.seen.contains("progress") && !own.seen.contains("worked"),
        "{}",
        own.seen
    );
    let ids = |seen: &str| -> Vec<String> {
        seen.lines()
            .filter_map(|line| line.strip_prefix("id: "))
            .map(str::to_owned)
            .collect()
    };
    let mut all = ids(&own.seen);
    all.extend(ids(&call.seen));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "every id once");
    let first = ids(&call.seen)[0].clone();
    let replayed = server
        .send(&with(Raw::new("GET", "/mcp")).with("last-event-id", &first))
        .await;
    assert!(
        replayed.body.contains("worked") && !replayed.body.contains("list_changed"),
        "{replayed:?}"
    );
    let other = server.session("2025-11-25").await;
    let foreign = Raw::new("GET", "/mcp")
        .with("mcp-session-id", &other)
        .with("last-event-id", &first);
    let foreign = server.send(&foreign).await;
    assert!(
        foreign.status == 400 && !foreign.body.contains("worked"),
        "{foreign:?}"
    );
}

/// SE-04, SE-08, H16: a modern-only server has neither a stream of its own nor sessions to delete.
#[tokio::test]
async fn a_modern_server_has_no_streams_of_its_own() {
    let server = Running::everything(&[Revision::V2026_07_28]).await;
    for verb in ["GET", "DELETE"] {
        let reply = server
            .send(
                &Raw::new(verb, "/mcp")
                    .with("mcp-session-id", "x")
                    .with("last-event-id", "0-1"),
            )
            .await;
        assert_eq!(reply.status, 405, "{verb}");
        assert_eq!(reply.header("mcp-session-id"), None);
    }
}

/// F17, P9: a subscription is acknowledged before anything else, its id is the request's in its own
/// type, and two clients with the same id each hear on their own stream what they asked for.
#[tokio::test]
async fn subscriptions_keep_their_ids() {
    let server = Running::everything(&Revision::ALL).await;
    let listen = |id: Value, wanted: Value| {
        let mut message = modern(0, "subscriptions/listen", json!({"notifications": wanted}));
        message["id"] = id;
        Raw::modern(&message)
    };
    let tools = json!({"toolsListChanged": true});
    let mut one = Listener::open(&server, &listen(json!(1), tools.clone())).await;
    let mut two = Listener::open(
        &server,
        &listen(json!(1), json!({"promptsListChanged": true})),
    )
    .await;
    let mut text = Listener::open(&server, &listen(json!("1"), tools)).await;
    for listener in [&mut one, &mut two, &mut text] {
        listener.until(|seen| seen.contains("acknowledged")).await;
    }
    let call = |name: &str| Raw::modern(&modern(5, "tools/call", json!({"name": name})));
    server.send(&call("test_trigger_tool_change")).await;
    server.send(&call("test_trigger_prompt_change")).await;
    one.until(|seen| seen.contains("tools/list_changed")).await;
    text.until(|seen| seen.contains("tools/list_changed")).await;
    two.until(|seen| seen.contains("prompts/list_changed"))
        .await;
    assert!(!one.seen.contains("prompts/list_changed") && !two.seen.contains("tools/list_changed"));
    for (listener, id) in [(&one, json!(1)), (&two, json!(1)), (&text, json!("1"))] {
        let data = listener
            .seen
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert_eq!(
            events[0]["method"],
            "notifications/subscriptions/acknowledged"
        );
        for event in &events {
            assert_eq!(
                event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id,
                "{event}"
            );
        }
    }
}

/// F17, P9, P17: on lines many subscriptions share a connection; each message is tagged with the one that it
/// belongs to, cancelling ends one of them, and no log message is ever on one.
#[tokio::test]
async fn subscriptions_share_a_connection() {
    let mut peer = Peer::start(&[Revision::V2026_07_28]);
    let tools = json!({"toolsListChanged": true});
    for id in [1, 2] {
        let ack = {
            peer.tell(&modern(
                id,
                "subscriptions/listen",
                json!({"notifications": tools}),
            ))
            .await;
            peer.hear().await
        };
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(
            ack["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            id
        );
        assert_eq!(ack["params"]["notifications"], tools);
    }
    let mut trigger = modern(3, "tools/call", json!({"name": "test_trigger_tool_change"}));
    trigger["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let heard = peer
        .follow(3, "tools/call", trigger["params"].clone())
        .await;
    let tags: Vec<&Value> = heard
        .iter()
        .filter(|m| m["method"] == "notifications/tools/list_changed")
        .map(|m| &m["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"])
        .collect();
    assert_eq!(tags.len(), 2, "{heard:?}");
    peer.tell(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    )
    .await;
    let mut heard = peer
        .follow(4, "tools/call", trigger["params"].clone())
        .await;
    heard.retain(|m| m["method"] == "notifications/tools/list_changed");
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(
        heard[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        2
    );
}

/// H13: whatever a modern client declares, nothing that it is sent is a request.
#[tokio::test]
async fn a_modern_client_is_never_asked_by_request() {
    let server = Running::everything(&Revision::ALL).await;
    let everything =
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}});
    let listed = server
        .send(&Raw::modern(&modern(1, "tools/list", json!({}))))
        .await
        .json();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        if name.contains("slow") {
            continue;
        }
        let mut call = modern(
            1,
            "tools/call",
            json!({"name": name, "arguments": {"text": "x", "prompt": "x", "message": "x"}}),
        );
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = everything.clone();
        call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        let reply = server.send(&Raw::modern(&call)).await;
        let is_stream = reply.header("content-type") == Some("text/event-stream");
        let messages = if is_stream {
            reply.events()
        } else {
            vec![reply.json()]
        };
        for message in messages {
            assert!(
                message.get("method").is_none() || message.get("id").is_none(),
                "{name}: {message}"
            );
        }
    }
}
