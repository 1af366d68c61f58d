//! Clients of both eras that are subscribed to the same resource of one server that runs once for all of them.

use std::sync::Arc;

use mcpact_gateway::catalog::RunSettings;
use mcpact_gateway::{Cache, Hub};
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::house::hub;
use crate::scripted::{PATIENCE, Script, Speaks, until};
use crate::wire::Wire;

const URI: &str = "file:///s";
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A legacy server that takes subscriptions.
fn subscribable() -> Script {
    let resources = json!({"subscribe": true});
    let script = Script::new(
        Speaks::Handshake,
        &json!({"tools": {}, "resources": resources}),
    );
    for file in ["resources-subscribe", "resources-unsubscribe"] {
        script.answers(file, &json!({}));
    }
    let listed = json!({"resources": [{"uri": URI, "name": "s"}]});
    script.answers("resources-list", &listed);
    script
}

/// A client that is subscribed.
struct Subscriber {
    era: Era,
    wire: Wire,
    stream: u64,
}

impl Subscriber {
    async fn new(hub: &Arc<Hub>, era: Era) -> Self {
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

    async fn leave(&mut self) {
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

    /// Until it hears of the resource.
    async fn hears(&mut self, script: &Script, what: &str) {
        let news = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}});
        script.put("news", &news.to_string());
        let is_update = |message: &Value| message["method"] == news["method"];
        let told = async {
            let mut heard = self.call().await;
            while !heard.iter().any(is_update) {
                heard = vec![self.wire.hear().await];
            }
        };
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
                let (script, cache) = (subscribable(), Cache::nowhere());
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
                let is_update = |one: &Value| one["method"] == "notifications/resources/updated";
                assert!(!heard.iter().any(is_update), "{what}: {heard:?}");
                staying.leave().await;
                until(&what, || !script.heard("resources/unsubscribe").is_empty()).await;
            }
        }
    }
}
