//! Clients of both eras that subscribe to the same resource of one shared server.

use std::sync::Arc;

use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, Cache};
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::resource_subscriptions::is_update;
use crate::scripted_process::{PATIENCE, ScriptedProcess, until};
use crate::wire::Wire;

pub(crate) const URI: &str = "file:///s";
pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Update notifications of the resource, for legacy and modern clients.
const UPDATED: [&str; 2] = [
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///s"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///s","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#,
];
const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["file:///s"]},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// Server that accepts subscriptions.
pub(crate) fn subscribable(era: Era) -> ScriptedProcess {
    let resources = json!({"subscribe": true});
    let script = ScriptedProcess::new(era, &json!({"tools": {}, "resources": resources}));
    let mut listed = json!({"resources": [{"uri": URI, "name": "s"}]});
    match era {
        Era::Legacy => {
            for file in ["resources-subscribe", "resources-unsubscribe"] {
                script.answers(file, &json!({}));
            }
        }
        Era::Modern => {
            script.put("subscriptions-listen", ACKNOWLEDGED);
            listed["resultType"] = json!("complete");
            listed["ttlMs"] = json!(0);
            listed["cacheScope"] = json!("private");
        }
    }
    script.answers("resources-list", &listed);
    script
}

/// Client with a subscription.
pub(crate) struct Subscriber {
    era: Era,
    wire: Wire,
    stream: i64,
}

impl Subscriber {
    pub(crate) async fn new(aggregator: &Arc<Aggregator>, era: Era) -> Self {
        let (wire, stream) = match era {
            Era::Legacy => {
                let mut wire = Wire::legacy(aggregator, &json!({})).await;
                let answer = wire.ask("resources/subscribe", json!({"uri": URI})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
                (wire, 0)
            }
            Era::Modern => {
                let mut wire = Wire::modern(aggregator, &json!({}));
                let wanted = json!({"notifications": {"resourceSubscriptions": [URI]}});
                let stream = wire.begin("subscriptions/listen", wanted).await;
                let acknowledged = wire.recv().await;
                let acknowledged =
                    &acknowledged["params"]["notifications"]["resourceSubscriptions"];
                assert_eq!(*acknowledged, json!([URI]));
                (wire, stream)
            }
        };
        Self { era, wire, stream }
    }

    pub(crate) async fn leave(&mut self) {
        match self.era {
            Era::Legacy => {
                let params = json!({"uri": URI});
                let answer = self.wire.ask("resources/unsubscribe", params).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
            }
            Era::Modern => {
                let params = json!({"requestId": self.stream});
                let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                self.wire.send(&cancelled).await;
            }
        }
    }

    /// Calls the tool; returns the messages before the response.
    async fn call(&mut self) -> Vec<Value> {
        let params = json!({"name": "s__one", "arguments": {}});
        let id = self.wire.begin("tools/call", params).await;
        let mut received = Vec::new();
        loop {
            let message = self.wire.recv().await;
            if message["id"] == id {
                assert!(message["result"].is_object(), "{message}");
                return received;
            }
            received.push(message);
        }
    }

    /// Makes the server send an update, and waits for it.
    pub(crate) async fn expect_update_of(&mut self, script: &ScriptedProcess, what: &str) {
        let [legacy, modern] = UPDATED;
        let news = match script.era {
            Era::Legacy => legacy,
            Era::Modern => modern,
        };
        script.put("news", news);
        let notified = async {
            let received = self.call().await;
            if !received.iter().any(is_update) {
                self.expect_update(what).await;
            }
        };
        let notified = tokio::time::timeout(PATIENCE, notified).await;
        assert!(notified.is_ok(), "{what}");
    }

    /// Waits for an update.
    pub(crate) async fn expect_update(&mut self, what: &str) {
        let notified = async { while !is_update(&self.wire.recv().await) {} };
        let notified = tokio::time::timeout(PATIENCE, notified).await;
        assert!(notified.is_ok(), "{what}");
    }
}

/// F4: the subscription at the server ends with the last subscriber, whatever their eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_at_the_server_ends_with_the_last_subscriber() {
    for stays in ERAS {
        for leaves in ERAS {
            for is_first in [false, true] {
                let what = format!("{stays:?} stays, {leaves:?} leaves, first: {is_first}");
                let (script, cache) = (subscribable(Era::Legacy), Cache::disabled());
                let aggregator =
                    aggregator(vec![script.member_run("s", &cache, RunSettings::default())]);
                let eras = match is_first {
                    true => [leaves, stays],
                    false => [stays, leaves],
                };
                let first = Subscriber::new(&aggregator, eras[0]).await;
                let second = Subscriber::new(&aggregator, eras[1]).await;
                let (mut leaving, mut staying) = match is_first {
                    true => (first, second),
                    false => (second, first),
                };
                assert_eq!(script.starts(), 1, "{what}: they share it");
                leaving.leave().await;
                leaving.call().await;
                staying.expect_update_of(&script, &what).await;
                staying.call().await;
                let ended = script.received("resources/unsubscribe");
                assert!(ended.is_empty(), "{what}: {ended:?}");
                let received = leaving.call().await;
                assert!(!received.iter().any(is_update), "{what}: {received:?}");
                staying.leave().await;
                until(&what, || {
                    !script.received("resources/unsubscribe").is_empty()
                })
                .await;
            }
        }
    }
}
