//! One resource under two URIs: its own, and the one with the name of its server.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact_gateway::Aggregator;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::in_process::{aggregator, everything};
use crate::mixed_era_subscriptions::ERAS;
use crate::resource_subscriptions::{WATCHED, is_update};
use crate::scripted_process::PATIENCE;
use crate::wire::Wire;

fn named() -> String {
    format!("mcpact://only/{WATCHED}")
}

/// Connects a client that subscribes to the resource under both URIs.
async fn subscribed(aggregator: &Arc<Aggregator>, client: Era) -> Wire {
    match client {
        Era::Legacy => {
            let mut wire = Wire::legacy(aggregator, &json!({})).await;
            for uri in [WATCHED, &named()] {
                let answer = wire.ask("resources/subscribe", json!({"uri": uri})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
            wire
        }
        Era::Modern => {
            let mut wire = Wire::modern(aggregator, &json!({}));
            let both = json!([WATCHED, named()]);
            let wanted = json!({"notifications": {"resourceSubscriptions": both}});
            wire.begin("subscriptions/listen", wanted).await;
            let agreed = wire.recv().await;
            let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
            assert_eq!(*agreed, both);
            wire
        }
    }
}

/// Changes the resource and waits for updates with exactly these URIs.
async fn expect_updates(wire: &mut Wire, expected: &[&str], what: &str) {
    let trigger = json!({"name": "only__test_trigger_resource_update", "arguments": {}});
    wire.begin("tools/call", trigger).await;
    let mut text = BTreeSet::new();
    let hearing = async {
        while text.len() < expected.len() {
            let received = wire.recv().await;
            if is_update(&received) {
                let uri: &Value = &received["params"]["uri"];
                text.insert(uri.as_str().unwrap().to_owned());
            }
        }
    };
    let received = tokio::time::timeout(PATIENCE, hearing).await;
    assert!(received.is_ok(), "{what}: {text:?}");
    assert!(text.iter().eq(expected), "{what}: {text:?}");
}

/// F4: a subscriber to both URIs gets updates with both, and only with the other one after it has ended one subscription.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriber_gets_updates_for_each_subscribed_uri() {
    let named = named();
    for server_revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for client in ERAS {
            let what = format!("{client:?} at {server_revision}");
            let aggregator = aggregator(vec![everything("only", server_revision)]);
            let mut wire = subscribed(&aggregator, client).await;
            expect_updates(&mut wire, &[&named, WATCHED], &what).await;
            if client == Era::Modern {
                continue;
            }
            let ended = wire
                .ask("resources/unsubscribe", json!({"uri": WATCHED}))
                .await;
            assert_eq!(ended["result"], json!({}), "{what}: {ended}");
            expect_updates(&mut wire, &[&named], &what).await;
            let ended = wire
                .ask("resources/unsubscribe", json!({"uri": named}))
                .await;
            assert_eq!(ended["result"], json!({}), "{what}: {ended}");
            for method in ["tools/call", "ping"] {
                let params = json!({"name": "only__test_trigger_resource_update", "arguments": {}});
                let id = wire.begin(method, params).await;
                loop {
                    let received = wire.recv().await;
                    assert!(!is_update(&received), "{what}: it has ended");
                    if received["id"] == id {
                        break;
                    }
                }
            }
        }
    }
}
