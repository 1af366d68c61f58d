//! Programs that ask the client something, and calls that are over before it has answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;

use serde_json::{Value, json};

use crate::house::{House, Running, begin, call, delete, handshake, until};

/// A server that asks. Its tool `wait` does nothing until it is answered, `along` asks without waiting, and `heard`
/// tells what the last answer was, which it also writes down.
const ASKING: &str = r#"#!/bin/sh
heard=nothing
ask() {
    printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}\n'
}
hear() {
    case "$1" in
        *'"error"'*) heard=refused ;;
        *) heard=answered ;;
    esac
    echo $heard > "$(dirname "$0")/heard"
}
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    result="\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"called\"}]}"
    case "$line" in
        *'"initialize"'*) result='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}' ;;
        *'"tools/list"'*) result='"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}},{"name":"along","inputSchema":{"type":"object"}},{"name":"heard","inputSchema":{"type":"object"}}]}' ;;
        *'"name":"wait"'*)
            ask
            while read -r said; do
                case "$said" in
                    *'"id":"q"'*) hear "$said"; break ;;
                esac
            done ;;
        *'"name":"along"'*) ask ;;
        *'"name":"heard"'*) result="\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$heard\"}]}" ;;
        *'"method"'*) result='"error":{"code":-32601,"message":"unknown"}' ;;
        *) hear "$line"; continue ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result" ;;
    esac
done
"#;

fn asking(rest: &str) -> House {
    let house = House::new("");
    let server = house.program("asking", ASKING);
    house.configure(&format!("{server}{rest}"));
    house
}

fn able() -> Value {
    let mut hello = handshake();
    hello["params"]["capabilities"] = json!({"elicitation": {}});
    hello
}

/// A session of a client that can be asked.
fn open(gateway: &Running) -> String {
    let reply = gateway.post("/mcp", None, &able());
    let session = reply.header("mcp-session-id").unwrap();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(gateway.post("/mcp", Some(&session), &note).status, 202);
    session
}

/// Calls a tool, and gives what the server asks then.
fn asked(gateway: &Running, session: &str, tool: &str) -> (Value, impl BufRead) {
    let stream = begin(&gateway.origin, "/mcp", session, &call(tool));
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "it asks");
        let data = line.strip_prefix("data:").map(str::trim);
        let message = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
        if let Some(question) = message.filter(|message| message["method"].is_string()) {
            return (question, lines);
        }
    }
}

/// What the server says that it was answered.
fn heard(gateway: &Running, session: &str) -> String {
    let reply = gateway.post("/mcp", Some(session), &call("asking__heard"));
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    let text = answer["result"]["content"][0]["text"].as_str();
    assert!(text.is_some(), "{answer}");
    text.unwrap().to_owned()
}

/// How the call of a client ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Cancelled,
    SessionEnded,
    TimeOver,
}

/// However the call of a client ends that has been asked something, a server that waits for the answer gets
/// one, and serves the next client.
#[test]
fn a_server_that_waits_is_answered_whatever_becomes_of_the_call() {
    let rows = [
        (Ending::Cancelled, 600),
        (Ending::SessionEnded, 600),
        (Ending::TimeOver, 3),
    ];
    for (ending, seconds) in rows {
        let house = asking(&format!("max_instances = 1\ncall_seconds = {seconds}\n"));
        let gateway = house.serve();
        let (one, other) = (open(&gateway), open(&gateway));
        let (_, mut rest) = asked(&gateway, &one, "asking__wait");
        match ending {
            Ending::Cancelled => {
                let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": 1}});
                assert_eq!(gateway.post("/mcp", Some(&one), &note).status, 202);
            }
            Ending::SessionEnded => {
                assert_eq!(delete(&gateway.origin, "/mcp", &one).status, 200);
            }
            Ending::TimeOver => {
                let mut told = String::new();
                rest.read_to_string(&mut told).unwrap();
                assert!(told.contains("upstream_timeout"), "{told}");
            }
        }
        until(|| {
            let told = std::fs::read_to_string(house.path("heard"));
            told.is_ok_and(|told| told == "refused\n")
        });
        // Whichever process it is that serves the other one.
        assert_ne!(heard(&gateway, &other), "answered", "{ending:?}");
    }
}

/// The client that has a session to itself answers what was asked when its call is over; where several share one,
/// the question is refused then.
#[test]
fn a_late_answer_counts_where_the_session_is_the_clients() {
    for (strategy, clients, expected) in [
        ("stateful", 2, "answered"),
        ("stateless", 1, "answered"),
        ("stateless", 2, "refused"),
    ] {
        let house = asking(&format!("strategy = \"{strategy}\"\n"));
        let gateway = house.serve();
        let sessions: Vec<String> = (0..clients).map(|_| open(&gateway)).collect();
        for session in &sessions {
            assert_eq!(heard(&gateway, session), "nothing");
        }
        let session = &sessions[0];
        let (question, mut rest) = asked(&gateway, session, "asking__along");
        let mut told = String::new();
        rest.read_to_string(&mut told).unwrap();
        assert!(told.contains("called"), "{told}");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        assert_eq!(gateway.post("/mcp", Some(session), &answer).status, 202);
        until(|| heard(&gateway, session) != "nothing");
        assert_eq!(heard(&gateway, session), expected, "{strategy} {clients}");
    }
}

/// A client on pipes.
struct Piped {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Piped {
    fn new(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines: Box::new(lines.map(Result::unwrap)),
        }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap()).unwrap()
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.say(message);
        self.hear()
    }
}

/// The same for a client on pipes, across a bridge and a gateway.
#[test]
fn a_late_answer_counts_on_pipes() {
    let house = asking("strategy = \"stateful\"\n");
    for (child, prefix) in [
        (house.bridge_to("./asking"), ""),
        (house.serve_on_pipes(), "asking__"),
    ] {
        let mut client = Piped::new(child);
        let opened = client.ask(&able());
        assert!(opened["result"].is_object(), "{opened}");
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let question = client.ask(&call(&format!("{prefix}along")));
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(client.hear()["id"], 1);
        let answer = json!({"action": "accept", "content": {}});
        client.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        until(|| {
            let told = client.ask(&call(&format!("{prefix}heard")));
            told["result"]["content"][0]["text"] == "answered"
        });
    }
}

/// What a modern server's task asks again, because it did not take the answer, is put to the client again, as
/// often as without a task; then the call fails with the reason.
#[test]
fn a_task_that_does_not_take_an_answer_asks_again() {
    let wrong = json!({"action": "accept", "content": {"other": "x"}});
    let right = json!({"action": "accept", "content": {"confirm": true}});
    let house = House::new("[servers.demo]\nbuiltin = \"everything\"\n");
    let mut client = Piped::new(house.serve_on_pipes());
    let opened = client.ask(&able());
    assert!(opened["result"].is_object(), "{opened}");
    client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let keeps_asking = "Too many input rounds: the server keeps asking";
    for (wrongs, asked, told) in [(2, 3, "Deleted"), (11, 10, keeps_asking)] {
        client.say(&call("demo__confirm_delete"));
        for round in 0.. {
            let heard = client.hear();
            if heard.get("method").is_none() {
                assert!(heard.to_string().contains(told), "{heard}");
                assert_eq!(round, asked);
                break;
            }
            let answer = if round < wrongs { &wrong } else { &right };
            client.say(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": answer}));
        }
    }
}
