//! Merged lists and capabilities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcpact::client::Watch;
use mcpact::model::ToolResult;
use mcpact::server::{NoArgs, Server};
use mcpact_spec::{Capability, Revision};

use crate::in_process::{aggregator, broken, client, everything, member, on_stdio};

/// Server with a tool that adds another tool for later connections.
fn growing(revision: Revision, has_grown: &Arc<AtomicBool>) -> Server {
    let grows = Arc::clone(has_grown);
    let server = Server::new("growing", "1").revisions(&[revision]).tool(
        "grow",
        "Adds a tool",
        move |_: NoArgs, context: mcpact::server::Context| {
            grows.store(true, Ordering::SeqCst);
            context.tools_changed();
            async { Ok(ToolResult::text("grown")) }
        },
    );
    if has_grown.load(Ordering::SeqCst) {
        server.tool("grown", "Was added", |_: NoArgs, _| async {
            Ok(ToolResult::text("here"))
        })
    } else {
        server
    }
}

/// A changed list of one server is announced to clients of both eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_change_of_one_server_is_announced() {
    for server in [Revision::V2025_06_18, Revision::V2026_07_28] {
        for client_revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
            let has_grown = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&has_grown);
            let aggregator = aggregator(vec![
                everything("other", Revision::V2025_11_25),
                member("growing", move || growing(server, &flag)),
            ]);
            let connected = on_stdio(&aggregator, client(client_revision)).await;
            let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
            connected.list_tools().await.unwrap();
            let grow = connected.call_tool("growing__grow", serde_json::json!({}));
            assert_eq!(grow.await.unwrap().all_text(), "grown");
            let change = tokio::time::timeout(Duration::from_secs(20), changes.next());
            let change = change.await;
            assert!(change.is_ok(), "{client_revision} at {server}");
        }
    }
}

/// Capabilities besides the lists are declared only if a server has them, and a broken server does not affect the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_available_capabilities_are_declared() {
    let only_tools = || {
        let tool = |_: NoArgs, _| async { Ok(ToolResult::text("x")) };
        Server::new("small", "1").tool("x", "An x", tool)
    };
    let aggregator = aggregator(vec![member("small", only_tools), broken("broken")]);
    for revision in Revision::ALL {
        let connected = on_stdio(&aggregator, client(revision)).await;
        let tools = connected.list_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["small__x"]);
        assert!(connected.pact().declares(Capability::ToolsListChanged));
        assert!(!connected.pact().declares(Capability::Completions));
        let instructions = connected.instructions().unwrap_or_default().to_owned();
        assert!(
            instructions.contains("`broken` is unavailable"),
            "{instructions}"
        );
    }
}
