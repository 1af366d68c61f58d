//! Many concurrent clients with equal request ids.

use std::collections::HashMap;
use std::sync::Arc;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use mcpact_sim::scripted::{HttpTestClient, Reply, TestClient, listen};

/// Number of pairs of clients; as many calls that may be asked questions need their own connections.
const PAIRS: u64 = 16;

/// Interval of calls with a question.
const ASKS: u64 = 10;

/// Returns the number of pairs of calls; more on request.
fn pairs(usual: u64) -> u64 {
    let asked = std::env::var("MCPACT_PAIRS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(usual)
}

/// Returns the parameters of a call, which identify its client.
fn call(pair: u64, side: &str, turn: u64) -> Value {
    json!({"name": "echo", "arguments": {"pair": pair, "side": side, "turn": turn}})
}

fn form(text: &str) -> Value {
    json!({"message": text, "requestedSchema": {"type": "object", "properties": {}}})
}

/// Server that answers the two calls of a pair in reverse order, each with its own arguments.
struct Mirror {
    era: Era,
    /// True if questions are matched by connection.
    has_connections: bool,
    alone: HashMap<(u64, u64), ReceivedMessage>,
    asked: HashMap<(usize, String), ReceivedMessage>,
    questions: u64,
}

impl Mirror {
    async fn run(mut self, mut stage: ScriptedServer) {
        while let Some(said) = stage.recv_or_end().await {
            match said.method() {
                "tools/call" => self.called(said),
                "GET" | "notifications/cancelled" => {}
                "" => {
                    let key = (said.connection, said.message["id"].to_string());
                    let call = self.asked.remove(&key).unwrap();
                    assert_eq!(said.message["result"]["content"]["echo"], echo(&call));
                    call.text(&echo(&call));
                }
                other => panic!("{other}"),
            }
        }
    }

    fn called(&mut self, said: ReceivedMessage) {
        if let Some(answers) = said.params().get("inputResponses") {
            assert_eq!(answers["k"]["content"]["echo"], echo(&said));
            assert_eq!(said.params()["requestState"], echo(&said));
            return said.text(&echo(&said));
        }
        let arguments = &said.params()["arguments"];
        let key = (
            arguments["pair"].as_u64().unwrap(),
            arguments["turn"].as_u64().unwrap(),
        );
        let Some(first) = self.alone.remove(&key) else {
            self.alone.insert(key, said);
            return;
        };
        for said in [said, first] {
            match key.1.is_multiple_of(ASKS) {
                true => self.ask(said),
                false => said.text(&echo(&said)),
            }
        }
    }

    /// Asks a question, with equal ids where the protocol allows it.
    fn ask(&mut self, said: ReceivedMessage) {
        match self.era {
            Era::Modern => {
                let request = json!({"method": "elicitation/create", "params": form(&echo(&said))});
                said.result(
                    json!({"resultType": "input_required", "inputRequests": {"k": request},
                    "requestState": echo(&said)}),
                );
            }
            Era::Legacy => {
                self.questions += 1;
                let id = if self.has_connections {
                    1
                } else {
                    self.questions
                };
                said.ask(id, "elicitation/create", form(&echo(&said)));
                let key = (said.connection, id.to_string());
                let before = self.asked.insert(key, said);
                assert!(
                    before.is_none(),
                    "two calls that are asked share a connection"
                );
            }
        }
    }
}

fn echo(said: &ReceivedMessage) -> String {
    said.params()["arguments"].to_string()
}

fn accept(question: &Value, expected: &str) -> Value {
    assert_eq!(
        question["message"], expected,
        "the question of another call"
    );
    json!({"action": "accept", "content": {"echo": expected}})
}

/// Returns the parameters of a call with the answers to the questions of its result.
fn retry(params: &Value, result: &Value, expected: &str) -> Value {
    let mut params = params.clone();
    params["requestState"] = result["requestState"].clone();
    for (key, request) in result["inputRequests"].as_object().unwrap() {
        params["inputResponses"][key] = accept(&request["params"], expected);
    }
    params
}

/// Makes calls on stdio, all with id 1.
async fn on_stdio(mut peer: TestClient, pair: u64, side: &str, turns: u64) {
    for turn in 0..turns {
        let params = call(pair, side, turn);
        let expected = params["arguments"].to_string();
        peer.request(1, "tools/call", params.clone()).await;
        loop {
            let message = peer.recv().await;
            if message["method"] == "elicitation/create" {
                let answer = accept(&message["params"], &expected);
                peer.answer(&message, answer).await;
                continue;
            }
            assert_eq!(message["id"], 1, "{message}");
            let result = &message["result"];
            if result["resultType"] == "input_required" {
                let retry = retry(&params, result, &expected);
                peer.request(1, "tools/call", retry).await;
                continue;
            }
            assert_eq!(result["content"][0]["text"], expected, "{message}");
            break;
        }
    }
}

/// Makes calls on HTTP, all with id 1.
async fn on_http(web: HttpTestClient, pair: u64, side: &str, turns: u64) {
    for turn in 0..turns {
        let params = call(pair, side, turn);
        let expected = params["arguments"].to_string();
        let mut reply: Reply = web.request(1, "tools/call", params.clone()).await;
        loop {
            let message = reply.next().await.unwrap();
            if message["method"] == "elicitation/create" {
                web.answer(&message, accept(&message["params"], &expected))
                    .await;
                continue;
            }
            assert_eq!(message["id"], 1, "{message}");
            let result = &message["result"];
            if result["resultType"] == "input_required" {
                let retry = retry(&params, result, &expected);
                reply = web.request(1, "tools/call", retry).await;
                continue;
            }
            assert_eq!(result["content"][0]["text"], expected, "{message}");
            break;
        }
    }
}

fn start(stage: ScriptedServer, server: Revision, has_connections: bool) -> Arc<UpstreamServer> {
    let bridge = UpstreamServer::new(stage.target.clone(), UpstreamSettings::default()).unwrap();
    let mirror = Mirror {
        era: server.era(),
        has_connections,
        alone: HashMap::new(),
        asked: HashMap::new(),
        questions: 0,
    };
    tokio::spawn(mirror.run(stage));
    bridge
}

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// 10,000 pairs of overlapping calls with id 1, from clients of both eras to servers of both eras: each gets its own
/// response and questions, and none waits forever.
#[tokio::test(start_paused = true)]
async fn overlapping_calls_with_equal_ids_on_stdio() {
    let turns = pairs(10_000).div_ceil(PAIRS * 4);
    for server in ERAS {
        for client in ERAS {
            let bridge = start(ScriptedServer::lines(Role::new(server)), server, true);
            let mut clients = tokio::task::JoinSet::new();
            for pair in 0..PAIRS {
                for side in ["left", "right"] {
                    let bridge = Arc::clone(&bridge);
                    clients.spawn(async move {
                        let declared = json!({"elicitation": {}});
                        let peer = match client.era() {
                            Era::Modern => TestClient::modern(&bridge, declared),
                            Era::Legacy => {
                                TestClient::legacy(&bridge, client.as_str(), declared).await
                            }
                        };
                        on_stdio(peer, pair, side, turns).await;
                    });
                }
            }
            while let Some(ended) = clients.join_next().await {
                ended.unwrap_or_else(|why| panic!("{client} before {server}: {why}"));
            }
        }
    }
}

/// The same on HTTP on both sides of the bridge, with fewer calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_calls_with_equal_ids_on_http() {
    let turns = pairs(1_000).div_ceil(PAIRS * 4);
    for server in ERAS {
        for client in ERAS {
            let stage = ScriptedServer::http(Role::new(server)).await;
            let bridge = start(stage, server, false);
            let url = listen(&bridge).await;
            let mut clients = tokio::task::JoinSet::new();
            for pair in 0..PAIRS {
                for side in ["left", "right"] {
                    let url = url.clone();
                    clients.spawn(async move {
                        let declared = json!({"elicitation": {}});
                        let web = match client.era() {
                            Era::Modern => HttpTestClient::modern(&url, declared),
                            Era::Legacy => {
                                HttpTestClient::legacy(&url, client.as_str(), declared).await
                            }
                        };
                        on_http(web, pair, side, turns).await;
                    });
                }
            }
            while let Some(ended) = clients.join_next().await {
                ended.unwrap_or_else(|why| panic!("{client} before {server}: {why}"));
            }
        }
    }
}
