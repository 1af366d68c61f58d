//! The end of a gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::house::{
    House, Running, begin, builtin, call, handshake, request, send, send_modern, signal, until,
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

/// L26: whoever has a socket is told that the gateway goes, and not left to find out.
#[test]
fn sockets_are_closed_in_order() {
    let house = House::new("");
    house.configure(&format!("websocket = true\n{}", builtin("local")));
    let gateway = house.serve();
    let host = gateway.origin.strip_prefix("http://").unwrap().to_owned();
    let mut socket = TcpStream::connect(&host).unwrap();
    write!(
        socket,
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
    gateway.signal("-TERM");
    // Close, with two bytes: 1001, going away.
    let mut frame = [0; 4];
    socket.read_exact(&mut frame).unwrap();
    assert_eq!(frame, [0x88, 2, 0x03, 0xe9]);
    drop(socket);
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
    std::fs::write(house.path("silent"), "").unwrap();
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
        std::fs::remove_file(house.path("called")).unwrap();
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
    let told = std::fs::read_to_string(house.path("told")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["id"], "q");
    assert_eq!(told["result"]["action"], "cancel");
}

/// Whoever says it twice does not want to wait.
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
        gateway.signal("-TERM");
        until(|| house.status()["gateway"]["state"] == "draining");
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
