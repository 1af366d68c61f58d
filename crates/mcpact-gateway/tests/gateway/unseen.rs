//! Calls that their server has never seen.

use std::time::Duration;

use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{MORTAL, catalog, client, gateway};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn server(calls: usize, seconds: f64) -> String {
    format!("{MORTAL}max_instances = 1\nmax_concurrent = {calls}\ncall_seconds = {seconds}\n")
}

/// G12, O5: a call that took too long is told whether its server has seen it: only then may it have had its effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_has_seen_has_no_effect() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (gateway, origin) = gateway(&server(1, 3600.0)).await;
        let connected = client(revision).connect(format!("{origin}/servers/m/mcp"));
        let connected = connected.await.unwrap();
        let first = connected.clone();
        let first = tokio::spawn(async move { first.call_tool("hang", json!({})).await });
        let is_under_way = || gateway.status(None).unwrap().servers[0].in_flight == 1;
        let under_way = async {
            while !is_under_way() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, under_way).await.unwrap();

        gateway.change(catalog(&server(1, 0.1))).unwrap();
        let waited = connected.call_tool("who", json!({})).await.unwrap_err();
        let waited = waited.to_string();
        assert!(waited.contains("which has not seen it"), "{waited}");
        assert!(!waited.contains("effect"), "{waited}");

        gateway.change(catalog(&server(2, 0.1))).unwrap();
        let given = connected.call_tool("hang", json!({})).await.unwrap_err();
        let given = given.to_string();
        assert!(given.contains("may have had its effect"), "{given}");
        first.abort();
    }
}
