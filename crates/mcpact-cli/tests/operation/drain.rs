//! The end of a gateway.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::house::{
    House, PATIENCE, Running, begin, begin_modern, builtin, call, handshake, listen, read, request,
    send, send_modern, signal, until,
};

/// A front that is told to stop takes no more requests and says when to come back, lets calls that run finish,
/// ends its programs, and is content.
fn calls_may_finish(house: &House, front: Running, tool: &str, name: &str) {
    let session = front.open("/mcp");
    let origin = front.origin.clone();
    let answered = std::thread::scope(|scope| {
        let calling = scope.spawn(|| send(&origin, "/mcp", Some(&session), &call(tool)));
        house.called();
        front.signal(name);
        until(|| front.post("/mcp", None, &handshake()).status == 503);
        // Neither for those who are there nor for those who come.
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
        house.open_the_gate();
        calling.join().unwrap()
    });
    assert_eq!(answered.status, 200);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(front.ended(), Some(0));
}

/// A gateway that is told to stop.
#[test]
fn calls_that_run_may_finish() {
    let house = House::new("");
    house.configure(&format!("{}{}", house.gated(), builtin("local")));
    calls_may_finish(&house, house.serve(), "gated__wait", "-TERM");
}

/// A bridge that is told to stop does the same on HTTP.
#[test]
fn calls_across_a_bridge_may_finish() {
    let house = House::new("");
    calls_may_finish(&house, house.bridge(), "wait", "-INT");
}

/// A call that does not end is cut off when its time is over, and told so: in a session, without one, and on a stream
/// that has begun.
#[test]
fn nobody_waits_for_ever() {
    let mut streamed = call("gated__wait");
    streamed["params"]["_meta"] = json!({"progressToken": "p"});
    for (kind, is_modern, call) in [
        ("application/json", false, call("gated__wait")),
        ("application/json", true, call("gated__wait")),
        ("text/event-stream", true, streamed),
    ] {
        let house = House::new("");
        let server = house.gated();
        house.configure(&format!(
            "drain_seconds = 0.1\n{server}drain_seconds = 0.1\n"
        ));
        let gateway = house.serve();
        let (session, origin) = (gateway.open("/mcp"), gateway.origin.clone());
        let reply = std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                if is_modern {
                    send_modern(&origin, "/mcp", &call)
                } else {
                    send(&origin, "/mcp", Some(&session), &call)
                }
            });
            house.called();
            gateway.signal("-TERM");
            assert_eq!(gateway.ended(), Some(0));
            calling.join().unwrap()
        });
        assert_eq!(reply.header("content-type").as_deref(), Some(kind));
        assert!(reply.body.contains("the server stops"), "{reply:?}");
        assert!(reply.body.contains("\"id\":1"), "{reply:?}");
    }
}

/// Everything that comes up to this.
fn read_up_to(stream: &mut TcpStream, end: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        heard.extend(byte);
    }
    String::from_utf8(heard).unwrap()
}

/// A WebSocket on which nothing was said.
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
    let head = read_up_to(&mut socket, "\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 101"), "{head:?}");
    socket
}

/// Close, with two bytes: 1001, going away.
const GOING_AWAY: [u8; 4] = [0x88, 2, 0x03, 0xe9];

/// L26: whoever has a socket is told that the gateway goes, and not left to find out.
#[test]
fn sockets_are_closed_in_order() {
    let house = House::new("");
    house.configure(&format!("websocket = true\n{}", builtin("local")));
    let gateway = house.serve();
    let mut socket = socket(&gateway.origin);
    gateway.signal("-TERM");
    let mut frame = [0; 4];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(frame, GOING_AWAY);
    drop(socket);
    assert_eq!(gateway.ended(), Some(0));
}

/// L26: whoever waits for nothing is sent away at once, although somebody else waits for an answer: from a WebSocket,
/// also if it does not answer, and from the streams of all revisions.
#[test]
fn who_waits_for_nothing_does_not_wait_for_others() {
    let house = House::new("");
    let server = house.gated();
    house.configure(&format!(
        "websocket = true\nsse = true\ndrain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    let gateway = house.serve();
    let (origin, waiting) = (gateway.origin.as_str(), gateway.open("/mcp"));
    let mut socket = socket(origin);
    let mut first = listen(origin, "/sse", None);
    read_up_to(&mut first, "event: endpoint");
    let mut legacy = listen(origin, "/mcp", Some(&gateway.open("/mcp")));
    read_up_to(&mut legacy, "\r\n\r\n");
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut modern = begin_modern(origin, "/mcp", &request("subscriptions/listen", &wanted));
    read_up_to(&mut modern, "acknowledged");
    let calling = begin(origin, "/mcp", &waiting, &call("gated__wait"));
    house.called();
    gateway.signal("-TERM");
    let mut frames = Vec::new();
    socket.read_to_end(&mut frames).unwrap();
    assert_eq!(frames, GOING_AWAY);
    for mut stream in [first, legacy, modern] {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert_eq!(house.status()["gateway"]["state"], "draining");
    house.open_the_gate();
    let answered = read(calling);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(gateway.ended(), Some(0));
}

/// A message of a client on a WebSocket, under a mask that changes nothing.
fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    let [high, low] = length;
    let mut frame = vec![0x81, 0x80 | 126, high, low, 0, 0, 0, 0];
    frame.extend(text.as_bytes());
    frame
}

/// L26: whoever waits for an answer on a WebSocket gets it, and is sent away then, although somebody else waits
/// longer.
#[test]
fn an_answer_on_a_socket_goes_before_its_end() {
    let house = House::new("");
    let server = house.gated();
    let second = house.path("second");
    fs::create_dir(&second).unwrap();
    fs::copy(house.path("gated"), second.join("gated")).unwrap();
    let slower = format!(
        "[servers.slower]\ncommand = \"{}/gated\"\ndrain_seconds = 3600\n",
        second.display()
    );
    house.configure(&format!(
        "websocket = true\ndrain_seconds = 3600\n{server}drain_seconds = 3600\n{slower}"
    ));
    let gateway = house.serve();
    let mut socket = socket(&gateway.origin);
    let mut calling = call("gated__wait");
    calling["id"] = json!(2);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [handshake(), ready, calling] {
        socket.write_all(&frame(&message)).unwrap();
    }
    let session = gateway.open("/mcp");
    let slow = begin(&gateway.origin, "/mcp", &session, &call("slower__wait"));
    until(|| house.path("called").exists() && second.join("called").exists());
    gateway.signal("-TERM");
    until(|| house.status()["gateway"]["state"] == "draining");
    house.open_the_gate();
    let mut frames = Vec::new();
    socket.read_to_end(&mut frames).unwrap();
    let heard = String::from_utf8_lossy(&frames);
    assert!(heard.contains("waited"), "{heard}");
    assert!(frames.ends_with(&GOING_AWAY), "{heard}");
    assert_eq!(house.status()["gateway"]["state"], "draining");
    fs::write(second.join("gate"), "").unwrap();
    let answered = read(slow);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(gateway.ended(), Some(0));
}

/// What was asked on pipes is answered when the client closes its side, and the program ends. Whoever is asked
/// too much is told when the time is over.
#[test]
fn what_was_asked_on_pipes_is_answered() {
    for is_open in [true, false] {
        let house = House::new("");
        house.configure(&format!("drain_seconds = 3\n{}", house.gated()));
        let mut gateway = house.serve_on_pipes();
        let mut input = gateway.stdin.take().unwrap();
        let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
        writeln!(input, "{}", handshake()).unwrap();
        writeln!(input, "{}", call("gated__wait")).unwrap();
        drop(input);
        house.called();
        if is_open {
            house.open_the_gate();
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
            assert!(why.contains("the server stops"), "{answer}");
        }
    }
}

/// A server that never says a word is not waited for when nobody else waits for it.
#[test]
fn a_server_that_does_not_start_is_not_waited_for() {
    let house = House::new("");
    house.configure(&format!(
        "drain_seconds = 3600\n{}drain_seconds = 3600\n",
        house.mute()
    ));
    let gateway = house.serve();
    until(|| house.status()["servers"][0]["instances"][0]["state"] == "handshaking");
    gateway.signal("-TERM");
    assert_eq!(gateway.ended(), Some(0));
}

/// A legacy server that lists nothing while there is a file `silent` beside it, and whose tool asks before it
/// answers. What it is told is written into a file `told`.
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

/// A gateway that waits for as long as anybody waits for something, before a server that makes people wait.
fn patient(house: &House) -> Running {
    let server = house.program("reticent", RETICENT);
    house.configure(&format!(
        "drain_seconds = 3600\nlist_seconds = 1\n{server}drain_seconds = 3600\n"
    ));
    house.serve()
}

/// L26: what the gateway itself wants to know is not waited for at the end.
#[test]
fn a_list_that_nobody_waits_for_is_not_waited_for() {
    let house = House::new("");
    fs::write(house.path("silent"), "").unwrap();
    let gateway = patient(&house);
    let session = gateway.open("/mcp");
    let list = request("tools/list", &json!({}));
    let listed = gateway.post("/mcp", Some(&session), &list);
    assert!(listed.body.contains(r#""tools":[]"#), "{listed:?}");
    until(|| house.path("listed").exists());
    gateway.signal("-TERM");
    assert_eq!(gateway.ended(), Some(0));
}

/// L26: nor is a call whose client has gone and cannot come back for the answer, although its going alone does not
/// cancel it.
#[test]
fn a_call_whose_client_has_gone_is_not_waited_for() {
    let house = House::new("");
    let server = house.gated();
    house.configure(&format!(
        "drain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    for (front, tool) in [(house.serve(), "gated__wait"), (house.bridge(), "wait")] {
        let session = front.open("/mcp");
        let calling = begin(&front.origin, "/mcp", &session, &call(tool));
        house.called();
        drop(calling);
        front.signal("-TERM");
        assert_eq!(front.ended(), Some(0));
        fs::remove_file(house.path("called")).unwrap();
    }
}

/// L26, BB-07: a question whose client cannot come back any more is taken for dismissed, and the server is told.
#[test]
fn a_question_that_nobody_can_answer_is_not_waited_for() {
    let house = House::new("");
    let gateway = patient(&house);
    let mut asking = call("reticent__ask");
    asking["params"]["_meta"] =
        json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}});
    let asked = send_modern(&gateway.origin, "/mcp", &asking);
    assert!(asked.body.contains("input_required"), "{asked:?}");
    gateway.signal("-TERM");
    assert_eq!(gateway.ended(), Some(0));
    let told = fs::read_to_string(house.path("told")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["id"], "q");
    assert_eq!(told["result"]["action"], "cancel");
}

/// L26, BB-07: nor is one whose client has closed its side of the pipe, and so cannot answer it.
#[test]
fn a_question_ends_with_the_input() {
    let house = House::new("");
    let server = house.program("reticent", RETICENT);
    house.configure(&format!(
        "drain_seconds = 3600\n{server}drain_seconds = 3600\n"
    ));
    let mut gateway = house.serve_on_pipes();
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
    let told = fs::read_to_string(house.path("told")).unwrap();
    assert!(told.contains(r#""action":"cancel""#), "{told}");
}

/// Whoever says it twice does not want to wait. Meanwhile it is told for how long the gateway has been stopping, not for how
/// long it has run.
#[test]
fn a_second_signal_ends_it_at_once() {
    let house = House::new("");
    house.configure(&format!("drain_seconds = 3600\n{}", house.gated()));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let origin = gateway.origin.clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let call = call("gated__wait");
            std::panic::catch_unwind(|| send(&origin, "/mcp", Some(&session), &call))
        });
        house.called();
        let seconds = |of: &str| house.status()["gateway"][of].as_u64();
        until(|| seconds("uptime_seconds") >= Some(1));
        gateway.signal("-TERM");
        until(|| house.status()["gateway"]["state"] == "draining");
        let own = house.status()["gateway"].clone();
        let [state, uptime] = ["state_seconds", "uptime_seconds"].map(|of| own[of].as_u64());
        assert!(state.is_some() && state < uptime, "{own}");
        gateway.signal("-TERM");
        assert_eq!(gateway.ended(), Some(1));
        // Its connection was cut, or it was told.
        let _ = calling.join();
    });
}

/// On pipes the client is told everything before the bridge ends.
#[test]
fn calls_across_a_bridge_on_pipes_may_finish() {
    let house = House::new("");
    let mut bridge = house.bridge_on_pipes();
    let mut input = bridge.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.stdout.take().unwrap()).lines();
    let mut say = |message: &Value| writeln!(input, "{message}").unwrap();
    let mut hear = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    say(&handshake());
    assert_eq!(hear()["id"], 1);
    say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    say(&call("wait"));
    house.called();
    signal(bridge.id(), "-TERM");
    let mut log = BufReader::new(bridge.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("about to stop")));
    house.open_the_gate();
    let answer = hear();
    assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
    assert_eq!(bridge.wait().unwrap().code(), Some(0));
}

/// L26: a call that still waits for its server when the time is over is told that nobody has seen it; one that its
/// server has seen may have had its effect.
#[test]
fn who_still_waits_at_the_end_is_told_that_nothing_was_done() {
    let house = House::new("");
    let server = house.gated();
    let narrow = "max_instances = 1\nmax_concurrent = 1\n";
    house.configure(&format!(
        "drain_seconds = 2\n{server}{narrow}drain_seconds = 0.1\n"
    ));
    let gateway = house.serve();
    let sessions = [gateway.open("/mcp"), gateway.open("/mcp")];
    let origin = gateway.origin.clone();
    let ask = |session: &str| send(&origin, "/mcp", Some(session), &call("gated__wait")).body;
    let [seen, unseen] = std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&sessions[0]));
        house.called();
        let second = scope.spawn(|| ask(&sessions[1]));
        until(|| house.status()["servers"][0]["queued"] == 1);
        gateway.signal("-TERM");
        assert_eq!(gateway.ended(), Some(0));
        [first, second].map(|asking| asking.join().unwrap())
    });
    for words in ["it may have had its effect", "cut_off"] {
        assert!(seen.contains(words), "{seen}");
    }
    for words in ["has not seen this call", "upstream_closed"] {
        assert!(unseen.contains(words), "{unseen}");
    }
}
