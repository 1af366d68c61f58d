//! Listen streams between the aggregator and its servers.

use mcpact::client::Watch;
use mcpact_config::RunSettings;
use mcpact_gateway::Cache;
use mcpact_spec::{Era, Revision};
use serde_json::json;

use crate::in_process::{aggregator, client, on_stdio};
use crate::scripted_process::{PATIENCE, ScriptedProcess, until};

const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;
const ENDED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// A listen stream ended by a modern server is opened again. Clients are notified of possible and later changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_stream_is_opened_again() {
    let script = ScriptedProcess::new(Era::Modern, &json!({"tools": {"listChanged": true}}));
    script.put("subscriptions-listen", ACKNOWLEDGED);
    let run = RunSettings::default();
    let aggregator = aggregator(vec![script.member_run("s", &Cache::disabled(), run)]);
    let connected = on_stdio(&aggregator, client(Revision::V2025_11_25)).await;
    let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
    connected.list_tools().await.unwrap();
    let streams = || script.received("subscriptions/listen").len();
    until("the stream is open", || streams() == 1).await;
    for (news, expected, tools) in [
        (CHANGED, 1, ["one", "two"]),
        (ENDED, 2, ["one", "three"]),
        (CHANGED, 2, ["one", "four"]),
        (ENDED, 3, ["one", "five"]),
    ] {
        script.tools(&tools);
        script.put("news", news);
        connected.call_tool("s__one", json!({})).await.unwrap();
        let notified = tokio::time::timeout(PATIENCE, changes.next()).await;
        assert!(notified.unwrap().is_some(), "{expected} {tools:?}");
        let names = connected.list_tools().await.unwrap();
        assert_eq!(names[1].name, format!("s__{}", tools[1]));
        assert_eq!(streams(), expected);
    }
    assert_eq!(script.starts(), 1);
}
