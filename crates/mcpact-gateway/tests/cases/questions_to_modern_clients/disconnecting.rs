//! Clients that disconnect during a question.

use std::time::Duration;

use mcpact_sim::scripted::{HttpTestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::json;

use super::{accept, after_streams, code, form, key, retry, scene, suspended, upstream};
use crate::scripted_server::{Role, ScriptedServer};

/// BB-07: without an answer the form counts as dismissed; if the server continues, its call is cancelled, and the state
/// becomes invalid.
#[tokio::test(start_paused = true)]
async fn unanswered_forms_count_as_dismissed() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = suspended(&mut scripted, &mut peer).await;
    let dismissed = scripted.recv().await;
    assert_eq!(
        (&dismissed.message["id"], &dismissed.message["result"]),
        (&json!("q1"), &json!({"action": "cancel"}))
    );
    let cancelled = scripted.expect("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    let late = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    assert_eq!(code(&peer.ask(2, "tools/call", late).await), -32602);
    assert!(
        scripted.received().is_empty(),
        "the tool does not run again"
    );
}

/// BB-07: if the server ends the call after the dismissal, no cancellation is sent.
#[tokio::test(start_paused = true)]
async fn ended_calls_are_not_cancelled() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, _) = suspended(&mut scripted, &mut peer).await;
    let dismissed = scripted.recv().await;
    assert_eq!(dismissed.message["result"], json!({"action": "cancel"}));
    said.text("then not");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(
        scripted.received().is_empty(),
        "the call has ended by itself"
    );
}

/// BB-21: closing the stream cancels the call, and the server receives the cancellation with its own id.
#[tokio::test]
async fn closed_streams_cancel_the_call() {
    for is_http in [false, true] {
        let role = Role::new(Revision::V2025_11_25);
        let mut scripted = match is_http {
            true => ScriptedServer::http(role).await,
            false => ScriptedServer::lines(role),
        };
        let url = listen(&upstream(&scripted)).await;
        let web = HttpTestClient::modern(&url, json!({}));
        let calling =
            tokio::spawn(async move { web.request(1, "tools/call", tool("slow")).await.status });
        let said = after_streams(&mut scripted).await;
        assert_eq!(said.method(), "tools/call");
        calling.abort();
        let cancelled = after_streams(&mut scripted).await;
        assert_eq!(cancelled.method(), "notifications/cancelled");
        assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    }
}

/// A suspended call is cancelled after a moment if its client retries and then disconnects.
#[tokio::test(start_paused = true)]
async fn disconnecting_after_a_retry_cancels_the_call() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = suspended(&mut scripted, &mut peer).await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    peer.request(2, "tools/call", back.clone()).await;
    assert_eq!(scripted.recv().await.message["id"], "q1");
    peer.notify("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let cancelled = scripted.expect("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    assert_eq!(code(&peer.ask(3, "tools/call", back).await), -32602);
}

/// A question of a cancelled call that the server still processes reaches no other call: the next call waits.
#[tokio::test(start_paused = true)]
async fn questions_of_cancelled_calls_reach_no_other_call() {
    let (mut scripted, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let first = scripted.expect("tools/call").await;
    peer.notify("notifications/cancelled", json!({"requestId": 1}))
        .await;
    scripted.expect("notifications/cancelled").await;
    peer.request(2, "tools/call", tool("other")).await;
    first.ask("q1", "elicitation/create", form("Who?"));
    let refused = scripted.recv().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    let second = scripted.expect("tools/call").await;
    second.text("done");
    assert_eq!(peer.recv().await["result"]["content"][0]["text"], "done");
}
