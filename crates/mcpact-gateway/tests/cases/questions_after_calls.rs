//! Questions of a legacy server that are open when their call ends.

use mcpact_sim::scripted::{TestClient, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use crate::upstream;

const LEGACY: Revision = Revision::V2025_06_18;

async fn legacy(scripted: &ScriptedServer) -> TestClient {
    let capabilities = json!({"elicitation": {}, "roots": {}});
    TestClient::legacy(&upstream(scripted), "2025-06-18", capabilities).await
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// Returns the next message that does not open the stream of a session.
async fn hear(scripted: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = scripted.recv().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// Makes a call up to the server.
async fn called(scripted: &mut ScriptedServer, peer: &mut TestClient) -> ReceivedMessage {
    peer.request(1, "tools/call", tool("greet")).await;
    let said = hear(scripted).await;
    assert_eq!(said.method(), "tools/call", "{}", said.message);
    said
}

/// Checks that the server receives the cancellation, and a refusal of its question with one of these codes.
async fn is_refused(scripted: &mut ScriptedServer, codes: &[i64]) {
    let mut heard = [hear(scripted).await.message, hear(scripted).await.message];
    // On HTTP each is a request of its own, in either order.
    heard.sort_by_key(|message| message.get("method").is_none());
    let [cancelled, refused] = heard;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(refused["id"], "q1", "{refused}");
    let code = refused["error"]["code"].as_i64().unwrap_or_default();
    assert!(codes.contains(&code), "{refused}");
}

/// Checks that a question is delivered before the result of its call and that the answer counts afterwards.
async fn answer_reaches_the_server(mut scripted: ScriptedServer) {
    let mut peer = legacy(&scripted).await;
    let said = called(&mut scripted, &mut peer).await;
    said.ask("q1", "roots/list", json!({}));
    said.text("done");
    let asked = peer.expect("roots/list").await;
    assert_eq!(peer.recv().await["id"], 1);
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    peer.answer(&asked, roots.clone()).await;
    let answered = hear(&mut scripted).await.message;
    assert_eq!(
        (&answered["id"], &answered["result"]),
        (&json!("q1"), &roots)
    );
}

/// A question of an answered call belongs to the session.
#[tokio::test(start_paused = true)]
async fn questions_outlive_their_call_on_stdio() {
    answer_reaches_the_server(ScriptedServer::lines(Role::new(LEGACY))).await;
}

/// The same on HTTP, where the question arrived on the stream of the call.
#[tokio::test]
async fn questions_outlive_their_call_on_http() {
    answer_reaches_the_server(ScriptedServer::http(Role::new(LEGACY)).await).await;
}

/// A server may withdraw such a question; the client is notified, and the server gets no answer.
#[tokio::test(start_paused = true)]
async fn questions_of_ended_calls_can_be_withdrawn() {
    let mut scripted = ScriptedServer::lines(Role::new(LEGACY));
    let mut peer = legacy(&scripted).await;
    let said = called(&mut scripted, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    said.text("done");
    let asked = peer.expect("elicitation/create").await;
    assert_eq!(peer.recv().await["id"], 1);
    said.notify("notifications/cancelled", json!({"requestId": "q1"}));
    let told = peer.expect("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    peer.request(2, "tools/call", tool("greet")).await;
    scripted.expect("tools/call").await.text("again");
    assert_eq!(peer.recv().await["id"], 2);
}

/// Checks that a cancelled call refuses its question.
async fn cancelled_call_refuses_questions(mut scripted: ScriptedServer) {
    let mut peer = legacy(&scripted).await;
    let said = called(&mut scripted, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let asked = peer.expect("elicitation/create").await;
    let call = json!({"requestId": 1});
    peer.notify("notifications/cancelled", call).await;
    let told = peer.expect("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    is_refused(&mut scripted, &[-32603]).await;
    // A late answer is not a second response.
    peer.answer(&asked, json!({"action": "decline"})).await;
    peer.request(2, "tools/call", tool("greet")).await;
    assert_eq!(hear(&mut scripted).await.method(), "tools/call");
}

/// A question of a cancelled call is refused.
#[tokio::test(start_paused = true)]
async fn questions_of_cancelled_calls_are_refused_on_stdio() {
    cancelled_call_refuses_questions(ScriptedServer::lines(Role::new(LEGACY))).await;
}

/// The same on HTTP.
#[tokio::test]
async fn questions_of_cancelled_calls_are_refused_on_http() {
    cancelled_call_refuses_questions(ScriptedServer::http(Role::new(LEGACY)).await).await;
}

/// BB-13: a modern client is asked within its call; open questions are refused when the server answers the call, and
/// the client gets the result on retry.
#[tokio::test(start_paused = true)]
async fn questions_of_modern_clients_end_with_the_call() {
    let mut scripted = ScriptedServer::lines(Role::new(LEGACY));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({"elicitation": {}}));
    let said = called(&mut scripted, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let asked = peer.recv().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    said.text("never mind");
    let refused = hear(&mut scripted).await.message;
    assert_eq!(refused["id"], "q1", "{refused}");
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let mut again = tool("greet");
    again["requestState"] = asked["result"]["requestState"].clone();
    let answer = peer.ask(2, "tools/call", again).await;
    assert_eq!(answer["result"]["content"][0]["text"], "never mind");
}

/// BB-13: a question for a call is refused if its modern client disconnects before receiving it.
#[tokio::test(start_paused = true)]
async fn questions_of_disconnected_modern_clients_are_refused() {
    let mut scripted = ScriptedServer::lines(Role::new(LEGACY));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({"elicitation": {}}));
    let said = called(&mut scripted, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let call = json!({"requestId": 1});
    peer.notify("notifications/cancelled", call).await;
    // The call may end before the question is assigned to it.
    is_refused(&mut scripted, &[-32603, -32602]).await;
}
