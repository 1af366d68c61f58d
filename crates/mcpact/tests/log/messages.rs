//! Log messages between servers and clients.

use std::sync::{Arc, Mutex};

use mcpact::client::{Client, Revision};
use mcpact::log::MESSAGES;
use mcpact::model::{LogLevel, LogMessage};
use mcpact::server::{ClientLog, Context, NoArgs, Server};
use mcpact_sim::scripted::serve;
use serde_json::{Map, Value, json};
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt;

use crate::record::Log;

/// Log messages of a server appear in the local log at their level, and none below the requested level.
#[tokio::test]
async fn server_messages_reach_the_local_log() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (log, _guard) = Log::start();
        let server = Server::new("s", "1").revisions(&[revision]).logging().tool(
            "talk",
            "t",
            |_: NoArgs, context: Context| async move {
                for level in LogLevel::ALL {
                    let message = LogMessage::new(level, json!({ "said": level.as_str() }));
                    context.log_message(message.logger("talker")).await?;
                }
                Ok("done")
            },
        );
        let builder = Client::builder("t", "1").log_level(LogLevel::Info);
        let client = builder.connect(serve(server)).await.unwrap();
        client.call_tool("talk", json!({})).await.unwrap();
        client.close().await;
        let logged: Vec<(Level, String)> = log
            .events(MESSAGES)
            .iter()
            .map(|entry| (entry.level, entry.get("severity").to_owned()))
            .collect();
        let expected = [
            (Level::INFO, "info"),
            (Level::INFO, "notice"),
            (Level::WARN, "warning"),
            (Level::ERROR, "error"),
            (Level::ERROR, "critical"),
            (Level::ERROR, "alert"),
            (Level::ERROR, "emergency"),
        ];
        assert_eq!(
            logged,
            expected.map(|(level, name)| (level, name.to_owned()))
        );
        let first = &log.events(MESSAGES)[0];
        assert_eq!(first.get("logger"), "talker");
        assert_eq!(first.get("message"), r#"{"said":"info"}"#);
    }
}

/// The log of a handler goes to its client at the requested level, and nothing else does.
#[tokio::test]
async fn handler_log_reaches_the_client() {
    let subscriber = tracing_subscriber::registry().with(ClientLog::new());
    let _guard = tracing::subscriber::set_default(subscriber);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let server = Server::new("s", "1").revisions(&[revision]).logging().tool(
            "work",
            "w",
            |_: NoArgs, _: Context| async move {
                tracing::debug!(target: "worker", "too quiet");
                tracing::warn!(target: "worker", left = 3, "nearly done");
                tracing::error!(target: "mcpact::server", "about another client");
                tracing::info!(target: "worker", "done");
                Ok("done")
            },
        );
        let received = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&received);
        let client = Client::builder("t", "1")
            .log_level(LogLevel::Info)
            .on_notification(move |note| {
                let mut text: Map<String, Value> = note.read().unwrap();
                text.remove("_meta");
                notes.lock().unwrap().push(Value::from(text));
            })
            .connect(serve(server))
            .await
            .unwrap();
        tracing::error!(target: "worker", "outside of a request");
        client.call_tool("work", json!({})).await.unwrap();
        client.close().await;
        let expected = [
            json!({ "level": "warning", "logger": "worker",
                    "data": { "left": 3, "message": "nearly done" } }),
            json!({ "level": "info", "logger": "worker", "data": "done" }),
        ];
        assert_eq!(*received.lock().unwrap(), expected, "{revision}");
    }
}
