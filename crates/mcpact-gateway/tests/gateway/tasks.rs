//! Tasks during a reload, and task-augmented calls where tasks were not declared.

use std::time::Duration;

use mcpact::client::{Client, TaskOptions};
use mcpact_sim::scripted::HttpTestClient;
use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

use crate::harness::{MORTAL, catalog, client, gateway};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the config of a server with this drain time.
fn server(era: &str, drain: &str) -> String {
    format!(
        "[servers.s]\nbuiltin = \"everything\"\nera = \"{era}\"\ndrain_seconds = {drain}\ntags = [\"t\"]\n"
    )
}

/// Configs after the reload: a replacement, and a config without the server.
const RESTARTED: &str = "[servers.s]\nbuiltin = \"everything\"\n";
const OLDER: &str = "[servers.s]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\n";
const OTHER: &str = "[servers.other]\nbuiltin = \"everything\"\n";

fn tool(path: &str, name: &str) -> String {
    let prefix = match path {
        "/servers/s/mcp" => "",
        _ => "s__",
    };
    format!("{prefix}{name}")
}

/// Starts a task; returns its raw id.
async fn begin(client: &Client, tool: &str, arguments: Value) -> Value {
    let call = client.call_tool_as_task(tool, arguments, TaskOptions::new());
    let id = call.await.unwrap().task().unwrap().task_id.clone();
    json!({ "taskId": id })
}

async fn asked(client: &Client, method: &str, task: &Value) -> Result<String, String> {
    let task = task.to_string();
    let asked = client.request(method, Some(&task));
    let asked = tokio::time::timeout(PATIENCE, asked).await.unwrap();
    asked
        .map(|raw| raw.to_string())
        .map_err(|error| error.to_string())
}

/// Starts a task of a modern server for a client of 2025-11-25 and replaces the server without drain time while the
/// task waits for input; returns the outcomes of a pending and of a new request for the result.
async fn waited(path: &str, next: &'static str) -> [Result<String, String>; 2] {
    let (gateway, origin) = gateway(&server("2026-07-28", "0")).await;
    let able = client(Revision::V2025_11_25).on_elicitation(move |_| {
        let gateway = gateway.clone();
        async move {
            gateway.change(catalog(next)).unwrap();
            std::future::pending().await
        }
    });
    let able = able.connect(format!("{origin}{path}")).await.unwrap();
    let file = json!({"filename": "a.txt"});
    let task = begin(&able, &tool(path, "confirm_delete"), file).await;
    let first = asked(&able, "tasks/result", &task).await;
    [first, asked(&able, "tasks/result", &task).await]
}

/// BB-09: a request that waits for a hosted task fails as soon as the replaced server ended: the task is lost and may
/// have had its effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_hosted_tasks_are_reported_at_once() {
    for (path, next) in [
        ("/mcp", RESTARTED),
        ("/mcp", OLDER),
        ("/mcp", OTHER),
        ("/tags/t/mcp", OTHER),
        ("/servers/s/mcp", RESTARTED),
    ] {
        for lost in waited(path, next).await {
            let lost = lost.unwrap_err();
            assert!(
                lost.contains("may have had its effect"),
                "{path} {next}: {lost}"
            );
        }
    }
}

/// Returns the config of a server without tasks, whose result is `augmented` if it gets a `task`.
fn without_tasks() -> String {
    let seen = r#"*'"task"'*) result='{"content":[{"type":"text","text":"augmented"}]}' ;;
    *'"die"'*)"#;
    let server = MORTAL.replace("*'\"die\"'*)", seen);
    server + "tags = [\"t\"]\n"
}

/// Calls a tool with `task`; returns the response. The library's client would not send such a call.
async fn augmented_call(origin: &str, path: &str, tool: &str, revision: Revision) -> Value {
    let url = format!("{origin}{path}");
    let client = match revision.era() {
        Era::Legacy => HttpTestClient::legacy(&url, revision.as_str(), json!({})).await,
        Era::Modern => HttpTestClient::modern(&url, json!({})),
    };
    let params = json!({"name": tool, "arguments": {"text": "x"}, "task": {}});
    client.request(2, "tools/call", params).await.only().await
}

/// L13: `task` is dropped where tasks were not declared, and refused where they were but the tool has no `taskSupport`.
/// Revisions without core tasks ignore it.
///
/// `2025-11-25 basic/utilities/tasks#task-support-and-handling`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_is_ignored_where_tasks_were_not_declared() {
    let plain = without_tasks();
    let with_other = format!("{plain}{OLDER}");
    let single: &[_] = &[
        ("/servers/m/mcp", "who"),
        ("/tags/t/mcp", "m__who"),
        ("/mcp", "m__who"),
    ];
    let several = &[
        ("/servers/s/mcp", "echo"),
        ("/mcp", "s__echo"),
        ("/mcp", "m__who"),
    ];
    for (config, tools) in [(&plain, single), (&with_other, several)] {
        let (_gateway, origin) = gateway(config).await;
        for revision in [
            Revision::V2025_06_18,
            Revision::V2025_11_25,
            Revision::V2026_07_28,
        ] {
            for (path, tool) in tools {
                let response = augmented_call(&origin, path, tool, revision).await;
                let what = format!("{revision} {path} {tool}: {response}");
                if config == &with_other && revision == Revision::V2025_11_25 {
                    assert_eq!(response["error"]["code"], -32601, "{what}");
                } else {
                    let text = response["result"]["content"][0]["text"].as_str();
                    assert!(text.is_some_and(|text| text != "augmented"), "{what}");
                }
            }
        }
    }
}
