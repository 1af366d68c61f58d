//! Questions of a legacy server that are open when the call is over during which they were asked.

use std::sync::Arc;

use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::peer::{Peer, tool};
use crate::stage::{Role, Said, Stage};

const LEGACY: Revision = Revision::V2025_06_18;

fn bridge(stage: &Stage) -> Arc<Bridge> {
    Bridge::new(stage.target.clone(), BridgeSettings::default()).unwrap()
}

async fn legacy(stage: &Stage) -> Peer {
    let capabilities = json!({"elicitation": {}, "roots": {}});
    Peer::legacy(&bridge(stage), "2025-06-18", capabilities).await
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// The next message that is not the stream of a session.
async fn hear(stage: &mut Stage) -> Said {
    loop {
        let said = stage.hear().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// A call that has begun.
async fn called(stage: &mut Stage, peer: &mut Peer) -> Said {
    peer.request(1, "tools/call", tool("greet")).await;
    let said = hear(stage).await;
    assert_eq!(said.method(), "tools/call", "{}", said.message);
    said
}

/// What the server hears of a call that is taken back: that, and that its question is refused with one of these.
async fn is_refused(stage: &mut Stage, codes: &[i64]) {
    let mut heard = [hear(stage).await.message, hear(stage).await.message];
    // On HTTP each is a request of its own, and either may be the first.
    heard.sort_by_key(|message| message.get("method").is_none());
    let [cancelled, refused] = heard;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(refused["id"], "q1", "{refused}");
    let code = refused["error"]["code"].as_i64().unwrap_or_default();
    assert!(codes.contains(&code), "{refused}");
}

/// A client is asked before it is told that its call is over, and its answer counts afterwards.
async fn the_answer_counts(mut stage: Stage) {
    let mut peer = legacy(&stage).await;
    let said = called(&mut stage, &mut peer).await;
    said.ask("q1", "roots/list", json!({}));
    said.text("done");
    let asked = peer.hear_of("roots/list").await;
    assert_eq!(peer.hear().await["id"], 1);
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    peer.answer(&asked, roots.clone()).await;
    let answered = hear(&mut stage).await.message;
    assert_eq!(
        (&answered["id"], &answered["result"]),
        (&json!("q1"), &roots)
    );
}

/// The question of a server that has answered the call is one of the session.
#[tokio::test(start_paused = true)]
async fn a_question_outlives_the_call_on_lines() {
    the_answer_counts(Stage::lines(Role::new(LEGACY))).await;
}

/// The same on HTTP, where it came on the stream of the call.
#[tokio::test]
async fn a_question_outlives_the_call_on_http() {
    the_answer_counts(Stage::http(Role::new(LEGACY)).await).await;
}

/// A server may take such a question back; its client is told, and the server gets no answer.
#[tokio::test(start_paused = true)]
async fn a_question_that_outlives_the_call_can_be_taken_back() {
    let mut stage = Stage::lines(Role::new(LEGACY));
    let mut peer = legacy(&stage).await;
    let said = called(&mut stage, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    said.text("done");
    let asked = peer.hear_of("elicitation/create").await;
    assert_eq!(peer.hear().await["id"], 1);
    said.note("notifications/cancelled", json!({"requestId": "q1"}));
    let told = peer.hear_of("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    peer.request(2, "tools/call", tool("greet")).await;
    stage.hear_of("tools/call").await.text("again");
    assert_eq!(peer.hear().await["id"], 2);
}

/// Who cancels a call is asked nothing any more, and the server is told so.
async fn a_cancelled_call_refuses(mut stage: Stage) {
    let mut peer = legacy(&stage).await;
    let said = called(&mut stage, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let asked = peer.hear_of("elicitation/create").await;
    let call = json!({"requestId": 1});
    peer.note("notifications/cancelled", call).await;
    let told = peer.hear_of("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], asked["id"]);
    is_refused(&mut stage, &[-32603]).await;
    // What comes too late is not a second answer.
    peer.answer(&asked, json!({"action": "decline"})).await;
    peer.request(2, "tools/call", tool("greet")).await;
    assert_eq!(hear(&mut stage).await.method(), "tools/call");
}

/// A question of a call that its client has cancelled is refused.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_cancelled_call_is_refused_on_lines() {
    a_cancelled_call_refuses(Stage::lines(Role::new(LEGACY))).await;
}

/// The same on HTTP.
#[tokio::test]
async fn a_question_of_a_cancelled_call_is_refused_on_http() {
    a_cancelled_call_refuses(Stage::http(Role::new(LEGACY)).await).await;
}

/// BB-13: a modern client is asked within its call, and what is open when the server has answered it is
/// refused; the client gets the answer when it comes back.
#[tokio::test(start_paused = true)]
async fn a_question_ends_with_the_call_of_a_modern_client() {
    let mut stage = Stage::lines(Role::new(LEGACY));
    let mut peer = Peer::modern(&bridge(&stage), json!({"elicitation": {}}));
    let said = called(&mut stage, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let asked = peer.hear().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    said.text("never mind");
    let refused = hear(&mut stage).await.message;
    assert_eq!(refused["id"], "q1", "{refused}");
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let mut again = tool("greet");
    again["requestState"] = asked["result"]["requestState"].clone();
    let answer = peer.ask(2, "tools/call", again).await;
    assert_eq!(answer["result"]["content"][0]["text"], "never mind");
}

/// BB-13: what a server asks for a call whose modern client leaves before it has been told is refused.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_modern_client_that_leaves_is_refused() {
    let mut stage = Stage::lines(Role::new(LEGACY));
    let mut peer = Peer::modern(&bridge(&stage), json!({"elicitation": {}}));
    let said = called(&mut stage, &mut peer).await;
    said.ask("q1", "elicitation/create", form());
    let call = json!({"requestId": 1});
    peer.note("notifications/cancelled", call).await;
    // The call may be over before the question is known to be about it.
    is_refused(&mut stage, &[-32603, -32602]).await;
}
