//! Servers that come back as others.

use std::net::SocketAddr;
use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, Watch};
use mcpact::model::Tool;
use mcpact::server::Server;
use mcpact_gateway::{ServerEntry, Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::memory;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::house::{by_http, client, hub, on_lines};
use crate::scripted::PATIENCE;

/// A server at an address, until it is ended.
struct There {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl There {
    /// One that speaks this revision and has a tool of its own beside the one that all have.
    async fn at(address: SocketAddr, revision: Revision, own: &str) -> (Self, SocketAddr) {
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

    async fn end(self) {
        drop(self.stop);
        self.serving.await.unwrap();
    }
}

fn bridge(address: SocketAddr) -> Arc<UpstreamServer> {
    let target = Target::Url {
        url: format!("http://{address}/mcp"),
        settings: Box::new(HttpSettings::default()),
    };
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}

/// Connects a client to a bridge.
async fn across(bridge: &Arc<UpstreamServer>, builder: ClientBuilder) -> Client {
    let (ours, theirs) = memory::pair();
    tokio::spawn(Arc::clone(bridge).serve(theirs));
    builder.connect(ours).await.unwrap()
}

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// What a tool says. A call that was sent on a connection of the server before is lost with it, as always.
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

/// A server that comes back at its address with another revision is understood again: no call of the clients
/// that were there all the time fails, and they are told that its lists have changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_come_back_with_another_revision() {
    for turns in TURNS {
        let [first, rest @ ..] = turns;
        let (mut there, address) = There::at(([127, 0, 0, 1], 0).into(), first, "own-0").await;
        let hub = hub(vec![ServerEntry::new("far", bridge(address))]);
        let alone = bridge(address);
        let mut connected = Vec::new();
        for revision in CLIENTS {
            connected.push(("far__", on_lines(&hub, client(revision)).await));
            connected.push(("far__", by_http(&hub, client(revision)).await));
            connected.push(("", across(&alone, client(revision)).await));
        }
        let mut watched = connected[0].1.watch(Watch::new().lists()).await.unwrap();
        for (prefix, client) in &connected {
            let [same, own] = ["same", "own-0"].map(|tool| format!("{prefix}{tool}"));
            assert_eq!(tools(client).await, [same.clone(), own], "{turns:?}");
            client.call_tool(&same, json!({})).await.unwrap();
        }
        for (turn, revision) in rest.into_iter().enumerate() {
            there.end().await;
            let name = format!("own-{}", turn + 1);
            (there, _) = There::at(address, revision, &name).await;
            for (prefix, client) in &connected {
                let what = format!("{turns:?}: {revision}, {:?}", client.pact().revision());
                let [same, own] = ["same", &name].map(|tool| format!("{prefix}{tool}"));
                assert_eq!(called(client, &same).await, Ok("yes".into()), "{what}");
                assert_eq!(called(client, &own).await, Ok("own".into()), "{what}");
                assert_eq!(tools(client).await, [same, own], "{what}");
            }
            let told = tokio::time::timeout(PATIENCE, watched.next()).await;
            assert!(told.unwrap().is_some(), "{turns:?}");
        }
        there.end().await;
    }
}
