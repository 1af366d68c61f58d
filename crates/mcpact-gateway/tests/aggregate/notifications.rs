//! Notifications and pings through the aggregator.

use std::sync::{Arc, Mutex};

use mcpact::client::{CallOptions, CancelToken, Change, Watch};
use mcpact_spec::{LogLevel, Revision};
use serde_json::json;
use tokio::sync::Notify;

use crate::in_process::{aggregator, client, everything, on_http, on_stdio};
use crate::scripted_process::PATIENCE;

const SERVERS: [(&str, Revision); 2] = [
    ("late", Revision::V2025_11_25),
    ("new", Revision::V2026_07_28),
];

/// Progress, cancellation, log messages, updates and pings reach the right client and server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_reach_the_right_side() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for is_on_stdio in [true, false] {
            let members = SERVERS.map(|(name, server_revision)| everything(name, server_revision));
            let aggregator = aggregator(members.to_vec());
            let logs = Arc::new(Mutex::new(Vec::new()));
            let received = Arc::clone(&logs);
            let builder =
                client(revision)
                    .log_level(LogLevel::Debug)
                    .on_notification(move |note| {
                        if note.method == "notifications/message" {
                            received.lock().unwrap().push(note.params.clone());
                        }
                    });
            let connected = match is_on_stdio {
                true => on_stdio(&aggregator, builder).await,
                false => on_http(&aggregator, builder).await,
            };
            connected.ping().await.unwrap();
            connected.list_resources().await.unwrap();
            for (server, _) in SERVERS {
                let what = format!("{revision} at {server}, lines: {is_on_stdio}");
                let tool = |name: &str| format!("{server}__{name}");

                let steps = Arc::new(Mutex::new(Vec::new()));
                let seen = Arc::clone(&steps);
                let options = CallOptions::new()
                    .on_progress(move |progress| seen.lock().unwrap().push(progress.progress));
                let name = tool("test_tool_with_progress");
                let worked = connected.call_tool_with(&name, json!({}), options).await;
                assert!(worked.is_ok(), "{what}: {worked:?}");
                assert_eq!(*steps.lock().unwrap(), [0.0, 50.0, 100.0], "{what}");

                let begun = Arc::new(Notify::new());
                let (token, began) = (CancelToken::new(), Arc::clone(&begun));
                let options = CallOptions::new()
                    .cancel(token.clone())
                    .on_progress(move |_| began.notify_one());
                let (name, key) = (tool("test_cancellation"), json!({"key": what}));
                let calling = connected.call_tool_with(&name, key.clone(), options);
                let cancelling = async {
                    begun.notified().await;
                    token.cancel();
                };
                let (cancelled, ()) = tokio::join!(calling, cancelling);
                assert!(cancelled.is_err(), "{what}: {cancelled:?}");
                let seen = tool("test_cancellation_seen");
                // Another instance may answer until the connection of the cancelled call is used again.
                let noticing = async {
                    let asked = async || connected.call_tool(&seen, key.clone()).await;
                    while asked().await.unwrap().failed() {}
                };
                let noticed = tokio::time::timeout(PATIENCE, noticing).await;
                assert!(noticed.is_ok(), "{what}");

                let logged = connected
                    .call_tool(&tool("test_logging_tool"), json!({}))
                    .await;
                assert!(logged.is_ok(), "{what}: {logged:?}");
                let logged = std::mem::take(&mut *logs.lock().unwrap());
                assert!(!logged.is_empty(), "{what}");

                let uri = format!("mcpact://{server}/test://watched-resource");
                let watch = Watch::new().resource(uri.as_str());
                let mut changes = connected.watch(watch).await.unwrap();
                let trigger = tool("test_trigger_resource_update");
                connected.call_tool(&trigger, json!({})).await.unwrap();
                let change = tokio::time::timeout(PATIENCE, changes.next()).await;
                let expected = Change::Updated { uri };
                assert_eq!(change.unwrap(), Some(expected), "{what}");
            }
            connected.close().await;
        }
    }
}
