//! Tasks while the config is read anew.

use std::time::Duration;

use mcpact::client::{Client, TaskOptions};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::place::{catalog, client, gateway};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, given so long to end its calls.
fn server(era: &str, drain: &str) -> String {
    format!(
        "[servers.s]\nbuiltin = \"everything\"\nera = \"{era}\"\ndrain_seconds = {drain}\ntags = [\"t\"]\n"
    )
}

/// What takes the place of the server, or is served without it.
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

/// Begins a task; its raw name.
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

/// What a client of 2025-11-25 hears of a task of a modern server, during whose question the config is read anew and no call
/// is given time; when it waits for the result, and when it asks again.
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

/// BB-09: whoever waits for a hosted task is told as soon as the server was ended and the time of its calls is up that the
/// task is lost and may have had its effect. Nobody waits for what cannot come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hosted_task_that_is_lost_is_told_at_once() {
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
