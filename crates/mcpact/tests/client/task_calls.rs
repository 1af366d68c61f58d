//! Calls that run as tasks.

use std::time::Duration;

use mcpact::client::{Client, ClientError, TaskOptions};
use mcpact::model::{Root, TaskStatus};
use mcpact_sim::scripted::link_server::{LinkServer, result};
use serde_json::{Value, json};

/// F11: a task of 2025-11-25 is requested in the call, polled and fetched.
#[tokio::test]
async fn core_task_is_requested_and_fetched() {
    let capabilities = json!({
        "tools": {},
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
    });
    let task = json!({ "taskId": "t1", "status": "working", "ttl": 5000, "pollInterval": 10,
        "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
    let (link, received) =
        LinkServer::legacy(
            "2025-11-25",
            capabilities,
            move |message| match message["method"].as_str().unwrap() {
                "tools/call" => result(message, json!({ "task": task })),
                "tasks/get" => result(message, task.clone()),
                "tasks/list" => result(message, json!({ "tasks": [task] })),
                "tasks/result" => result(
                    message,
                    json!({ "content": [{ "type": "text", "text": "ok" }] }),
                ),
                "tasks/cancel" => result(message, task.clone()),
                other => panic!("{other}"),
            },
        );
    let client = Client::connect(link).await.unwrap();
    let options = TaskOptions::new().ttl(Duration::from_secs(5));
    let mut call = client
        .call_tool_as_task("t", json!({}), options)
        .await
        .unwrap();
    assert_eq!(
        received.received("tools/call")[0]["params"]["task"],
        json!({ "ttl": 5000 })
    );
    assert_eq!(call.task().unwrap().task_id, "t1");
    assert_eq!(
        call.refresh().await.unwrap().unwrap().status,
        TaskStatus::Working
    );
    assert_eq!(client.list_tasks().await.unwrap().len(), 1);
    call.cancel().await.unwrap();
    assert_eq!(call.result().await.unwrap().all_text(), "ok");
}

/// F11: without the capability the `task` member is not sent.
#[tokio::test]
async fn unnegotiated_task_is_not_sent() {
    let (link, received) = LinkServer::legacy("2025-11-25", json!({ "tools": {} }), |_| Vec::new());
    let client = Client::connect(link).await.unwrap();
    let refused = client
        .call_tool_as_task("t", json!({}), TaskOptions::new())
        .await;
    assert!(
        matches!(refused, Err(ClientError::NotNegotiated(_))),
        "{refused:?}"
    );
    assert!(received.received("tools/call").is_empty());
}

fn extension(
    script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (mcpact::client::Link, LinkServer) {
    let capabilities =
        json!({ "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    LinkServer::modern(capabilities, script)
}

/// F12: a task of the extension is polled until it is done, and its questions are answered once.
#[tokio::test(start_paused = true)]
async fn extension_task_is_polled_until_done() {
    let mut polls = 0;
    let (link, received) = extension(move |message| {
        let task = |status: &str| json!({ "taskId": "t1", "status": status, "pollIntervalMs": 20 });
        match message["method"].as_str().unwrap() {
            "tools/call" => {
                let mut task = task("working");
                task["resultType"] = json!("task");
                result(message, task)
            }
            "tasks/update" => result(message, json!({ "resultType": "complete" })),
            "tasks/get" => {
                polls += 1;
                let mut task = match polls {
                    1 => task("working"),
                    2 | 3 => task("input_required"),
                    _ => task("completed"),
                };
                task["resultType"] = json!("complete");
                match polls {
                    2 | 3 => task["inputRequests"] = json!({ "where": { "method": "roots/list" } }),
                    4 => task["result"] = json!({ "content": [{ "type": "text", "text": "ok" }] }),
                    _ => {}
                }
                result(message, task)
            }
            other => panic!("{other}"),
        }
    });
    let builder = Client::builder("t", "1")
        .tasks()
        .roots(vec![Root::new("file:///work")]);
    let client = builder.connect(link).await.unwrap();
    let answer = client.call_tool("t", json!({})).await.unwrap();
    assert_eq!(answer.all_text(), "ok");
    let updates = received.received("tasks/update");
    assert_eq!(updates.len(), 1);
    assert_eq!(updates[0]["params"]["taskId"], "t1");
    let answers = &updates[0]["params"]["inputResponses"];
    assert_eq!(
        *answers,
        json!({ "where": { "roots": [{ "uri": "file:///work" }] } })
    );
}

/// F12: a failed task is an error, and a call without a task is answered at once.
#[tokio::test(start_paused = true)]
async fn failed_task_is_an_error() {
    let (link, _) = extension(|message| match message["method"].as_str().unwrap() {
        "tools/call" if message["params"]["name"] == "quick" => {
            result(message, json!({ "resultType": "complete", "content": [] }))
        }
        "tools/call" => result(
            message,
            json!({ "resultType": "task", "taskId": "t", "status": "working" }),
        ),
        _ => result(
            message,
            json!({ "resultType": "complete", "taskId": "t", "status": "failed",
                "error": { "code": -32603, "message": "broken" } }),
        ),
    });
    let client = Client::builder("t", "1")
        .tasks()
        .connect(link)
        .await
        .unwrap();
    let call = client
        .call_tool_as_task("slow", json!({}), TaskOptions::new())
        .await
        .unwrap();
    let failed = call.result().await.unwrap_err();
    assert_eq!(failed.code(), Some(-32603));
    let call = client
        .call_tool_as_task("quick", json!({}), TaskOptions::new())
        .await
        .unwrap();
    assert!(call.task().is_none());
    assert!(call.result().await.unwrap().content.is_empty());
}
