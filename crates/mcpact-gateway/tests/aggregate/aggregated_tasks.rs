//! Tasks of several servers, in both forms.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, ClientError, TaskOptions};
use mcpact::model::{ElicitResult, TaskStatus};
use mcpact_gateway::ServerEntry;
use mcpact_sim::scripted::LinkServer;
use mcpact_sim::scripted::message::response;
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

use crate::in_process::{aggregator, everything, on_http, on_stdio};
use crate::targets::{in_memory, upstream};
use crate::wire::Wire;

use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

const SERVERS: [(&str, Revision); 3] = [
    ("core", V2025_11_25),
    ("extended", V2026_07_28),
    ("plain", V2025_06_18),
];

/// Client with tasks that accepts every elicitation.
fn client(revision: Revision) -> ClientBuilder {
    let builder = crate::in_process::client(revision).on_elicitation(|_| async {
        let answers = [("confirm", json!(true)), ("name", json!("Ann"))];
        let answers = answers.map(|(key, value)| (key.to_owned(), value));
        Ok(ElicitResult::accept(Map::from_iter(answers)))
    });
    match revision {
        V2026_07_28 => builder.tasks(),
        _ => builder,
    }
}

/// Runs a tool as a task and waits for it.
async fn run(
    client: &Client,
    server: &str,
    tool: &str,
    given: Value,
) -> Result<String, ClientError> {
    let tool = format!("{server}__{tool}");
    let call = client.call_tool_as_task(&tool, given, TaskOptions::new());
    let call = call.await?;
    let id = call.task().ok_or(&tool).unwrap().task_id.clone();
    assert!(id.starts_with(&format!("{server}:")), "{tool}: {id}");
    Ok(call.result().await?.all_text())
}

async fn walk(client: &Client, what: &str) {
    for server in ["core", "extended"] {
        let what = format!("{what} at {server}");
        let slow = json!({"seconds": 0.05});
        let computed = run(client, server, "slow_compute", slow).await;
        assert_eq!(computed.unwrap(), "Computed for 0.05 seconds.", "{what}");
        let file = json!({"filename": "a.txt"});
        let deleted = run(client, server, "confirm_delete", file).await;
        assert_eq!(deleted.unwrap(), "Deleted a.txt.", "{what}");
        let broken = run(client, server, "protocol_error_job", json!({})).await;
        let broken = broken.unwrap_err().to_string();
        assert!(broken.contains("The job broke."), "{what}: {broken}");
        let tool = format!("{server}__slow_compute");
        let slow = json!({"seconds": 50});
        let call = client.call_tool_as_task(&tool, slow, TaskOptions::new());
        let mut call = call.await.unwrap();
        call.cancel().await.unwrap();
        let status = call.refresh().await.unwrap().map(|task| task.status);
        assert_eq!(status, Some(TaskStatus::Cancelled), "{what}");
    }
    for unknown in ["unknown:1", "core:1", "extended:1", "1"] {
        let params = json!({ "taskId": unknown }).to_string();
        let asked = client.request("tasks/get", Some(&params)).await;
        let error = asked.unwrap_err();
        assert_eq!(error.code(), Some(-32602), "{what} {unknown}: {error}");
    }
    let computed = client.call_tool("plain__echo", json!({"text": "x"})).await;
    assert_eq!(computed.unwrap().all_text(), "x", "{what}");
}

/// Clients run tools of servers with either form of tasks as tasks through one connection, including questions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_all_servers_run_as_tasks() {
    for revision in [V2025_11_25, V2026_07_28] {
        let aggregator = aggregator(
            SERVERS
                .map(|(name, server_revision)| everything(name, server_revision))
                .to_vec(),
        );
        let connected = on_stdio(&aggregator, client(revision)).await;
        walk(&connected, &format!("{revision} on lines")).await;
        connected.close().await;
        let connected = on_http(&aggregator, client(revision)).await;
        walk(&connected, &format!("{revision} by HTTP")).await;
        connected.close().await;
    }
}

/// Clients of 2025-11-25 get the task support of each tool: `optional` for modern servers, the declared one for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_list_contains_the_task_support() {
    let aggregator = aggregator(
        SERVERS
            .map(|(name, revision)| everything(name, revision))
            .to_vec(),
    );
    let mut wire = Wire::legacy(&aggregator, &json!({})).await;
    let listed = wire.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    for (server, expected) in [
        ("core", &["", "forbidden", "optional", "required"][..]),
        ("extended", &["optional"]),
        ("plain", &[""]),
    ] {
        let prefix = format!("{server}__");
        let of = |tool: &&Value| tool["name"].as_str().unwrap().starts_with(&prefix);
        let said = tools.iter().filter(of);
        let said = said.map(|tool| tool["execution"]["taskSupport"].as_str());
        let said: BTreeSet<&str> = said.map(Option::unwrap_or_default).collect();
        assert_eq!(Vec::from_iter(said), expected, "{server}");
    }
    // Other revisions have no such field.
    for revision in [V2025_06_18, V2026_07_28] {
        let older = on_stdio(&aggregator, client(revision)).await;
        let tools = older.list_tools().await.unwrap();
        assert!(
            tools.iter().all(|tool| tool.execution.is_none()),
            "{revision}"
        );
    }
}

/// A task requested from a server without tasks is refused with an error that names the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_at_a_server_without_tasks_is_refused() {
    let aggregator = aggregator(
        SERVERS
            .map(|(name, server_revision)| everything(name, server_revision))
            .to_vec(),
    );
    let connected = on_stdio(&aggregator, client(V2025_11_25)).await;
    let params = json!({"name": "plain__echo", "arguments": {"text": "x"}, "task": {}});
    let refused = connected
        .request("tools/call", Some(&params.to_string()))
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.code(), Some(-32601), "{error}");
    assert!(error.to_string().contains("plain"), "{error}");
}

/// Server of 2025-11-25 that gives every task the id `1`.
fn same_ids(name: &'static str) -> Arc<ServerEntry> {
    let target = in_memory(move || {
        let capabilities =
            json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}});
        let script = move |message: &Value| {
            let task = json!({
                "taskId": "1", "status": "working", "statusMessage": name, "ttl": 60000,
                "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            });
            let result = match message["method"].as_str().unwrap_or_default() {
                "tools/list" => json!({"tools": [
                    {"name": "work", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}
                ]}),
                "tools/call" => json!({ "task": task }),
                "tasks/get" | "tasks/cancel" => task,
                _ if message["id"].is_null() => return Vec::new(),
                _ => json!({}),
            };
            vec![response(message, result)]
        };
        LinkServer::legacy("2025-11-25", capabilities, script).0
    });
    ServerEntry::new(name, upstream(target))
}

/// P21: tasks with the same id at two servers are separate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_task_id_at_two_servers_is_unambiguous() {
    let aggregator = aggregator(vec![same_ids("left"), same_ids("right")]);
    let connected = on_stdio(&aggregator, client(V2025_11_25)).await;
    for server in ["left", "right"] {
        let tool = format!("{server}__work");
        let call = connected.call_tool_as_task(&tool, json!({}), TaskOptions::new());
        let call = call.await.unwrap();
        let id = call.task().unwrap().task_id.clone();
        assert_eq!(id, format!("{server}:1"));
        let params = json!({ "taskId": id }).to_string();
        let shown = connected.request("tasks/get", Some(&params)).await.unwrap();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["statusMessage"], server);
        assert_eq!(shown["taskId"], id);
    }
}
