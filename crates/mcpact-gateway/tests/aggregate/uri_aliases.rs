//! One resource under two addresses: as it is, and with its server's name before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact_gateway::Aggregator;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::house::{everything, hub};
use crate::mixed_era_subscriptions::ERAS;
use crate::resource_subscriptions::{WATCHED, is_update};
use crate::scripted::PATIENCE;
use crate::wire::Wire;

fn named() -> String {
    format!("mcpact://only/{WATCHED}")
}

/// A client that has subscribed to the resource under both addresses.
async fn subscribed(hub: &Arc<Aggregator>, client: Era) -> Wire {
    match client {
        Era::Legacy => {
            let mut wire = Wire::legacy(hub, &json!({})).await;
            for uri in [WATCHED, &named()] {
                let answer = wire.ask("resources/subscribe", json!({"uri": uri})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
            wire
        }
        Era::Modern => {
            let mut wire = Wire::modern(hub, &json!({}));
            let both = json!([WATCHED, named()]);
            let wanted = json!({"notifications": {"resourceSubscriptions": both}});
            wire.begin("subscriptions/listen", wanted).await;
            let agreed = wire.hear().await;
            let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
            assert_eq!(*agreed, both);
            wire
        }
    }
}

/// Under which addresses a client hears of the resource that changes, until it has heard of these.
async fn is_told(wire: &mut Wire, expected: &[&str], what: &str) {
    let trigger = json!({"name": "only__test_trigger_resource_update", "arguments": {}});
    wire.begin("tools/call", trigger).await;
    let mut told = BTreeSet::new();
    let hearing = async {
        while told.len() < expected.len() {
            let heard = wire.hear().await;
            if is_update(&heard) {
                let uri: &Value = &heard["params"]["uri"];
                told.insert(uri.as_str().unwrap().to_owned());
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, hearing).await;
    assert!(heard.is_ok(), "{what}: {told:?}");
    assert!(told.iter().eq(expected), "{what}: {told:?}");
}

/// F4: whoever has subscribed to a resource under two addresses hears of it under both, and under the one that is
/// left after it has ended the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_resource_under_two_addresses() {
    let named = named();
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for client in ERAS {
            let what = format!("{client:?} at {speaks}");
            let hub = hub(vec![everything("only", speaks)]);
            let mut wire = subscribed(&hub, client).await;
            is_told(&mut wire, &[&named, WATCHED], &what).await;
            if client == Era::Modern {
                continue;
            }
            let ended = wire
                .ask("resources/unsubscribe", json!({"uri": WATCHED}))
                .await;
            assert_eq!(ended["result"], json!({}), "{what}: {ended}");
            is_told(&mut wire, &[&named], &what).await;
            let ended = wire
                .ask("resources/unsubscribe", json!({"uri": named}))
                .await;
            assert_eq!(ended["result"], json!({}), "{what}: {ended}");
            for method in ["tools/call", "ping"] {
                let params = json!({"name": "only__test_trigger_resource_update", "arguments": {}});
                let id = wire.begin(method, params).await;
                loop {
                    let heard = wire.hear().await;
                    assert!(!is_update(&heard), "{what}: it has ended");
                    if heard["id"] == id {
                        break;
                    }
                }
            }
        }
    }
}
