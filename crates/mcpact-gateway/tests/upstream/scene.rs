//! Upstream server with connections that the test serves message by message.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::EraMode;
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::TestClient;
use mcpact_sim::scripted::message::{handshake, initialize};
use mcpact_spec::Revision;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::targets::in_memory;

/// Time limit of the wait for a connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// Upstream server and the connections that it opens.
pub(crate) struct Scene {
    pub(crate) bridge: Arc<UpstreamServer>,
    revision: Revision,
    connections: mpsc::UnboundedReceiver<Link>,
}

impl Scene {
    /// Creates an upstream server of this revision.
    pub(crate) fn new(revision: Revision) -> Self {
        let (sender, connections) = mpsc::unbounded_channel();
        let target = in_memory(move || {
            let (near, far) = memory::pair();
            let _ = sender.send(far);
            near
        });
        let settings = UpstreamSettings {
            mode: EraMode::Pin(revision),
            ..UpstreamSettings::default()
        };
        Self {
            bridge: UpstreamServer::new(target, settings).unwrap(),
            revision,
            connections,
        }
    }

    /// Waits for the next connection and answers its handshake; returns the end of the server.
    pub(crate) async fn server(&mut self, capabilities: Value) -> TestClient {
        let link = tokio::time::timeout(PATIENCE, self.connections.recv()).await;
        let mut server = TestClient::on(link.unwrap().unwrap(), None);
        let handshake = handshake(self.revision, capabilities);
        server.accept(handshake).await;
        server
    }

    /// Connects a legacy client; returns it and the server, both after the handshake.
    pub(crate) async fn legacy_pair(
        &mut self,
        revision: Revision,
        client_capabilities: Value,
        server_capabilities: Value,
    ) -> (TestClient, TestClient) {
        let mut client = TestClient::silent(&self.bridge);
        let opening = initialize(1, revision.as_str(), client_capabilities);
        client.send(opening).await;
        let server = self.server(server_capabilities).await;
        client.result(1).await;
        client.notify("notifications/initialized", json!({})).await;
        (client, server)
    }

    /// Connects a modern client that has sent this request; returns it and the server after the handshake.
    pub(crate) async fn modern_pair(
        &mut self,
        capabilities: Value,
        (id, method, params): (i64, &str, Value),
        meta: Value,
    ) -> (TestClient, TestClient) {
        let mut client = TestClient::silent(&self.bridge);
        client.request_modern_with(id, method, params, meta).await;
        let server = self.server(capabilities).await;
        (client, server)
    }
}
