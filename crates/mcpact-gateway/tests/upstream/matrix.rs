//! Clients of every revision with servers of every revision.

use mcpact::client::Client;
use mcpact_spec::{Capability, Revision};
use serde_json::{Map, Value, json};

use crate::pairs::{Transport, connect};

async fn walk(connected: &Client, client: Revision, server: Revision, what: &str) {
    assert_eq!(connected.pact().revision(), client, "{what}");
    let name = connected.server_info().unwrap().name().to_owned();
    assert_eq!(name, "mcpact-everything", "{what}");
    let tools = connected.list_tools().await.unwrap();
    assert!(tools.len() > 30, "{what}");
    assert!(!connected.list_prompts().await.unwrap().is_empty());
    assert!(!connected.list_resources().await.unwrap().is_empty());
    let templates = connected.list_resource_templates().await.unwrap();
    assert!(!templates.is_empty(), "{what}");
    let echo = json!({"text": "hello"});
    let echoed = connected.call_tool("echo", echo).await.unwrap();
    assert_eq!(echoed.all_text(), "hello", "{what}");
    let read = connected.read_resource("test://static-text").await.unwrap();
    assert_eq!(read.contents.len(), 1, "{what}");
    let arguments = [("arg1", "x"), ("arg2", "y")];
    let arguments: Map<String, Value> = arguments
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    let prompt = connected.get_prompt("test_prompt_with_arguments", arguments);
    assert_eq!(prompt.await.unwrap().messages.len(), 1, "{what}");
    let missing = connected.call_tool("no_such_tool", Value::Null).await;
    assert!(missing.is_err(), "{what}");
    questions(connected, client, server, what).await;
}

/// Checks that questions of tools reach the client, and its answers the tools, if both revisions have them.
async fn questions(connected: &Client, client: Revision, server: Revision, what: &str) {
    let may_elicit = |revision: Revision| Capability::Elicitation.presence(revision).counts();
    let greeted = connected
        .call_tool("test_input_required_result_elicitation", json!({}))
        .await;
    if may_elicit(client) && may_elicit(server) {
        assert_eq!(greeted.unwrap().all_text(), "Hello, Ann!", "{what}");
    } else {
        let is_refused = greeted.map_or(true, |result| result.failed());
        assert!(is_refused, "{what}: elicitation is not available");
    }
    let sampled = connected
        .call_tool("test_input_required_result_sampling", json!({}))
        .await
        .unwrap();
    assert!(sampled.all_text().contains("Paris"), "{what}: {sampled:?}");
    let roots = connected
        .call_tool("test_input_required_result_list_roots", json!({}))
        .await
        .unwrap();
    assert!(roots.all_text().contains("/home/ann"), "{what}: {roots:?}");
}

/// All 25 pairs of revisions work over stdio and HTTP on each side, including questions of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_revision_works_with_every_server_revision() {
    for front in Transport::ALL {
        for back in Transport::ALL {
            for client in Revision::ALL {
                for server in Revision::ALL {
                    let what = format!("{client} on {front:?} before {server} on {back:?}");
                    let connected = connect(front, client, back, server).await;
                    let connected = connected.unwrap_or_else(|error| panic!("{what}: {error}"));
                    walk(&connected, client, server, &what).await;
                    connected.close().await;
                }
            }
        }
    }
}
