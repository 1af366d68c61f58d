//! Calls that were never sent to a server.

use std::time::Duration;

use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{MORTAL, catalog, client, gateway};
use crate::metrics::{metrics, value};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Endpoints of the server with the prefix of its tool names.
const PLACES: [(&str, &str); 3] = [
    ("/mcp", "m__"),
    ("/tags/t/mcp", "m__"),
    ("/servers/m/mcp", ""),
];

fn server(calls: usize, seconds: f64) -> String {
    format!(
        "{MORTAL}tags = [\"t\"]\nmax_instances = 1\nmax_concurrent = {calls}\ncall_seconds = {seconds}\n"
    )
}

/// The error of a timed-out call says whether the call was sent: only then may it have had its effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timeouts_say_whether_the_call_was_sent() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (gateway, origin) = gateway(&server(1, 3600.0)).await;
        let connected = client(revision).connect(format!("{origin}/servers/m/mcp"));
        let connected = connected.await.unwrap();
        let first = connected.clone();
        let first = tokio::spawn(async move { first.call_tool("hang", json!({})).await });
        let is_under_way = || gateway.status(None).unwrap().servers[0].in_flight == 1;
        let under_way = async {
            while !is_under_way() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, under_way).await.unwrap();

        gateway.change(catalog(&server(1, 0.1))).unwrap();
        let waited = connected.call_tool("who", json!({})).await.unwrap_err();
        let waited = waited.to_string();
        assert!(
            waited.contains("the call was not sent to the server"),
            "{waited}"
        );
        assert!(!waited.contains("effect"), "{waited}");

        gateway.change(catalog(&server(2, 0.1))).unwrap();
        let given = connected.call_tool("hang", json!({})).await.unwrap_err();
        let given = given.to_string();
        assert!(given.contains("may have had its effect"), "{given}");
        first.abort();
    }
}

/// Returns the config of a server with one call at a time, identified by this word.
fn narrow(word: &str) -> String {
    let server = server(1, 3600.0);
    let server = server.replace("\\\"$$\\\"", &format!("\\\"{word}\\\""));
    assert!(server.contains(word));
    server
}

/// Pairs an endpoint with a replacement of the server, and with none.
fn with_and_without_successor<P: Copy>(place: P) -> [(P, Option<&'static str>); 2] {
    [(place, Some("second")), (place, None)]
}

/// Waits for these numbers of running calls, queued calls and instances.
async fn until(gateway: &Gateway, expected: (usize, usize, usize)) {
    let is_so = || {
        let server = &gateway.status(None).unwrap().servers[0];
        (server.in_flight, server.queued, server.instances.len()) == expected
    };
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let so = tokio::time::timeout(PATIENCE, so).await;
    assert!(so.is_ok(), "{expected:?}: {:?}", gateway.status(None));
}

/// Returns the number of tool calls with this outcome.
async fn counted(origin: &str, outcome: &str) -> Option<f64> {
    let words = ["requests_total", "tools/call", outcome];
    value(&metrics(origin).await, &words)
}

/// Queued calls of a replaced server move to its successor and are counted once; without a successor the error says
/// that they were not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_calls_move_to_the_successor() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for ((path, prefix), next) in PLACES.into_iter().flat_map(with_and_without_successor) {
            let (gateway, origin) = gateway(&narrow("first")).await;
            let connected = client(revision).connect(format!("{origin}{path}"));
            let connected = connected.await.unwrap();
            let call = |tool: &str| {
                let (client, tool) = (connected.clone(), format!("{prefix}{tool}"));
                tokio::spawn(async move { client.call_tool(&tool, json!({})).await })
            };
            let first = call("hang");
            until(&gateway, (1, 0, 1)).await;
            let second = call("who");
            until(&gateway, (1, 1, 1)).await;
            let told = next.map_or_else(String::new, narrow);
            gateway.change(catalog(&told)).unwrap();
            let second = tokio::time::timeout(PATIENCE, second).await.unwrap();
            let second = match second.unwrap() {
                Ok(result) => result.all_text(),
                Err(error) => error.to_string(),
            };
            let expected = next.unwrap_or("was removed or is shutting down; the call was not sent");
            assert!(second.contains(expected), "{revision} {path}: {second}");
            if next.is_some() {
                assert_eq!(counted(&origin, r#""ok""#).await, Some(1.0), "{path}");
                assert_eq!(counted(&origin, "unavailable").await, None, "{path}");
            }
            first.abort();
        }
    }
}

/// A call that moved to the successor is answered even after the old server ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_calls_survive_the_end_of_the_old_server() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let folder = tempfile::tempdir().unwrap();
        let sign = folder.path().join("sign");
        let patient = format!(
            "*'\"who\"'*) while [ ! -e {} ]; do sleep 0.02; done; result='{{\"content\":[]}}' ;;\n    *'\"hang\"'*)",
            sign.display()
        );
        let next = narrow("second").replace("*'\"hang\"'*)", &patient);
        let brief = narrow("first") + "drain_seconds = 1\n";
        let (gateway, origin) = gateway(&brief).await;
        let connected = client(revision).connect(format!("{origin}/servers/m/mcp"));
        let connected = connected.await.unwrap();
        let call = |tool: &'static str| {
            let client = connected.clone();
            tokio::spawn(async move { client.call_tool(tool, json!({})).await })
        };
        let first = call("hang");
        until(&gateway, (1, 0, 1)).await;
        let second = call("who");
        until(&gateway, (1, 1, 1)).await;
        gateway.change(catalog(&next)).unwrap();
        until(&gateway, (2, 0, 2)).await;
        first.abort();
        until(&gateway, (1, 0, 1)).await;
        std::fs::write(sign, "").unwrap();
        let second = tokio::time::timeout(PATIENCE, second).await.unwrap();
        second.unwrap().unwrap();
    }
}

/// A client whose handshake waited while its server was replaced is served and notified by the successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn successor_notifies_clients_that_waited_for_the_handshake() {
    let silent = narrow("first").replace("*'\"initialize\"'*)", "*'\"initialize\"'*) continue ;");
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let notifying = format!("*'\"hang\"'*) echo '{changed}'; result='{{\"content\":[]}}' ;;");
    let next = narrow("second")
        .replace("*'\"hang\"'*) continue ;;", &notifying)
        .replace(r#"{"tools":{}}"#, r#"{"tools":{"listChanged":true}}"#);
    let (gateway, origin) = gateway(&silent).await;
    let (notified, mut notifications) = tokio::sync::mpsc::unbounded_channel();
    let builder = client(Revision::V2025_06_18).on_notification(move |note| {
        let _ = notified.send(note.method.clone());
    });
    let url = format!("{origin}/servers/m/mcp");
    let connecting = tokio::spawn(async move { builder.connect(url).await });
    let started = async {
        while gateway.status(None).unwrap().servers[0]
            .instances
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, started).await.unwrap();
    gateway.change(catalog(&next)).unwrap();
    let connected = tokio::time::timeout(PATIENCE, connecting).await.unwrap();
    let connected = connected.unwrap().unwrap();
    connected.call_tool("hang", json!({})).await.unwrap();
    let notification = tokio::time::timeout(PATIENCE, notifications.recv()).await;
    assert_eq!(
        notification.unwrap().unwrap(),
        "notifications/tools/list_changed"
    );
}
