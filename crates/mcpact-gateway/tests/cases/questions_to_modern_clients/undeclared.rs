//! Questions that a client did not declare or that cannot be delivered.

use mcpact_sim::scripted::{HttpTestClient, TestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use super::{after_streams, code, form, key, retry, scene, upstream};
use crate::scripted_server::{Role, ScriptedServer};

/// BB-13: a question before any call of a client is refused.
#[tokio::test(start_paused = true)]
async fn questions_before_any_call_are_refused() {
    let (mut scripted, mut peer) = scene(json!({"roots": {}}));
    // Opens the connection without a call that may be asked.
    peer.request(1, "tools/list", json!({})).await;
    let said = scripted.expect("tools/list").await;
    said.result(json!({"tools": []}));
    assert_eq!(peer.recv().await["id"], 1);
    said.ask("r1", "roots/list", json!({}));
    let refused = scripted.recv().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("r1"), -32602)
    );
    peer.expect_silence().await;
}

/// BB-30: a question during a request that cannot carry one is refused, and the request continues.
#[tokio::test(start_paused = true)]
async fn questions_during_lists_are_refused() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/list", json!({})).await;
    let said = scripted.expect("tools/list").await;
    said.ask("q1", "elicitation/create", form("Who?"));
    let refused = scripted.recv().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    said.result(json!({"tools": []}));
    let answer = peer.recv().await;
    assert_eq!(answer["result"]["resultType"], "complete");
}

/// BB-29: a question that the client did not declare is refused; the result of the server is forwarded, and if it is an
/// error, the client learns the missing capability.
#[tokio::test(start_paused = true)]
async fn undeclared_capabilities_are_reported() {
    let (mut scripted, mut peer) = scene(json!({}));
    for is_error in [false, true] {
        peer.request(1, "tools/call", tool("greet")).await;
        let said = scripted.expect("tools/call").await;
        said.ask("q1", "elicitation/create", form("Who?"));
        let refused = scripted.recv().await;
        assert_eq!(
            (&refused.message["id"], code(&refused.message)),
            (&json!("q1"), -32601)
        );
        if is_error {
            said.error(json!({"code": -32603, "message": "no form, no greeting"}));
            let answer = peer.recv().await;
            assert_eq!(code(&answer), -32021, "{answer}");
            let needed = &answer["error"]["data"]["requiredCapabilities"];
            assert_eq!(needed, &json!({"elicitation": {}}));
        } else {
            said.result(json!({"content": [], "isError": true}));
            assert_eq!(peer.recv().await["result"]["isError"], true);
        }
    }
}

/// BB-15: if a server requires a URL visit that the client cannot do, the error names the missing capability with its
/// status, not the code of the server.
#[tokio::test]
async fn missing_url_elicitation_is_reported() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2025_11_25)).await;
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::modern(&url, json!({"elicitation": {}}));
    let (mut reply, ()) = tokio::join!(web.request(1, "tools/call", tool("pay")), async {
        let said = after_streams(&mut scripted).await;
        said.error(json!({"code": -32042, "message": "visit", "data": {"elicitations": [
            {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}));
    });
    assert_eq!(reply.status, 400);
    let answer = reply.only().await;
    assert_eq!(code(&answer), -32021);
    let needed = &answer["error"]["data"]["requiredCapabilities"];
    assert_eq!(needed, &json!({"elicitation": {"url": {}}}));
}

/// A required URL visit becomes a question; once the server reports it as visited, the call is repeated.
#[tokio::test(start_paused = true)]
async fn call_is_repeated_after_a_url_visit() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("pay")).await;
    let said = scripted.recv().await;
    said.error(
        json!({"code": -32042, "message": "visit", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}),
    );
    let asked = peer.recv().await;
    let request = &asked["result"]["inputRequests"][key(&asked)];
    assert_eq!(request["params"]["url"], "https://pay.example");
    assert_eq!(request["params"].get("elicitationId"), None, "{request}");
    let back = retry(
        &tool("pay"),
        &asked,
        json!({key(&asked): {"action": "accept"}}),
    );
    peer.request(2, "tools/call", back).await;
    said.notify(
        "notifications/elicitation/complete",
        json!({"elicitationId": "e1"}),
    );
    let again = scripted.expect("tools/call").await;
    assert_eq!(again.params(), &tool("pay"));
    again.text("paid");
    assert_eq!(peer.recv().await["result"]["content"][0]["text"], "paid");
}

/// BB-24: a server of 2025-06-18 would take a client with URL elicitation for one with forms, so the gateway reconnects
/// without elicitation.
#[tokio::test(start_paused = true)]
async fn url_only_clients_are_not_declared_for_forms() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_06_18));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.expect("tools/call").await;
    said.text("hello");
    assert_eq!(peer.recv().await["id"], 1);
    let greetings = scripted.handshakes();
    let openings: Vec<&Value> = greetings
        .iter()
        .filter(|message| message["method"] == "initialize")
        .map(|message| &message["params"]["capabilities"])
        .collect();
    assert_eq!(
        openings.last().unwrap().get("elicitation"),
        None,
        "{openings:?}"
    );
}

/// BB-28: a list with one sampled block becomes the block for a server without lists.
#[tokio::test(start_paused = true)]
async fn single_sampled_block_is_unwrapped() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_06_18));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({"sampling": {}}));
    peer.request(1, "tools/call", tool("think")).await;
    let said = scripted.recv().await;
    said.ask(
        1,
        "sampling/createMessage",
        json!({"maxTokens": 9,
        "messages": [{"role": "user", "content": {"type": "text", "text": "capital?"}}]}),
    );
    let asked = peer.recv().await;
    let block = json!({"type": "text", "text": "Paris"});
    let answer = json!({"role": "assistant", "model": "m", "content": [block.clone()]});
    peer.request(
        2,
        "tools/call",
        retry(&tool("think"), &asked, json!({key(&asked): answer})),
    )
    .await;
    let answered = scripted.recv().await;
    assert_eq!(answered.message["result"]["content"], block);
    said.text("Paris it is");
    assert_eq!(peer.recv().await["id"], 2);
}
