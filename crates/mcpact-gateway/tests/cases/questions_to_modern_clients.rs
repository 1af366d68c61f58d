//! Modern clients of a legacy server that asks questions before it answers.

mod disconnecting;
mod states;
mod undeclared;

use std::time::Duration;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{TestClient, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use crate::upstream;

fn scene(capabilities: Value) -> (ScriptedServer, TestClient) {
    let scripted = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let peer = TestClient::modern(&upstream(&scripted), capabilities);
    (scripted, peer)
}

fn form(message: &str) -> Value {
    json!({"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Returns the parameters of a retried call with answers.
fn retry(params: &Value, asked: &Value, answers: Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = answers;
    params
}

/// Returns the keys of the questions.
fn keys(asked: &Value) -> Vec<String> {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    requests.keys().cloned().collect()
}

/// Returns the key of the only question.
fn key(asked: &Value) -> String {
    let [key] = keys(asked).try_into().unwrap();
    key
}

/// Makes a call up to its first question.
async fn suspended(
    scripted: &mut ScriptedServer,
    peer: &mut TestClient,
) -> (ReceivedMessage, Value) {
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.expect("tools/call").await;
    said.ask("q1", "elicitation/create", form("Who?"));
    (said, peer.recv().await)
}

const CODE: &str = "/error/code";

fn code(answer: &Value) -> i64 {
    let code = answer.pointer(CODE).and_then(Value::as_i64);
    code.unwrap_or_else(|| panic!("{answer}"))
}

/// Returns the next message that does not open the stream of a session.
async fn after_streams(scripted: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = scripted.recv().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// BB-04, BB-05, BB-06, H13: a question of the server ends the request and suspends the call: the answer arrives with
/// the next request and goes to the server, the second question gets its own state, the first state becomes invalid,
/// and the result has the last id. The tool runs once.
#[tokio::test(start_paused = true)]
async fn call_is_suspended_until_the_client_answers() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = suspended(&mut scripted, &mut peer).await;
    assert_eq!(said.params().get("_meta"), None, "{}", said.message);
    let first = key(&asked);
    let request = &asked["result"]["inputRequests"][&first];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who?");
    peer.expect_silence().await;
    assert!(scripted.received().is_empty(), "the call stays open");

    let again = retry(&tool("greet"), &asked, json!({&first: accept("Ann")}));
    peer.request(2, "tools/call", again.clone()).await;
    let answered = scripted.recv().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!("q1"), &accept("Ann"))
    );
    said.ask("q2", "elicitation/create", form("Title?"));
    let asked_again = peer.recv().await;
    assert_eq!(asked_again["id"], 2);
    assert_ne!(
        asked_again["result"]["requestState"],
        asked["result"]["requestState"]
    );
    assert_eq!(code(&peer.ask(3, "tools/call", again).await), -32602);

    let second = key(&asked_again);
    let last = retry(&tool("greet"), &asked_again, json!({&second: accept("Dr")}));
    peer.request(4, "tools/call", last).await;
    assert_eq!(scripted.recv().await.message["id"], "q2");
    said.text("Hello, Dr Ann!");
    let answer = peer.recv().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(4), &json!("Hello, Dr Ann!"))
    );
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(scripted.received().is_empty(), "the tool ran once");
}

/// BB-08: the outcome of a suspended call is delivered once, whatever the client sends.
#[tokio::test(start_paused = true)]
async fn outcome_is_kept_for_the_client() {
    for is_error in [false, true] {
        let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
        let (said, asked) = suspended(&mut scripted, &mut peer).await;
        if is_error {
            said.error(json!({"code": -32603, "message": "the user took too long"}));
        } else {
            said.text("done without you");
        }
        // The outcome arrives before the client retries.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
        let answer = peer.ask(2, "tools/call", back.clone()).await;
        if is_error {
            assert_eq!(answer["error"]["message"], "the user took too long");
        } else {
            assert_eq!(answer["result"]["content"][0]["text"], "done without you");
            assert_eq!(answer["result"]["resultType"], "complete");
        }
        assert_eq!(
            code(&peer.ask(3, "tools/call", back).await),
            -32602,
            "told once"
        );
        let heard = scripted.received();
        let [refused] = &heard[..] else {
            panic!("the server heard something of it: {heard:?}");
        };
        assert_eq!(refused.message["id"], "q1");
        assert!(refused.message["error"].is_object(), "{refused:?}");
    }
}

/// BB-08: the death of the server is the outcome of a suspended call.
#[tokio::test(start_paused = true)]
async fn server_death_is_the_outcome_of_a_suspended_call() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = suspended(&mut scripted, &mut peer).await;
    said.hang_up();
    said.closed().await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    let answer = peer.ask(2, "tools/call", back).await;
    assert_eq!(code(&answer), -32603, "{answer}");
    assert!(
        scripted.received().is_empty(),
        "the tool does not run again"
    );
}

/// A second request with the same answers waits with the first; with other answers it is refused.
#[tokio::test(start_paused = true)]
async fn repeated_answers_share_the_outcome() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = suspended(&mut scripted, &mut peer).await;
    let back = |name: &str| retry(&tool("greet"), &asked, json!({key(&asked): accept(name)}));
    peer.request(2, "tools/call", back("Ann")).await;
    assert_eq!(scripted.recv().await.message["id"], "q1");
    peer.request(3, "tools/call", back("Ann")).await;
    assert_eq!(code(&peer.ask(4, "tools/call", back("Bob")).await), -32602);
    said.text("hello");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = peer.recv().await;
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
    assert!(
        scripted.received().is_empty(),
        "the server was answered once"
    );
}

/// BB-31, MR-08: an answer goes to the server, and only missing answers are requested again.
#[tokio::test(start_paused = true)]
async fn only_missing_answers_are_requested_again() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}, "roots": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.recv().await;
    said.ask(1, "elicitation/create", form("Who?"));
    said.ask(2, "roots/list", json!({}));
    let asked = peer.recv().await;
    let both = keys(&asked);
    assert_eq!(
        both.len(),
        2,
        "questions that come together are asked together: {asked}"
    );
    let requests = &asked["result"]["inputRequests"];
    let is_form = |key: &&String| requests[key.as_str()]["method"] == "elicitation/create";
    let who = both.iter().find(is_form).unwrap();
    let roots = both.iter().find(|key| !is_form(key)).unwrap();
    let some = retry(&tool("greet"), &asked, json!({who: accept("Ann")}));
    let asked = peer.ask(2, "tools/call", some).await;
    assert_eq!(&key(&asked), roots);
    let answered = scripted.recv().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(1), &accept("Ann"))
    );
    let rest = json!({"roots": [{"uri": "file:///a"}]});
    peer.request(
        3,
        "tools/call",
        retry(&tool("greet"), &asked, json!({roots: rest.clone()})),
    )
    .await;
    let answered = scripted.recv().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(2), &rest)
    );
    said.text("hello");
    assert_eq!(peer.recv().await["id"], 3);
}

/// BB-26: the gateway answers pings of a server during a call, while it is suspended and without one.
#[tokio::test(start_paused = true)]
async fn gateway_answers_pings_of_the_server() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.expect("tools/call").await;
    for (number, id) in (1..).zip(["p1", "p2", "p3"]) {
        said.ask(id, "ping", json!({}));
        let pong = scripted.recv().await;
        assert_eq!(
            (&pong.message["id"], &pong.message["result"]),
            (&json!(id), &json!({}))
        );
        if number == 1 {
            said.ask("q1", "elicitation/create", form("Who?"));
            assert_eq!(key(&peer.recv().await), "elicitation-1");
        }
    }
    peer.expect_silence().await;
}

/// A withdrawn question is not answered; other questions are.
#[tokio::test(start_paused = true)]
async fn withdrawn_questions_are_not_answered() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}, "roots": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.recv().await;
    // Ids that could be mistaken for those of calls.
    said.ask(101, "elicitation/create", form("Who?"));
    said.ask(102, "roots/list", json!({}));
    let asked = peer.recv().await;
    said.notify("notifications/cancelled", json!({"requestId": 101}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let answers: Value = requests
        .iter()
        .map(|(key, request)| {
            let answer = match request["method"].as_str() {
                Some("roots/list") => json!({"roots": []}),
                _ => accept("Ann"),
            };
            (key.clone(), answer)
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    peer.request(2, "tools/call", retry(&tool("greet"), &asked, answers))
        .await;
    let answered = scripted.recv().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(102), &json!({"roots": []}))
    );
    said.text("hello");
    assert_eq!(peer.recv().await["id"], 2);
    assert!(scripted.received().is_empty());
}

/// Two calls that may be asked questions do not share a connection on which questions do not name their call.
#[tokio::test(start_paused = true)]
async fn questions_never_reach_another_call() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    for id in 1..=3 {
        peer.request(
            id,
            "tools/call",
            json!({"name": "greet", "arguments": {"caller": id}}),
        )
        .await;
    }
    let calls = [
        scripted.recv().await,
        scripted.recv().await,
        scripted.recv().await,
    ];
    let mut connections: Vec<usize> = calls.iter().map(|said| said.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), 3);
    for said in calls.iter().rev() {
        let caller = said.params()["arguments"]["caller"].clone();
        said.ask(1, "elicitation/create", form(&caller.to_string()));
        let asked = peer.recv().await;
        assert_eq!(asked["id"], caller);
        let request = &asked["result"]["inputRequests"][key(&asked)];
        assert_eq!(request["params"]["message"], caller.to_string());
    }
}

/// With a single instance per client such calls take turns.
#[tokio::test(start_paused = true)]
async fn calls_that_may_be_asked_are_serialized_on_one_instance() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let mut settings = UpstreamSettings::default();
    settings.run.spreads = false;
    let upstream = UpstreamServer::new(scripted.target.clone(), settings).unwrap();
    let mut peer = TestClient::modern(&upstream, json!({"elicitation": {}}));
    for id in 1..=2 {
        let params = json!({"name": "greet", "arguments": {"caller": id}});
        peer.request(id, "tools/call", params).await;
    }
    let mut connections = Vec::new();
    for id in 1..=2 {
        let said = scripted.expect("tools/call").await;
        assert_eq!(said.params()["arguments"]["caller"], id);
        assert!(scripted.received().is_empty(), "one at a time");
        connections.push(said.connection);
        said.text("hello");
        assert_eq!(peer.recv().await["id"], id);
    }
    assert_eq!(connections[0], connections[1]);
}

/// REVISIONS 6.8: progress of a suspended call is delivered once, with the token of the next request.
#[tokio::test(start_paused = true)]
async fn progress_is_delivered_on_retry() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let mut params = tool("greet");
    params["_meta"] = json!({"progressToken": "first"});
    peer.request(1, "tools/call", params.clone()).await;
    let said = scripted.expect("tools/call").await;
    let token = said.params()["_meta"]["progressToken"].clone();
    let report = |progress: u32| {
        let params = json!({"progressToken": token, "progress": progress});
        said.notify("notifications/progress", params);
    };
    said.ask("q1", "elicitation/create", form("Who?"));
    let asked = peer.recv().await;
    report(1);
    report(2);
    peer.expect_silence().await;

    params["_meta"] = json!({"progressToken": "second"});
    let again = retry(&params, &asked, json!({key(&asked): accept("Ann")}));
    peer.request(2, "tools/call", again).await;
    scripted.recv().await;
    report(3);
    for progress in [2, 3] {
        let told = peer.recv().await;
        let expected = json!({"progressToken": "second", "progress": progress});
        assert_eq!(told["params"], expected, "{told}");
    }
    said.text("hello");
    assert_eq!(peer.recv().await["id"], 2);
}
