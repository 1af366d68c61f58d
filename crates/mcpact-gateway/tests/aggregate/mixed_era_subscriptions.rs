//! Clients of both eras that are subscribed to the same resource of one server that runs once for all of them.

use std::sync::Arc;

use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, Cache};
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::house::hub;
use crate::resource_subscriptions::is_update;
use crate::scripted::{PATIENCE, Script, Speaks, until};
use crate::wire::Wire;

pub(crate) const URI: &str = "file:///s";
pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Tells that the resource has changed: everybody, and whoever listens.
const UPDATED: [&str; 2] = [
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///s"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///s","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#,
];
const AGREED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["file:///s"]},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// A server that takes subscriptions.
pub(crate) fn subscribable(era: Speaks) -> Script {
    let resources = json!({"subscribe": true});
    let script = Script::new(era, &json!({"tools": {}, "resources": resources}));
    let mut listed = json!({"resources": [{"uri": URI, "name": "s"}]});
    match era {
        Speaks::Handshake => {
            for file in ["resources-subscribe", "resources-unsubscribe"] {
                script.answers(file, &json!({}));
            }
        }
        Speaks::Discover => {
            script.put("subscriptions-listen", AGREED);
            listed["resultType"] = json!("complete");
            listed["ttlMs"] = json!(0);
            listed["cacheScope"] = json!("private");
        }
    }
    script.answers("resources-list", &listed);
    script
}

/// A client that is subscribed.
pub(crate) struct Subscriber {
    era: Era,
    wire: Wire,
    stream: u64,
}

impl Subscriber {
    pub(crate) async fn new(hub: &Arc<Aggregator>, era: Era) -> Self {
        let (wire, stream) = match era {
            Era::Legacy => {
                let mut wire = Wire::legacy(hub, &json!({})).await;
                let answer = wire.ask("resources/subscribe", json!({"uri": URI})).await;
                assert_eq!(answer["result"], json!({}), "{answer}");
                (wire, 0)
            }
            Era::Modern => {
                let mut wire = Wire::modern(hub, &json!({}));
                let wanted = json!({"notifications": {"resourceSubscriptions": [URI]}});
                let stream = wire.begin("subscriptions/listen", wanted).await;
                let agreed = wire.hear().await;
                let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
                assert_eq!(*agreed, json!([URI]));
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
                self.wire.say(&cancelled).await;
            }
        }
    }

    /// Everything that it hears before a call is answered.
    async fn call(&mut self) -> Vec<Value> {
        let params = json!({"name": "s__one", "arguments": {}});
        let id = self.wire.begin("tools/call", params).await;
        let mut heard = Vec::new();
        loop {
            let message = self.wire.hear().await;
            if message["id"] == id {
                assert!(message["result"].is_object(), "{message}");
                return heard;
            }
            heard.push(message);
        }
    }

    /// Until it hears of the resource, of which its server tells.
    pub(crate) async fn hears(&mut self, script: &Script, what: &str) {
        let [to_everybody, to_listeners] = UPDATED;
        let news = match script.era {
            Speaks::Handshake => to_everybody,
            Speaks::Discover => to_listeners,
        };
        script.put("news", news);
        let told = async {
            let heard = self.call().await;
            if !heard.iter().any(is_update) {
                self.is_told(what).await;
            }
        };
        let told = tokio::time::timeout(PATIENCE, told).await;
        assert!(told.is_ok(), "{what}");
    }

    /// Until it hears of the resource.
    pub(crate) async fn is_told(&mut self, what: &str) {
        let told = async { while !is_update(&self.wire.hear().await) {} };
        let told = tokio::time::timeout(PATIENCE, told).await;
        assert!(told.is_ok(), "{what}");
    }
}

/// F4: the server is told that nobody wants to hear of a resource any more when the last one has left, of
/// whichever era it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_makes_nobody_of_another_era_deaf() {
    for stays in ERAS {
        for leaves in ERAS {
            for is_first in [false, true] {
                let what = format!("{stays:?} stays, {leaves:?} leaves, first: {is_first}");
                let (script, cache) = (subscribable(Speaks::Handshake), Cache::disabled());
                let hub = hub(vec![script.member_run("s", &cache, RunSettings::default())]);
                let eras = match is_first {
                    true => [leaves, stays],
                    false => [stays, leaves],
                };
                let first = Subscriber::new(&hub, eras[0]).await;
                let second = Subscriber::new(&hub, eras[1]).await;
                let (mut leaving, mut staying) = match is_first {
                    true => (first, second),
                    false => (second, first),
                };
                assert_eq!(script.starts(), 1, "{what}: they share it");
                leaving.leave().await;
                leaving.call().await;
                staying.hears(&script, &what).await;
                staying.call().await;
                let told = script.heard("resources/unsubscribe");
                assert!(told.is_empty(), "{what}: {told:?}");
                let heard = leaving.call().await;
                assert!(!heard.iter().any(is_update), "{what}: {heard:?}");
                staying.leave().await;
                until(&what, || !script.heard("resources/unsubscribe").is_empty()).await;
            }
        }
    }
}
