//! Tasks during a reload.

use std::time::Duration;

use mcpact::client::{Client, TaskOptions};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::harness::{catalog, client, gateway};

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
