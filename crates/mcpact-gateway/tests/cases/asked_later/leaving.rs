//! Clients that go away while they are asked.

use std::time::Duration;

use mcpact_spec::Revision;
use serde_json::json;

use super::{accept, after_streams, bridge, code, form, key, parked, retry, scene};
use crate::peer::tool;
use crate::stage::{Role, Stage};
use crate::web::{Web, listen};

/// BB-07: who never comes back has dismissed the form; a server that goes on all the same is told that
/// nobody waits, and the state is worth nothing.
#[tokio::test(start_paused = true)]
async fn a_client_that_never_comes_back_has_dismissed_the_form() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    let dismissed = stage.hear().await;
    assert_eq!(
        (&dismissed.message["id"], &dismissed.message["result"]),
        (&json!("q1"), &json!({"action": "cancel"}))
    );
    let cancelled = stage.hear_of("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    let late = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    assert_eq!(code(&peer.ask(2, "tools/call", late).await), -32602);
    assert!(stage.heard().is_empty(), "the tool does not run again");
}

/// BB-07: a server that ends the call when the form is dismissed is not told more.
#[tokio::test(start_paused = true)]
async fn a_server_that_gives_up_is_left_alone() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, _) = parked(&mut stage, &mut peer).await;
    let dismissed = stage.hear().await;
    assert_eq!(dismissed.message["result"], json!({"action": "cancel"}));
    said.text("then not");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stage.heard().is_empty(), "the call has ended by itself");
}

/// BB-21: a client that closes the stream of its call has cancelled it, and the server hears so under
/// its own id of the call.
#[tokio::test]
async fn a_closed_stream_cancels_the_call() {
    for is_http in [false, true] {
        let role = Role::new(Revision::V2025_11_25);
        let mut stage = match is_http {
            true => Stage::http(role).await,
            false => Stage::lines(role),
        };
        let url = listen(&bridge(&stage)).await;
        let web = Web::modern(&url, json!({}));
        let calling =
            tokio::spawn(async move { web.request(1, "tools/call", tool("slow")).await.status });
        let said = after_streams(&mut stage).await;
        assert_eq!(said.method(), "tools/call");
        calling.abort();
        let cancelled = after_streams(&mut stage).await;
        assert_eq!(cancelled.method(), "notifications/cancelled");
        assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    }
}

/// A parked call whose client comes back and then leaves for good is cancelled after a moment.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_for_good_cancels() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    peer.request(2, "tools/call", back.clone()).await;
    assert_eq!(stage.hear().await.message["id"], "q1");
    peer.note("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let cancelled = stage.hear_of("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    assert_eq!(code(&peer.ask(3, "tools/call", back).await), -32602);
}

/// A server that goes on for a moment with a call that was cancelled asks nobody else: the next call waits.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_asks_nobody_else() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let first = stage.hear_of("tools/call").await;
    peer.note("notifications/cancelled", json!({"requestId": 1}))
        .await;
    stage.hear_of("notifications/cancelled").await;
    peer.request(2, "tools/call", tool("other")).await;
    first.ask("q1", "elicitation/create", form("Who?"));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    let second = stage.hear_of("tools/call").await;
    second.text("done");
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "done");
}
