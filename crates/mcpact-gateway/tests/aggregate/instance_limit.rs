//! Servers at their instance limit.

use std::sync::Arc;

use mcpact_config::{Restarts, RunSettings};
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache};
use mcpact_spec::Era;
use serde_json::json;

use crate::scripted_process::{PATIENCE, SHORT, ScriptedProcess, until};
use crate::wire::Wire;

/// A list that failed because of the instance limit is fetched when an instance is free, without another request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_is_fetched_when_an_instance_is_free() {
    let script = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
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
    // Lists are not refreshed because of their age.
    let settings = AggregatorSettings {
        list_age: PATIENCE * 60,
        ..AggregatorSettings::default()
    };
    let aggregator = Aggregator::new(vec![Arc::clone(&member)], settings).unwrap();
    let mut first = Wire::modern(&aggregator, &json!({}));
    let call = json!({"name": "s__one", "arguments": {}});
    first.begin("tools/call", call).await;
    until("it is called", || !script.received("tools/call").is_empty()).await;
    let mut second = Wire::legacy(&aggregator, &json!({"sampling": {}})).await;
    second.ask("tools/list", json!({})).await;
    until("the limit is reached", || !member.lacking().is_empty()).await;
    script.answers("tools-call", &json!({"content": []}));
    until("the list is complete", || member.lacking().is_empty()).await;
    while second.recv().await["method"] != "notifications/tools/list_changed" {}
}
