//! Subscriptions and change notifications in both directions.

use std::time::Duration;

use mcpact_config::Strategy;
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{HttpTestClient, TestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};
use crate::upstream;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Returns the filter of a listen request without optional members.
fn filter(said: &ReceivedMessage) -> Value {
    assert_eq!(said.method(), "subscriptions/listen", "{}", said.message);
    said.params()["notifications"].clone()
}

/// Accepts all requested subscriptions as a modern server.
fn acknowledge(said: &ReceivedMessage) {
    let params =
        json!({"_meta": {SUBSCRIPTION: said.message["id"]}, "notifications": filter(said)});
    said.notify("notifications/subscriptions/acknowledged", params);
}

fn tell(said: &ReceivedMessage, method: &str, mut params: Value) {
    params["_meta"] = json!({SUBSCRIPTION: said.message["id"]});
    said.notify(method, params);
}

/// BA-13, BA-14: the listen request of a legacy client grows with its subscriptions, the old one ends once the new one
/// is accepted, and after a gap everything counts as changed once.
#[tokio::test(start_paused = true)]
async fn subscriptions_become_one_listen_request() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28).changing());
    let mut peer = TestClient::legacy(&upstream(&scripted), "2025-11-25", json!({})).await;
    let begin = scripted.recv().await;
    assert_eq!(filter(&begin), json!({"toolsListChanged": true}));
    acknowledge(&begin);

    peer.request(1, "resources/subscribe", json!({"uri": "test://1"}))
        .await;
    let one = scripted.recv().await;
    assert_eq!(filter(&one)["resourceSubscriptions"], json!(["test://1"]));
    tell(&begin, "notifications/tools/list_changed", json!({}));
    peer.expect("notifications/tools/list_changed").await;
    acknowledge(&one);
    assert_eq!(
        peer.recv().await,
        json!({"jsonrpc": "2.0", "id": 1, "result": {}})
    );
    let closed = scripted.expect("notifications/cancelled").await;
    assert_eq!(
        closed.params()["requestId"],
        begin.message["id"],
        "after the new one was there"
    );

    peer.request(2, "resources/subscribe", json!({"uri": "test://2"}))
        .await;
    let two = scripted.recv().await;
    assert_eq!(
        filter(&two)["resourceSubscriptions"],
        json!(["test://1", "test://2"])
    );
    assert_eq!(filter(&two)["toolsListChanged"], true);
    acknowledge(&two);
    assert_eq!(peer.recv().await["id"], 2);
    assert_eq!(
        scripted.expect("notifications/cancelled").await.params()["requestId"],
        one.message["id"]
    );
    tell(
        &two,
        "notifications/resources/updated",
        json!({"uri": "test://1"}),
    );
    let updated = peer.expect("notifications/resources/updated").await;
    assert_eq!(
        updated["params"],
        json!({"uri": "test://1"}),
        "without the tag of the modern era"
    );

    two.hang_up();
    let again = scripted.recv().await;
    assert_ne!(again.connection, two.connection);
    assert_eq!(filter(&again), filter(&two));
    acknowledge(&again);
    let mut changed = Vec::new();
    for _ in 0..3 {
        let message = peer.recv().await;
        changed.push((message["method"].clone(), message["params"]["uri"].clone()));
    }
    changed.sort_by_key(|change| format!("{change:?}"));
    let expected = [
        (json!("notifications/resources/updated"), json!("test://1")),
        (json!("notifications/resources/updated"), json!("test://2")),
        (json!("notifications/tools/list_changed"), Value::Null),
    ];
    assert_eq!(changed, expected);
    peer.expect_silence().await;
}

/// A URI that the server does not accept is not subscribed.
#[tokio::test(start_paused = true)]
async fn rejected_uris_are_not_subscribed() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28).changing());
    let mut peer = TestClient::legacy(&upstream(&scripted), "2025-06-18", json!({})).await;
    acknowledge(&scripted.recv().await);
    peer.request(1, "resources/subscribe", json!({"uri": "test://1"}))
        .await;
    let said = scripted.recv().await;
    let params = json!({"_meta": {SUBSCRIPTION: said.message["id"]},
        "notifications": {"toolsListChanged": true}});
    said.notify("notifications/subscriptions/acknowledged", params);
    assert_eq!(peer.recv().await["error"]["code"], -32602);
}

/// Two modern clients that share a session with a legacy server and listen for the same resource share one
/// subscription; each is notified under its own id, and only of what it requested.
#[tokio::test(start_paused = true)]
async fn listeners_share_a_subscription() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_11_25).changing());
    let mut settings = UpstreamSettings::default();
    settings.run.strategy = Strategy::Stateless;
    let upstream = UpstreamServer::new(scripted.target.clone(), settings).unwrap();
    let mut one = TestClient::modern(&upstream, json!({}));
    let mut two = TestClient::modern(&upstream, json!({}));
    let wanted =
        json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://1"]}});
    one.request("L1", "subscriptions/listen", wanted).await;
    let subscribed = scripted.expect("resources/subscribe").await;
    assert_eq!(subscribed.params()["uri"], "test://1");
    subscribed.result(json!({}));
    let acknowledged = one.expect("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], "L1");
    let wanted = json!({"notifications": {"resourceSubscriptions": ["test://1"]}});
    two.request(9, "subscriptions/listen", wanted).await;
    let acknowledged = two.expect("notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], 9);
    assert!(scripted.received().is_empty(), "one subscription is enough");

    subscribed.notify(
        "notifications/resources/updated",
        json!({"uri": "test://1"}),
    );
    subscribed.notify("notifications/prompts/list_changed", json!({}));
    subscribed.notify("notifications/tools/list_changed", json!({}));
    for (peer, id) in [(&mut one, json!("L1")), (&mut two, json!(9))] {
        let updated = peer.expect("notifications/resources/updated").await;
        assert_eq!(updated["params"]["_meta"][SUBSCRIPTION], id);
        assert_eq!(updated["params"]["uri"], "test://1");
    }
    let changed = one.expect("notifications/tools/list_changed").await;
    assert_eq!(changed["params"]["_meta"][SUBSCRIPTION], "L1");
    two.expect_silence().await;
    one.expect_silence().await;
}

/// BB-19: for a legacy server without a session stream no change notifications are declared; calls work.
#[tokio::test]
async fn servers_without_a_stream_declare_no_changes() {
    let mut role = Role::new(Revision::V2025_11_25).changing();
    role.can_push = false;
    let mut scripted = ScriptedServer::http(role).await;
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::modern(&url, json!({}));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = web.request("L1", "subscriptions/listen", wanted).await;
    let acknowledged = listening.next().await.unwrap();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    let promised = &acknowledged["params"]["notifications"];
    assert_ne!(
        promised.get("toolsListChanged"),
        Some(&json!(true)),
        "{promised}"
    );
    let (mut reply, ()) = tokio::join!(web.request(1, "tools/call", tool("t")), async {
        scripted.expect("tools/call").await.text("works");
    });
    assert_eq!(reply.only().await["result"]["content"][0]["text"], "works");
}

/// The subscription at a legacy server ends with its last listener.
#[tokio::test]
async fn last_listener_ends_the_subscription() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_11_25).changing());
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::modern(&url, json!({}));
    let wanted = json!({"notifications": {"resourceSubscriptions": ["test://1"]}});
    let mut streams = Vec::new();
    for id in 1..=2 {
        let (mut stream, ()) = tokio::join!(
            web.request(id, "subscriptions/listen", wanted.clone()),
            async {
                if id == 1 {
                    scripted
                        .expect("resources/subscribe")
                        .await
                        .result(json!({}));
                }
            }
        );
        let acknowledged = stream.next().await.unwrap();
        assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], id);
        streams.push(stream);
    }
    streams.pop();
    // A later call proves that the first disconnect was processed.
    let (_, ()) = tokio::join!(web.request(3, "tools/call", tool("t")), async {
        scripted.expect("tools/call").await.text("works");
    });
    streams.pop();
    let ended = tokio::time::timeout(Duration::from_secs(20), scripted.recv())
        .await
        .unwrap();
    assert_eq!(ended.method(), "resources/unsubscribe");
    assert_eq!(ended.params()["uri"], "test://1");
}
