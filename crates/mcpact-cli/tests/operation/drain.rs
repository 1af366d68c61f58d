//! Graceful shutdown of gateway and bridge.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::harness::{
    Harness, PATIENCE, Running, builtin, call, handshake, listen, read, request, send, send_modern,
    signal, start_modern_request, start_request, wait_until,
};

/// Checks that a stopping gateway or bridge refuses new requests with `retry-after`, finishes
/// running calls, and exits with 0.
fn check_running_calls_finish(harness: &Harness, front: Running, tool: &str, name: &str) {
    let session = front.open("/mcp");
    let origin = front.origin.clone();
    let answered = std::thread::scope(|scope| {
        let calling = scope.spawn(|| send(&origin, "/mcp", Some(&session), &call(tool)));
        harness.wait_for_call();
        front.signal(name);
        wait_until(|| front.post("/mcp", None, &handshake()).status == 503);
        // For existing and new sessions.
        let mut other = request("tools/list", &json!({}));
        other["id"] = json!(2);
        for session in [Some(session.as_str()), None] {
            let request = session.map_or_else(handshake, |_| other.clone());
            let refused = front.post("/mcp", session, &request);
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.body.contains("gateway_draining"), "{refused:?}");
            assert!(refused.header("retry-after").is_some(), "{refused:?}");
        }
        assert!(!calling.is_finished());
        harness.open_the_gate();
        calling.join().unwrap()
    });
    assert_eq!(answered.status, 200);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(front.exit_code(), Some(0));
}

#[test]
fn gateway_finishes_running_calls() {
    let harness = Harness::new("");
    harness.configure(&format!("{}{}", harness.gated(), builtin("local")));
    check_running_calls_finish(&harness, harness.serve(), "gated__wait", "-TERM");
}

#[test]
fn bridge_finishes_running_calls() {
    let harness = Harness::new("");
    check_running_calls_finish(&harness, harness.bridge(), "wait", "-INT");
}

/// With and without a session, and on an open stream, the client gets an error.
#[test]
fn drain_timeout_aborts_running_calls() {
    let mut streamed = call("gated__wait");
    streamed["params"]["_meta"] = json!({"progressToken": "p"});
    for (kind, is_modern, call) in [
        ("application/json", false, call("gated__wait")),
        ("application/json", true, call("gated__wait")),
        ("text/event-stream", true, streamed),
    ] {
        let harness = Harness::new("");
        let server = harness.gated();
        harness.configure(&format!(
            "drain_seconds = 0.1\n{server}drain_seconds = 0.1\n"
        ));
        let gateway = harness.serve();
        let (session, origin) = (gateway.open("/mcp"), gateway.origin.clone());
        let reply = std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                if is_modern {
                    send_modern(&origin, "/mcp", &call)
                } else {
                    send(&origin, "/mcp", Some(&session), &call)
                }
            });
            harness.wait_for_call();
            gateway.signal("-TERM");
            assert_eq!(gateway.exit_code(), Some(0));
            calling.join().unwrap()
        });
        assert_eq!(reply.header("content-type").as_deref(), Some(kind));
        assert!(reply.body.contains("the server shut down"), "{reply:?}");
        assert!(reply.body.contains("\"id\":1"), "{reply:?}");
    }
}

/// Reads up to and including `end`.
fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.extend(byte);
    }
    String::from_utf8(heard).unwrap()
}

/// Opens a WebSocket without sending a message.
fn socket(origin: &str) -> TcpStream {
    let host = origin.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        socket,
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let head = read_until(&mut socket, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 101"), "{head:?}");
    socket
}

/// Close frame with status 1001, going away.
const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];

/// L26: websockets are closed with going away.
#[test]
fn websockets_are_closed_with_going_away() {
    let harness = Harness::new("");
    harness.configure(&format!("websocket = true\n{}", builtin("local")));
    let gateway = harness.serve();
    let mut socket = socket(&gateway.origin);
    gateway.signal("-TERM");
    let mut frame = [0; 4];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(frame, GOING_AWAY);
    drop(socket);
    assert_eq!(gateway.exit_code(), Some(0));
}

/// L26: WebSockets, even if the client does not reply, and the streams of all revisions close while
/// another client waits for its response.
#[test]
fn idle_streams_close_at_once_during_drain() {
    let harness = Harness::new("");
    let server = harness.gated();
    harness.configure(&format!(
        "websocket = true\nsse = true\ndrain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    let gateway = harness.serve();
    let (origin, waiting) = (gateway.origin.as_str(), gateway.open("/mcp"));
    let mut socket = socket(origin);
    let mut first = listen(origin, "/sse", None);
    read_until(&mut first, "event: endpoint");
    let mut legacy = listen(origin, "/mcp", Some(&gateway.open("/mcp")));
    read_until(&mut legacy, "\r\n\r\n");
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut modern =
        start_modern_request(origin, "/mcp", &request("subscriptions/listen", &wanted));
    read_until(&mut modern, "acknowledged");
    let calling = start_request(origin, "/mcp", &waiting, &call("gated__wait"));
    harness.wait_for_call();
    gateway.signal("-TERM");
    let mut frames = Vec::new();
    socket.read_to_end(&mut frames).unwrap();
    assert_eq!(frames, GOING_AWAY);
    for mut stream in [first, legacy, modern] {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert_eq!(harness.status()["gateway"]["state"], "draining");
    harness.open_the_gate();
    let answered = read(calling);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(gateway.exit_code(), Some(0));
}

/// Encodes a client message as a WebSocket frame with a zero mask.
fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    let [high, low] = length;
    let mut frame = vec![0x81, 0x80 | 126, high, low, 0, 0, 0, 0];
    frame.extend(text.as_bytes());
    frame
}

/// L26: it does not wait for calls of other clients.
#[test]
fn websocket_closes_after_its_last_response() {
    let harness = Harness::new("");
    let server = harness.gated();
    let second = harness.path("second");
    fs::create_dir(&second).unwrap();
    fs::copy(harness.path("gated"), second.join("gated")).unwrap();
    let slower = format!(
        "[servers.slower]\ncommand = \"{}/gated\"\ndrain_seconds = 3600\n",
        second.display()
    );
    harness.configure(&format!(
        "websocket = true\ndrain_seconds = 3600\n{server}drain_seconds = 3600\n{slower}"
    ));
    let gateway = harness.serve();
    let mut socket = socket(&gateway.origin);
    let mut calling = call("gated__wait");
    calling["id"] = json!(2);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [handshake(), ready, calling] {
        socket.write_all(&frame(&message)).unwrap();
    }
    let session = gateway.open("/mcp");
    let slow = start_request(&gateway.origin, "/mcp", &session, &call("slower__wait"));
    wait_until(|| harness.path("called").exists() && second.join("called").exists());
    gateway.signal("-TERM");
    wait_until(|| harness.status()["gateway"]["state"] == "draining");
    harness.open_the_gate();
    let mut frames = Vec::new();
    socket.read_to_end(&mut frames).unwrap();
    let heard = String::from_utf8_lossy(&frames);
    assert!(heard.contains("waited"), "{heard}");
    assert!(frames.ends_with(&GOING_AWAY), "{heard}");
    assert_eq!(harness.status()["gateway"]["state"], "draining");
    fs::write(second.join("gate"), "").unwrap();
    let answered = read(slow);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(gateway.exit_code(), Some(0));
}

/// After the drain timeout the client gets an error.
#[test]
fn stdio_requests_are_answered_after_end_of_input() {
    for is_open in [true, false] {
        let harness = Harness::new("");
        harness.configure(&format!("drain_seconds = 3\n{}", harness.gated()));
        let mut gateway = harness.serve_stdio();
        let mut input = gateway.stdin.take().unwrap();
        let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
        writeln!(input, "{}", handshake()).unwrap();
        writeln!(input, "{}", call("gated__wait")).unwrap();
        drop(input);
        harness.wait_for_call();
        if is_open {
            harness.open_the_gate();
        }
        let said: Vec<Value> = lines
            .by_ref()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        assert_eq!(gateway.wait().unwrap().code(), Some(0));
        let answer = said.last().unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        if is_open {
            assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
        } else {
            let why = answer["error"]["message"].as_str().unwrap();
            assert!(why.contains("the server shut down"), "{answer}");
        }
    }
}

#[test]
fn drain_does_not_wait_for_a_starting_server() {
    let harness = Harness::new("");
    harness.configure(&format!(
        "drain_seconds = 3600\n{}drain_seconds = 3600\n",
        harness.silent()
    ));
    let gateway = harness.serve();
    wait_until(|| harness.status()["servers"][0]["instances"][0]["state"] == "handshaking");
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
}

/// Legacy server that does not answer `tools/list` while the file `silent` exists. Its tool asks a question and writes the
/// answer to the file `told`.
const RETICENT: &str = r#"#!/bin/sh
here=$(dirname "$0")
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) result='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"reticent","version":"1"}}' ;;
        *'"tools/list"'*)
            [ -e "$here/silent" ] && : > "$here/listed" && continue
            result='"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
        *'"tools/call"'*)
            asked=$id
            printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}\n'
            continue ;;
        *'"action":'*)
            printf '%s\n' "$line" > "$here/told"
            id=$asked result='"result":{"content":[]}' ;;
        *) result='"error":{"code":-32601,"message":"unknown"}' ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result" ;;
    esac
done
"#;

/// Starts a gateway with a long drain timeout and the server above.
fn serve_with_long_drain(harness: &Harness) -> Running {
    let server = harness.program("reticent", RETICENT);
    harness.configure(&format!(
        "drain_seconds = 3600\nlist_seconds = 1\n{server}drain_seconds = 3600\n"
    ));
    harness.serve()
}

/// L26: drain does not wait for background requests.
#[test]
fn drain_does_not_wait_for_background_requests() {
    let harness = Harness::new("");
    fs::write(harness.path("silent"), "").unwrap();
    let gateway = serve_with_long_drain(&harness);
    let session = gateway.open("/mcp");
    let list = request("tools/list", &json!({}));
    let listed = gateway.post("/mcp", Some(&session), &list);
    assert!(listed.body.contains(r#""tools":[]"#), "{listed:?}");
    wait_until(|| harness.path("listed").exists());
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
}

/// L26: a disconnect alone does not cancel a call.
#[test]
fn drain_does_not_wait_for_calls_of_disconnected_clients() {
    let harness = Harness::new("");
    let server = harness.gated();
    harness.configure(&format!(
        "drain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    for (front, tool) in [(harness.serve(), "gated__wait"), (harness.bridge(), "wait")] {
        let session = front.open("/mcp");
        let calling = start_request(&front.origin, "/mcp", &session, &call(tool));
        harness.wait_for_call();
        drop(calling);
        front.signal("-TERM");
        assert_eq!(front.exit_code(), Some(0));
        fs::remove_file(harness.path("called")).unwrap();
    }
}

/// L26, BB-07: the server gets `cancel` as the answer to its question.
#[test]
fn drain_cancels_suspended_calls() {
    let harness = Harness::new("");
    let gateway = serve_with_long_drain(&harness);
    let mut asking = call("reticent__ask");
    asking["params"]["_meta"] =
        json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let asked = send_modern(&gateway.origin, "/mcp", &asking);
    assert!(asked.body.contains("input_required"), "{asked:?}");
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    let message = fs::read_to_string(harness.path("told")).unwrap();
    let message: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(message["id"], "q");
    assert_eq!(message["result"]["action"], "cancel");
}

/// L26, BB-07: a client that closed its end of stdio cannot answer.
#[test]
fn drain_cancels_questions_after_end_of_input() {
    let harness = Harness::new("");
    let server = harness.program("reticent", RETICENT);
    harness.configure(&format!(
        "drain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    let mut gateway = harness.serve_stdio();
    let mut input = gateway.stdin.take().unwrap();
    let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let mut asking = call("reticent__ask");
    asking["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    writeln!(input, "{asking}").unwrap();
    let asked = lines.next().unwrap().unwrap();
    assert!(asked.contains("input_required"), "{asked}");
    drop(input);
    assert_eq!(gateway.wait().unwrap().code(), Some(0));
    let message = fs::read_to_string(harness.path("told")).unwrap();
    assert!(message.contains(r#""action":"cancel""#), "{message}");
}

/// Meanwhile the status shows how long the gateway has been stopping.
#[test]
fn second_signal_exits_at_once() {
    let harness = Harness::new("");
    harness.configure(&format!("drain_seconds = 3600\n{}", harness.gated()));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let origin = gateway.origin.clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let call = call("gated__wait");
            std::panic::catch_unwind(|| send(&origin, "/mcp", Some(&session), &call))
        });
        harness.wait_for_call();
        let seconds = |of: &str| harness.status()["gateway"][of].as_u64();
        wait_until(|| seconds("uptime_seconds") >= Some(1));
        gateway.signal("-TERM");
        wait_until(|| harness.status()["gateway"]["state"] == "draining");
        let own = harness.status()["gateway"].clone();
        let [state, uptime] = ["state_seconds", "uptime_seconds"].map(|of| own[of].as_u64());
        assert!(state.is_some() && state < uptime, "{own}");
        gateway.signal("-TERM");
        assert_eq!(gateway.exit_code(), Some(1));
        // The connection was closed, or the client got an error.
        let _ = calling.join();
    });
}

/// The client gets every response before the bridge exits.
#[test]
fn stdio_bridge_finishes_running_calls() {
    let harness = Harness::new("");
    let mut bridge = harness.bridge_stdio();
    let mut input = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut say = |message: &Value| writeln!(input, "{message}").unwrap();
    let mut hear = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    say(&handshake());
    assert_eq!(hear()["id"], 1);
    say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    say(&call("wait"));
    harness.wait_for_call();
    signal(bridge.id(), "-TERM");
    let mut log = BufReader::new(bridge.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("drain started")));
    harness.open_the_gate();
    let answer = hear();
    assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
    assert_eq!(bridge.wait().unwrap().code(), Some(0));
}

/// L26: a queued call fails as not sent; a sent call may have had its effect.
#[test]
fn drain_timeout_distinguishes_sent_and_queued_calls() {
    let harness = Harness::new("");
    let server = harness.gated();
    let narrow = "max_instances = 1\nmax_concurrent = 1\n";
    harness.configure(&format!(
        "drain_seconds = 2\n{server}{narrow}drain_seconds = 0.1\n"
    ));
    let gateway = harness.serve();
    let sessions = [gateway.open("/mcp"), gateway.open("/mcp")];
    let origin = gateway.origin.clone();
    let ask = |session: &str| send(&origin, "/mcp", Some(session), &call("gated__wait")).body;
    let [seen, unseen] = std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&sessions[0]));
        harness.wait_for_call();
        let second = scope.spawn(|| ask(&sessions[1]));
        wait_until(|| harness.status()["servers"][0]["queued"] == 1);
        gateway.signal("-TERM");
        assert_eq!(gateway.exit_code(), Some(0));
        [first, second].map(|asking| asking.join().unwrap())
    });
    for words in ["it may have taken effect", "cut_off"] {
        assert!(seen.contains(words), "{seen}");
    }
    for words in ["the call was not sent", "upstream_closed"] {
        assert!(unseen.contains(words), "{unseen}");
    }
}
