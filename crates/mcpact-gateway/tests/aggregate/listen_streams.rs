//! Streams of changes between a hub and its servers.

use mcpact::client::Watch;
use mcpact_config::RunSettings;
use mcpact_gateway::Cache;
use mcpact_spec::Revision;
use serde_json::json;

use crate::house::{client, hub, on_lines};
use crate::scripted::{PATIENCE, Script, Speaks, until};

const AGREED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;
const ENDED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#;

/// A modern server that ends the stream on which it tells of changes is listened to again; clients are
/// told of what may have changed meanwhile, and of what changes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_ended_is_opened_again() {
    let script = Script::new(Speaks::Discover, &json!({"tools": {"listChanged": true}}));
    script.put("subscriptions-listen", AGREED);
    let run = RunSettings::default();
    let hub = hub(vec![script.member_run("s", &Cache::disabled(), run)]);
    let connected = on_lines(&hub, client(Revision::V2025_11_25)).await;
    let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
    connected.list_tools().await.unwrap();
    let streams = || script.heard("subscriptions/listen").len();
    until("it is listened to", || streams() == 1).await;
    for (news, expected, tools) in [
        (CHANGED, 1, ["one", "two"]),
        (ENDED, 2, ["one", "three"]),
        (CHANGED, 2, ["one", "four"]),
        (ENDED, 3, ["one", "five"]),
    ] {
        script.tools(&tools);
        script.put("news", news);
        connected.call_tool("s__one", json!({})).await.unwrap();
        let told = tokio::time::timeout(PATIENCE, changes.next()).await;
        assert!(told.unwrap().is_some(), "{expected} {tools:?}");
        let names = connected.list_tools().await.unwrap();
        assert_eq!(names[1].name, format!("s__{}", tools[1]));
        assert_eq!(streams(), expected);
    }
    assert_eq!(script.starts(), 1);
}
