//! Servers that have no room for somebody.

use std::sync::Arc;

use mcpact_config::{Restarts, RunSettings};
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache};
use serde_json::json;

use crate::scripted::{PATIENCE, SHORT, Script, Speaks, until};
use crate::wire::Wire;

/// Who was not told the tools of a server because it had no room is told of them soon after it has some, although
/// nobody asks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_comes_when_there_is_room() {
    let script = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    script.put("tools-call", "silence");
    let of_all = RunSettings::default();
    let run = RunSettings {
        max_instances: 1,
        queue_wait: SHORT,
        restarts: Restarts {
            backoff: SHORT,
            backoff_max: SHORT * 4,
            ..of_all.restarts
        },
        ..RunSettings::default()
    };
    let member = script.member_run("s", &Cache::disabled(), run);
    // Nothing is looked at again because time has passed.
    let settings = AggregatorSettings {
        list_age: PATIENCE * 60,
        ..AggregatorSettings::default()
    };
    let hub = Aggregator::new(vec![Arc::clone(&member)], settings).unwrap();
    let mut first = Wire::modern(&hub, &json!({}));
    let call = json!({"name": "s__one", "arguments": {}});
    first.begin("tools/call", call).await;
    until("it is called", || !script.heard("tools/call").is_empty()).await;
    let mut second = Wire::legacy(&hub, &json!({"sampling": {}})).await;
    second.ask("tools/list", json!({})).await;
    until("there is no room", || !member.lacking().is_empty()).await;
    script.answers("tools-call", &json!({"content": []}));
    until("the list has come", || member.lacking().is_empty()).await;
    while second.hear().await["method"] != "notifications/tools/list_changed" {}
}
