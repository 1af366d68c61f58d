//! Clients without a capability, and a gateway that answers for them.

use std::sync::Arc;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{TestClient, message::tool};
use mcpact_spec::{Era, Revision};
use mcpact_translate::input::{DefaultAnswers, Dismissal};
use serde_json::{Value, json};

use crate::scripted_server::{Role, ScriptedServer};

const ROOT: &str = "file:///home/ann";

fn stand_in() -> DefaultAnswers {
    DefaultAnswers {
        elicitation: Some(Dismissal::Decline),
        sampling: Some(String::from("no model here")),
        roots: Some(vec![String::from(ROOT)]),
    }
}

async fn scene(
    client: Revision,
    server: Revision,
    declared: Value,
) -> (ScriptedServer, TestClient) {
    let scripted = ScriptedServer::lines(Role::new(server));
    let settings = UpstreamSettings {
        default_answers: stand_in(),
        ..UpstreamSettings::default()
    };
    let upstream: Arc<UpstreamServer> =
        UpstreamServer::new(scripted.target.clone(), settings).unwrap();
    let peer = match client.era() {
        Era::Modern => TestClient::modern(&upstream, declared),
        Era::Legacy => TestClient::legacy(&upstream, client.as_str(), declared).await,
    };
    (scripted, peer)
}

fn form() -> Value {
    json!({"mode": "form", "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}

fn question(method: &str) -> Value {
    match method {
        "elicitation/create" => form(),
        "sampling/createMessage" => json!({"maxTokens": 9,
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}),
        _ => json!({}),
    }
}

/// Returns the client capabilities that the server received.
fn declared_to_server(scripted: &ScriptedServer, call: &Value) -> Value {
    let meta = &call["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    match meta {
        Value::Null => {
            let greetings = scripted.handshakes();
            let opening = greetings.iter().find(|said| said["method"] == "initialize");
            opening.unwrap()["params"]["capabilities"].clone()
        }
        meta => meta.clone(),
    }
}

/// Configured answers are declared to the server and answer its questions, in every combination of revisions; the
/// client is not involved.
#[tokio::test(start_paused = true)]
async fn configured_answers_replace_undeclared_capabilities() {
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for client in Revision::ALL {
            let (mut scripted, mut peer) = scene(client, server, json!({})).await;
            for (number, method) in ["elicitation/create", "roots/list"].into_iter().enumerate() {
                peer.request(number, "tools/call", tool("greet")).await;
                let call = scripted.expect("tools/call").await;
                let declared_to_server = declared_to_server(&scripted, call.params());
                for path in [
                    "/roots",
                    "/sampling",
                    "/elicitation/form",
                    "/elicitation/url",
                ] {
                    assert!(
                        declared_to_server.pointer(path).is_some(),
                        "{client} {server} {path} {declared_to_server}"
                    );
                }
                let answer = match server.era() {
                    Era::Legacy => {
                        call.ask("q", method, question(method));
                        let answer = scripted.recv().await.message["result"].clone();
                        call.text("done");
                        answer
                    }
                    Era::Modern => {
                        let asked = json!({"method": method, "params": question(method)});
                        call.result(json!({"resultType": "input_required",
                            "inputRequests": {"q": asked}, "requestState": "S"}));
                        let again = scripted.expect("tools/call").await;
                        assert_eq!(again.params()["requestState"], "S");
                        again.text("done");
                        again.params()["inputResponses"]["q"].clone()
                    }
                };
                let expected = match method {
                    "roots/list" => json!({"roots": [{"uri": ROOT}]}),
                    _ => json!({"action": "decline"}),
                };
                assert_eq!(answer, expected, "{client} {server} {method}");
                let ended = peer.recv().await;
                assert_eq!(ended["result"]["content"][0]["text"], "done", "{ended}");
            }
        }
    }
}

/// Sampling is refused with the configured message: the server gets the error of a user refusal, and where a modern
/// server cannot receive an error, the call ends with it.
#[tokio::test(start_paused = true)]
async fn sampling_is_refused_with_the_configured_message() {
    let method = "sampling/createMessage";
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for client in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let (mut scripted, mut peer) = scene(client, server, json!({})).await;
            peer.request(1, "tools/call", tool("greet")).await;
            let call = scripted.expect("tools/call").await;
            match server.era() {
                Era::Legacy => {
                    call.ask("q", method, question(method));
                    let error = scripted.recv().await.message["error"].clone();
                    assert_eq!(error, json!({"code": -1, "message": "no model here"}));
                    call.text("done");
                    assert_eq!(peer.recv().await["result"]["content"][0]["text"], "done");
                }
                Era::Modern => {
                    let asked = json!({"method": method, "params": question(method)});
                    call.result(json!({"resultType": "input_required",
                        "inputRequests": {"q": asked}, "requestState": "S"}));
                    let ended = peer.recv().await;
                    assert_eq!(ended["result"]["isError"], true, "{client} {ended}");
                    let text = ended["result"]["content"][0]["text"].as_str().unwrap();
                    assert!(text.contains("no model here"), "{text}");
                }
            }
        }
    }
}

/// A client with the capability is asked; of several questions it gets those that it can answer.
#[tokio::test(start_paused = true)]
async fn declared_capabilities_reach_the_client() {
    let (mut scripted, mut peer) = scene(
        Revision::V2026_07_28,
        Revision::V2026_07_28,
        json!({"elicitation": {}}),
    )
    .await;
    peer.request(1, "tools/call", tool("greet")).await;
    let call = scripted.expect("tools/call").await;
    call.result(
        json!({"resultType": "input_required", "requestState": "S", "inputRequests": {
        "who": {"method": "elicitation/create", "params": form()},
        "where": {"method": "roots/list"}}}),
    );
    let asked = peer.recv().await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["who"]);
    let mut retry = tool("greet");
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
    peer.request(2, "tools/call", retry).await;
    let second = scripted.expect("tools/call").await;
    assert_eq!(second.params()["inputResponses"]["who"]["action"], "accept");
    // A missing answer is requested again.
    second.result(json!({"resultType": "input_required", "requestState": "T",
        "inputRequests": {"where": {"method": "roots/list"}}}));
    let third = scripted.expect("tools/call").await;
    assert_eq!(third.params()["requestState"], "T");
    assert_eq!(
        third.params()["inputResponses"]["where"]["roots"][0]["uri"],
        ROOT
    );
    third.text("done");
    assert_eq!(peer.recv().await["result"]["content"][0]["text"], "done");

    let (mut scripted, mut peer) = scene(
        Revision::V2025_11_25,
        Revision::V2025_06_18,
        json!({"elicitation": {}}),
    )
    .await;
    peer.request(1, "tools/call", tool("greet")).await;
    let call = scripted.expect("tools/call").await;
    call.ask("q", "elicitation/create", form());
    let asked = peer.expect("elicitation/create").await;
    peer.answer(
        &asked,
        json!({"action": "accept", "content": {"name": "Ann"}}),
    )
    .await;
    assert_eq!(scripted.recv().await.message["result"]["action"], "accept");
    call.text("done");
    assert_eq!(peer.recv().await["id"], 1);
}

/// A client that follows tasks itself would receive their questions, so nothing is declared for it; a question outside
/// of calls is answered, too.
#[tokio::test(start_paused = true)]
async fn nothing_is_declared_for_clients_that_follow_tasks() {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (mut scripted, mut peer) =
        scene(Revision::V2026_07_28, Revision::V2026_07_28, tasks.clone()).await;
    peer.request(1, "tools/call", tool("greet")).await;
    let call = scripted.expect("tools/call").await;
    assert_eq!(declared_to_server(&scripted, call.params()), tasks);
    call.text("done");
    peer.recv().await;

    let (mut scripted, mut peer) =
        scene(Revision::V2026_07_28, Revision::V2025_11_25, json!({})).await;
    peer.request(1, "tools/list", json!({})).await;
    let call = scripted.expect("tools/list").await;
    call.ask("q", "roots/list", json!({}));
    assert_eq!(
        scripted.recv().await.message["result"]["roots"][0]["uri"],
        ROOT
    );
    call.result(json!({"tools": []}));
    peer.recv().await;
}
