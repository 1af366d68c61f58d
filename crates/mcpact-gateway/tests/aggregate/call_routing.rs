//! Routing of requests to servers.

use mcpact::client::Client;
use mcpact_spec::{Capability, Revision};
use serde_json::{Map, Value, json};

use crate::in_process::{aggregator, broken, client, everything, on_http, on_stdio};

const SERVERS: [(&str, Revision); 5] = [
    ("old", Revision::V2024_11_05),
    ("second", Revision::V2025_03_26),
    ("third", Revision::V2025_06_18),
    ("later", Revision::V2025_11_25),
    ("new", Revision::V2026_07_28),
];

async fn walk(connected: &Client, revision: Revision) {
    let tools = connected.list_tools().await.unwrap();
    let resources = connected.list_resources().await.unwrap();
    for (server, server_revision) in SERVERS {
        let what = format!("{revision} at {server}");
        let own = tools.iter().filter(|tool| tool.name.starts_with(server));
        assert!(own.count() > 30, "{what}");
        let echoed = connected
            .call_tool(&format!("{server}__echo"), json!({"text": server}))
            .await
            .unwrap();
        assert_eq!(echoed.all_text(), server, "{what}");
        // All servers have it, so each has its own URI.
        let uri = format!("mcpact://{server}/test://static-text");
        assert!(
            resources.iter().any(|resource| resource.uri == uri),
            "{what}"
        );
        let read = connected.read_resource(&uri).await.unwrap();
        assert_eq!(read.contents.len(), 1, "{what}");
        let contents = serde_json::to_value(&read.contents[0]).unwrap();
        assert_eq!(contents["uri"], uri, "{what}");
        let arguments = [("arg1", "x"), ("arg2", "y")];
        let arguments: Map<String, Value> = arguments
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let name = format!("{server}__test_prompt_with_arguments");
        let prompt = connected.get_prompt(&name, arguments).await.unwrap();
        assert_eq!(prompt.messages.len(), 1, "{what}");
        questions(connected, revision, server, server_revision).await;
    }
    let unknown = connected.call_tool("unknown__echo", json!({})).await;
    let message = unknown.unwrap_err().to_string();
    assert!(
        message.contains("Unknown tool") && message.contains("later__echo"),
        "{message}"
    );
    assert!(message.contains("`broken`"), "{message}");
}

/// Checks that questions during a call reach its client, if it can answer them.
async fn questions(connected: &Client, client: Revision, server: &str, server_revision: Revision) {
    let what = format!("{client} at {server}");
    let may_elicit = |revision: Revision| Capability::Elicitation.presence(revision).counts();
    let name = format!("{server}__test_input_required_result_elicitation");
    let greeted = connected.call_tool(&name, json!({})).await;
    if may_elicit(client) && may_elicit(server_revision) {
        assert_eq!(greeted.unwrap().all_text(), "Hello, Ann!", "{what}");
    } else {
        assert!(greeted.map_or(true, |result| result.failed()), "{what}");
    }
    let name = format!("{server}__test_input_required_result_sampling");
    let sampled = connected.call_tool(&name, json!({})).await.unwrap();
    assert!(sampled.all_text().contains("Paris"), "{what}: {sampled:?}");
}

/// Clients of every revision use servers of every revision through one connection. Errors name a server that cannot be
/// started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_revision_works_with_all_servers() {
    for revision in Revision::ALL {
        let members = SERVERS.map(|(name, server_revision)| everything(name, server_revision));
        let mut members = members.to_vec();
        members.push(broken("broken"));
        let aggregator = aggregator(members);
        let connected = on_stdio(&aggregator, client(revision)).await;
        assert_eq!(connected.pact().revision(), revision);
        assert_eq!(connected.server_info().unwrap().name(), "mcpact");
        walk(&connected, revision).await;
        connected.close().await;
        let connected = on_http(&aggregator, client(revision)).await;
        walk(&connected, revision).await;
        connected.close().await;
    }
}
