//! Tool filters and naming.

use std::time::Duration;

use mcpact::client::Watch;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{call, catalog, client, gateway, tools};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hidden tools are neither listed nor callable, whether the client listed tools or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_tools_are_neither_listed_nor_called() {
    let text = "[servers.a]\nbuiltin = \"everything\"\ntools = [\"e*\"]\n[servers.b]\nbuiltin = \"everything\"\nhidden_tools = [\"echo\"]\n";
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let (_gateway, origin) = gateway(text).await;
        let connected = client(revision).connect(format!("{origin}/mcp")).await;
        let connected = connected.unwrap();
        for _ in 0..2 {
            let hidden = connected.call_tool("b__echo", json!({"text": "x"})).await;
            assert!(hidden.is_err(), "{hidden:?}");
            let shown = connected.call_tool("a__echo", json!({"text": "x"})).await;
            assert!(shown.is_ok(), "{shown:?}");
            let all = tools(&connected).await;
            assert!(all.contains(&"a__echo".to_owned()), "{all:?}");
            assert!(!all.contains(&"b__echo".to_owned()), "{all:?}");
            let of_a = all.iter().filter(|name| name.starts_with("a__"));
            assert!(
                of_a.into_iter().all(|name| name.starts_with("a__e")),
                "{all:?}"
            );
            assert!(all.iter().any(|name| name.starts_with("b__")), "{all:?}");
        }
        connected.close().await;
    }
}

/// Hidden tools are also hidden at the endpoint of their server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_tools_are_hidden_at_every_endpoint() {
    let text = "[servers.b]\nbuiltin = \"everything\"\nhidden_tools = [\"echo\"]\ntags = [\"x\"]\n";
    let (_gateway, origin) = gateway(text).await;
    for revision in Revision::ALL {
        let ways: [(_, &[(&str, &str)], _); 4] = [
            ("/servers/b/mcp", &[], "echo"),
            ("/mcp", &[("Mcpact-Server", "b")], "echo"),
            ("/tags/x/mcp", &[], "b__echo"),
            ("/mcp", &[("Mcpact-Tags", "x")], "b__echo"),
        ];
        for (path, headers, hidden) in ways {
            let what = format!("{revision} {path} {headers:?}");
            let builder = headers
                .iter()
                .fold(client(revision), |builder, (name, value)| {
                    builder.header(*name, *value)
                });
            let connected = builder.connect(format!("{origin}{path}")).await.unwrap();
            let all = tools(&connected).await;
            assert!(!all.is_empty(), "{what}");
            assert!(!all.contains(&hidden.to_owned()), "{what}");
            let called = connected.call_tool(hidden, json!({"text": "x"})).await;
            let why = called.unwrap_err().to_string();
            assert!(why.contains("Unknown tool"), "{what}: {why}");
            connected.close().await;
        }
    }
}

/// Clients at the endpoint of a server are notified when its tool filter changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_filter_changes_are_announced() {
    let text = |hidden: &str, era: &str| {
        format!(
            "[servers.b]\nbuiltin = \"everything\"\nera = \"{era}\"\nhidden_tools = [\"{hidden}\"]\n"
        )
    };
    for era in ["2025-11-25", "2026-07-28"] {
        let (gateway, origin) = gateway(&text("echo", era)).await;
        for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let what = format!("{revision} at {era}");
            gateway.change(catalog(&text("echo", era))).unwrap();
            let url = format!("{origin}/servers/b/mcp");
            let connected = client(revision).connect(url).await.unwrap();
            assert!(
                !tools(&connected).await.contains(&"echo".to_owned()),
                "{what}"
            );
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            gateway.change(catalog(&text("greet", era))).unwrap();
            let told = tokio::time::timeout(PATIENCE, changes.next()).await;
            assert!(told.unwrap().is_some(), "{what}");
            let all = tools(&connected).await;
            assert!(all.contains(&"echo".to_owned()), "{what}");
            assert!(!all.contains(&"greet".to_owned()), "{what}");
            connected.close().await;
        }
    }
}

/// Flat names are unchanged; of two equal names the later one gets a suffix, and both are callable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flat_names_are_unchanged() {
    let text = "names = \"flat\"\n[servers.a]\nbuiltin = \"everything\"\ntools = [\"echo\"]\n[servers.b]\nbuiltin = \"everything\"\ntools = [\"echo\"]\n[servers.c]\nbuiltin = \"everything\"\nprefix = \"see\"\ntools = [\"echo\"]\n";
    let (_gateway, origin) = gateway(text).await;
    let connected = client(Revision::V2026_07_28)
        .connect(format!("{origin}/mcp"))
        .await;
    let connected = connected.unwrap();
    let all = tools(&connected).await;
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(
        all.contains(&"echo".to_owned()) && all.contains(&"see__echo".to_owned()),
        "{all:?}"
    );
    assert!(all.iter().any(|name| name.starts_with("echo_")), "{all:?}");
    for name in &all {
        let echoed = connected.call_tool(name, json!({"text": "x"})).await;
        assert!(echoed.is_ok(), "{name}: {echoed:?}");
    }
    connected.close().await;
}

/// H10: the body determines the tool, and a header that contradicts it is rejected: a hidden tool cannot be called
/// under another name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_contradict_the_body_are_rejected() {
    let text = "[servers.b]\nbuiltin = \"everything\"\nhidden_tools = [\"echo\"]\n";
    let (_gateway, origin) = gateway(text).await;
    for (path, prefix) in [("/mcp", "b__"), ("/servers/b/mcp", "")] {
        let cells = [
            ("greet", "greet", 200),
            ("greet", "echo", 400),
            ("echo", "greet", 400),
        ];
        for (header, body, status) in cells {
            let (header, body) = (format!("{prefix}{header}"), format!("{prefix}{body}"));
            let answer = call(&origin, path, &header, &body).await;
            let line = format!("HTTP/1.1 {status}");
            assert!(answer.starts_with(&line), "{header} {body}: {answer}");
            assert_eq!(answer.contains("Hello"), status == 200, "{answer}");
        }
    }
}
