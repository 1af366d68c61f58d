//! Elicitation: questions of a server that outlive the call.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;

use serde_json::{Value, json};

use crate::harness::{Harness, Running, call, delete, handshake, start_request, wait_until};

/// A server with questions. Its tool `wait` waits for the answer, `along` does not, and `heard`
/// returns the last answer.
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

fn harness_with_asking_server(rest: &str) -> Harness {
    let harness = Harness::new("");
    let server = harness.program("asking", ASKING);
    harness.configure(&format!("{server}{rest}"));
    harness
}

fn initialize_with_elicitation() -> Value {
    let mut hello = handshake();
    hello["params"]["capabilities"] = json!({"elicitation": {}});
    hello
}

/// Opens a session with the `elicitation` capability.
fn open(gateway: &Running) -> String {
    let reply = gateway.post("/mcp", None, &initialize_with_elicitation());
    let session = reply.header("mcp-session-id").unwrap();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(gateway.post("/mcp", Some(&session), &note).status, 202);
    session
}

/// Calls a tool and returns the question of the server.
fn call_and_question(gateway: &Running, session: &str, tool: &str) -> (Value, impl BufRead) {
    let stream = start_request(&gateway.origin, "/mcp", session, &call(tool));
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

/// Returns the answer that the server received.
fn received_answer(gateway: &Running, session: &str) -> String {
    let reply = gateway.post("/mcp", Some(session), &call("asking__heard"));
    let answer: Value = serde_json::from_str(&reply.body).unwrap();
    let text = answer["result"]["content"][0]["text"].as_str();
    assert!(text.is_some(), "{answer}");
    text.unwrap().to_owned()
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Cancelled,
    SessionEnded,
    TimeOver,
}

/// The server then serves the next client.
#[test]
fn elicitation_is_answered_however_the_call_ends() {
    let rows = [
        (Ending::Cancelled, 600),
        (Ending::SessionEnded, 600),
        (Ending::TimeOver, 3),
    ];
    for (ending, seconds) in rows {
        let harness =
            harness_with_asking_server(&format!("max_instances = 1\ncall_seconds = {seconds}\n"));
        let gateway = harness.serve();
        let (one, other) = (open(&gateway), open(&gateway));
        let (_, mut rest) = call_and_question(&gateway, &one, "asking__wait");
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
                let mut message = String::new();
                rest.read_to_string(&mut message).unwrap();
                assert!(message.contains("upstream_timeout"), "{message}");
            }
        }
        wait_until(|| {
            let message = std::fs::read_to_string(harness.path("heard"));
            message.is_ok_and(|message| message == "refused\n")
        });
        // The other session may use the same or another process.
        assert_ne!(received_answer(&gateway, &other), "answered", "{ending:?}");
    }
}

/// In a shared session the question is declined when the call ends.
#[test]
fn late_answer_is_accepted_in_an_exclusive_session() {
    for (strategy, clients, expected) in [
        ("stateful", 2, "answered"),
        ("stateless", 1, "answered"),
        ("stateless", 2, "refused"),
    ] {
        let harness = harness_with_asking_server(&format!("strategy = \"{strategy}\"\n"));
        let gateway = harness.serve();
        let sessions: Vec<String> = (0..clients).map(|_| open(&gateway)).collect();
        for session in &sessions {
            assert_eq!(received_answer(&gateway, session), "nothing");
        }
        let session = &sessions[0];
        let (question, mut rest) = call_and_question(&gateway, session, "asking__along");
        let mut message = String::new();
        rest.read_to_string(&mut message).unwrap();
        assert!(message.contains("called"), "{message}");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        assert_eq!(gateway.post("/mcp", Some(session), &answer).status, 202);
        wait_until(|| received_answer(&gateway, session) != "nothing");
        assert_eq!(
            received_answer(&gateway, session),
            expected,
            "{strategy} {clients}"
        );
    }
}

/// A client on stdio.
struct StdioClient {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl StdioClient {
    fn new(mut child: Child) -> Self {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            lines: Box::new(lines.map(Result::unwrap)),
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap()).unwrap()
    }

    fn request(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive()
    }
}

/// Through a bridge and a gateway.
#[test]
fn late_answer_is_accepted_on_stdio() {
    let harness = harness_with_asking_server("strategy = \"stateful\"\n");
    for (child, prefix) in [
        (harness.bridge_stdio_to("./asking"), ""),
        (harness.serve_stdio(), "asking__"),
    ] {
        let mut client = StdioClient::new(child);
        let opened = client.request(&initialize_with_elicitation());
        assert!(opened["result"].is_object(), "{opened}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let question = client.request(&call(&format!("{prefix}along")));
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(client.receive()["id"], 1);
        let answer = json!({"action": "accept", "content": {}});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        wait_until(|| {
            let message = client.request(&call(&format!("{prefix}heard")));
            message["result"]["content"][0]["text"] == "answered"
        });
    }
}

/// As often as without a task; then the call fails with the reason.
#[test]
fn task_repeats_a_rejected_question() {
    let wrong = json!({"action": "accept", "content": {"other": "x"}});
    let right = json!({"action": "accept", "content": {"confirm": true}});
    let harness = Harness::new("[servers.demo]\nbuiltin = \"everything\"\n");
    let mut client = StdioClient::new(harness.serve_stdio());
    let opened = client.request(&initialize_with_elicitation());
    assert!(opened["result"].is_object(), "{opened}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let keeps_asking = "Too many input rounds: the server keeps asking";
    for (wrongs, asked, message) in [(2, 3, "Deleted"), (11, 10, keeps_asking)] {
        client.send(&call("demo__confirm_delete"));
        for round in 0.. {
            let heard = client.receive();
            if heard.get("method").is_none() {
                assert!(heard.to_string().contains(message), "{heard}");
                assert_eq!(round, asked);
                break;
            }
            let answer = if round < wrongs { &wrong } else { &right };
            client.send(&json!({"jsonrpc": "2.0", "id": heard["id"], "result": answer}));
        }
    }
}
