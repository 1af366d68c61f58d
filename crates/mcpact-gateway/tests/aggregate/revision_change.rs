//! Servers that change their revision.

use std::net::SocketAddr;
use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, Watch};
use mcpact::model::Tool;
use mcpact::server::Server;
use mcpact_gateway::{ServerEntry, Target, UpstreamServer};
use mcpact_sim::scripted::connect;
use mcpact_spec::Revision;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::in_process::{aggregator, client, on_http, on_stdio};
use crate::scripted_process::PATIENCE;
use crate::targets::upstream;

/// Running HTTP server.
struct RunningServer {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl RunningServer {
    /// Starts a server with this revision, the tool `same` and another tool.
    async fn start(address: SocketAddr, revision: Revision, own: &str) -> (Self, SocketAddr) {
        let object = || json!({"type": "object"});
        let listening = Server::new("turned", "1")
            .revisions(&[revision])
            .tool_with(Tool::new("same", object()), |_, _| async { Ok("yes") })
            .tool_with(Tool::new(own, object()), |_, _| async { Ok("own") })
            .listen(address)
            .await
            .unwrap();
        let address = listening.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            listening.run(stopped).await.unwrap();
        });
        (Self { stop, serving }, address)
    }

    async fn stop(self) {
        drop(self.stop);
        self.serving.await.unwrap();
    }
}

fn bridge(address: SocketAddr) -> Arc<UpstreamServer> {
    upstream(Target::url(format!("http://{address}/mcp")))
}

/// Connects a client to one server.
async fn connect_alone(bridge: &Arc<UpstreamServer>, builder: ClientBuilder) -> Client {
    builder.connect(connect(bridge)).await.unwrap()
}

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Calls a tool; retries a call that was lost with the previous server.
async fn called(client: &Client, tool: &str) -> Result<String, String> {
    loop {
        match client.call_tool(tool, json!({})).await {
            Ok(result) => return Ok(result.all_text()),
            Err(error) if format!("{error:?}").contains("upstream_gone") => {}
            Err(error) => return Err(format!("{error:?}")),
        }
    }
}

const TURNS: [[Revision; 3]; 2] = [
    [
        Revision::V2025_11_25,
        Revision::V2026_07_28,
        Revision::V2025_06_18,
    ],
    [
        Revision::V2026_07_28,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ],
];

const CLIENTS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

/// A server restarted with another revision is negotiated again: calls of connected clients succeed, and the clients are
/// notified of changed lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_may_restart_with_another_revision() {
    for turns in TURNS {
        let [first, rest @ ..] = turns;
        let (mut server, address) =
            RunningServer::start(([127, 0, 0, 1], 0).into(), first, "own-0").await;
        let aggregator = aggregator(vec![ServerEntry::new("far", bridge(address))]);
        let alone = bridge(address);
        let mut connected = Vec::new();
        for revision in CLIENTS {
            connected.push(("far__", on_stdio(&aggregator, client(revision)).await));
            connected.push(("far__", on_http(&aggregator, client(revision)).await));
            connected.push(("", connect_alone(&alone, client(revision)).await));
        }
        let mut watched = connected[0].1.watch(Watch::new().lists()).await.unwrap();
        for (prefix, client) in &connected {
            let [same, own] = ["same", "own-0"].map(|tool| format!("{prefix}{tool}"));
            assert_eq!(tools(client).await, [same.clone(), own], "{turns:?}");
            client.call_tool(&same, json!({})).await.unwrap();
        }
        for (turn, revision) in rest.into_iter().enumerate() {
            server.stop().await;
            let name = format!("own-{}", turn + 1);
            (server, _) = RunningServer::start(address, revision, &name).await;
            for (prefix, client) in &connected {
                let what = format!("{turns:?}: {revision}, {:?}", client.pact().revision());
                let [same, own] = ["same", &name].map(|tool| format!("{prefix}{tool}"));
                assert_eq!(called(client, &same).await, Ok("yes".into()), "{what}");
                assert_eq!(called(client, &own).await, Ok("own".into()), "{what}");
                assert_eq!(tools(client).await, [same, own], "{what}");
            }
            let notified = tokio::time::timeout(PATIENCE, watched.next()).await;
            assert!(notified.unwrap().is_some(), "{turns:?}");
        }
        server.stop().await;
    }
}
