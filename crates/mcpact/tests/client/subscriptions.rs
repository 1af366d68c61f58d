//! Change notifications in both eras.

use std::sync::atomic::{AtomicUsize, Ordering};

use mcpact::client::{Change, Client, ClientError, Watch};
use mcpact_sim::scripted::link_server::{LinkServer, error, result};
use mcpact_sim::scripted::message::discover_result;
use serde_json::{Value, json};

use crate::http_server::{Event, HttpServer, Reply};

fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true },
    })
}

fn note(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// F4: a legacy resource is subscribed to once for all streams, and unsubscribed with the last.
#[tokio::test]
async fn legacy_resource_is_subscribed_once() {
    let (link, received) = LinkServer::legacy("2025-11-25", capabilities(), |message| {
        let mut all = result(message, json!({}));
        if message["method"] == "resources/subscribe" {
            all.push(note(
                "notifications/resources/updated",
                json!({ "uri": "a:1" }),
            ));
            all.push(note("notifications/tools/list_changed", json!({})));
        }
        all
    });
    let client = Client::connect(link).await.unwrap();
    let mut tools = client.watch(Watch::new().tools().prompts()).await.unwrap();
    assert!(tools.granted().tools);
    assert!(!tools.granted().prompts);
    let mut first = client.subscribe("a:1").await.unwrap();
    let second = client.subscribe("a:1").await.unwrap();
    assert_eq!(
        first.next().await,
        Some(Change::Updated {
            uri: "a:1".to_owned()
        })
    );
    assert_eq!(tools.next().await, Some(Change::Tools));
    assert_eq!(received.received("resources/subscribe").len(), 1);
    drop(first);
    client.ping().await.unwrap();
    assert!(received.received("resources/unsubscribe").is_empty());
    client.unsubscribe(second);
    while received.received("resources/unsubscribe").is_empty() {
        tokio::task::yield_now().await;
    }
    client.close().await;
    assert_eq!(tools.next().await, None);
}

/// F17, P9: a modern subscription is an open request; its notifications carry its id, and dropping it cancels the
/// request.
#[tokio::test]
async fn modern_subscription_is_an_open_request() {
    let (link, received) = LinkServer::modern(capabilities(), |message| {
        if message["method"] != "subscriptions/listen" {
            return Vec::new();
        }
        let id = &message["id"];
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let granted = json!({ "resourceSubscriptions": ["a:1"] });
        let other = json!({ "io.modelcontextprotocol/subscriptionId": 999 });
        vec![
            note(
                "notifications/subscriptions/acknowledged",
                json!({ "_meta": meta, "notifications": granted }),
            ),
            note(
                "notifications/tools/list_changed",
                json!({ "_meta": other }),
            ),
            note(
                "notifications/resources/updated",
                json!({ "_meta": meta, "uri": "a:1" }),
            ),
        ]
    });
    let client = Client::connect(link).await.unwrap();
    let mut changes = client
        .watch(Watch::new().tools().resource("a:1"))
        .await
        .unwrap();
    assert!(!changes.granted().tools);
    assert_eq!(
        changes.next().await,
        Some(Change::Updated {
            uri: "a:1".to_owned()
        })
    );
    let asked = &received.received("subscriptions/listen")[0];
    assert_eq!(
        asked["params"]["notifications"],
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:1"] })
    );
    drop(changes);
    while received.received("notifications/cancelled").is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        received.received("notifications/cancelled")[0]["params"]["requestId"],
        asked["id"]
    );
    client.close().await;
}

/// F17: over HTTP a lost stream is renewed, and possibly missed changes are reported; dropping it closes the stream.
#[tokio::test]
async fn lost_subscription_is_renewed() {
    let streams = AtomicUsize::new(0);
    let server = HttpServer::start(move |seen| match seen.method() {
        "server/discover" => Reply::result(seen, discover_result(capabilities())),
        "subscriptions/listen" => {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": seen.body["id"] });
            let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            let mut events = vec![Event::Data(note(
                "notifications/subscriptions/acknowledged",
                params,
            ))];
            if streams.fetch_add(1, Ordering::SeqCst) > 0 {
                events.push(Event::Hold);
            }
            Reply::Events(events)
        }
        _ => Reply::accepted(),
    })
    .await;
    let client = Client::connect(&server.url).await.unwrap();
    let mut changes = client.watch(Watch::new().tools()).await.unwrap();
    assert_eq!(changes.next().await, Some(Change::Tools));
    assert_eq!(server.of("subscriptions/listen").len(), 2);
    drop(changes);
    server
        .until(|server| server.left() == ["subscriptions/listen"])
        .await;
}

/// F17: a refused subscription is an error at once.
#[tokio::test]
async fn refused_subscription_is_an_error() {
    let (link, _) = LinkServer::modern(capabilities(), |message| {
        error(message, -32602, Value::Null)
    });
    let client = Client::connect(link).await.unwrap();
    let refused = client.watch(Watch::new().lists()).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32602));
    let (link, received) =
        LinkServer::legacy("2025-11-25", json!({ "resources": {} }), |_| Vec::new());
    let client = Client::connect(link).await.unwrap();
    let refused = client.subscribe("a:1").await.unwrap_err();
    assert!(
        matches!(refused, ClientError::NotNegotiated(_)),
        "{refused:?}"
    );
    assert!(received.received("resources/subscribe").is_empty());
}
