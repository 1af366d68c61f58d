//! Completion and log levels.

use std::sync::{Arc, Mutex};

use mcpact::model::CompletionRef;
use mcpact_spec::{Capability, LogLevel, Revision};
use serde_json::{Map, json};

use crate::in_process::{aggregator, client, everything, on_stdio};

const SERVERS: [(&str, Revision); 3] = [
    ("old", Revision::V2025_03_26),
    ("later", Revision::V2025_11_25),
    ("new", Revision::V2026_07_28),
];

/// Arguments of prompts and templates are completed by their server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_are_completed_by_their_server() {
    let aggregator = aggregator(
        SERVERS
            .map(|(name, server_revision)| everything(name, server_revision))
            .to_vec(),
    );
    for revision in Revision::ALL {
        if !Capability::Completions.presence(revision).counts() {
            continue;
        }
        let connected = on_stdio(&aggregator, client(revision)).await;
        for (server, _) in SERVERS {
            let prompt = format!("{server}__test_prompt_with_arguments");
            let template = format!("mcpact://{server}/test://template/{{id}}/data");
            for reference in [
                CompletionRef::prompt(&prompt),
                CompletionRef::resource(&template),
            ] {
                let completed = connected.complete(&reference, "id", "te", Map::new()).await;
                let completed = completed.unwrap();
                assert_eq!(
                    completed.values,
                    ["test1", "test2"],
                    "{revision} {reference:?}"
                );
            }
            let unknown = CompletionRef::prompt("unknown__prompt");
            let error = connected.complete(&unknown, "id", "te", Map::new()).await;
            assert_eq!(error.unwrap_err().code(), Some(-32602), "{revision}");
        }
        connected.close().await;
    }
}

/// O4: a log level is set at all servers, including those connected later, and loggers name their server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_level_is_set_at_all_servers() {
    let aggregator = aggregator(
        SERVERS
            .map(|(name, server_revision)| everything(name, server_revision))
            .to_vec(),
    );
    for revision in Revision::ALL {
        let received = Arc::new(Mutex::new(0));
        let count = Arc::clone(&received);
        let builder = client(revision).on_notification(move |note| {
            if note.method == "notifications/message" {
                *count.lock().unwrap() += 1;
            }
        });
        let connected = on_stdio(&aggregator, builder).await;
        for (level, expected) in [
            (LogLevel::Error, 0),
            (LogLevel::Info, 3),
            (LogLevel::Error, 0),
        ] {
            connected.set_log_level(level).await.unwrap();
            for (server, _) in SERVERS {
                let tool = format!("{server}__test_tool_with_logging");
                connected.call_tool(&tool, json!({})).await.unwrap();
                let received = std::mem::take(&mut *received.lock().unwrap());
                assert_eq!(received, expected, "{revision} at {server}: {level:?}");
            }
        }
        connected.close().await;
    }
}
