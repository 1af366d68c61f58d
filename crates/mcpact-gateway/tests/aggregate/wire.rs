//! Raw client of an aggregator that numbers its requests.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use mcpact_gateway::Aggregator;
use mcpact_sim::scripted::TestClient;
use serde_json::{Value, json};

/// Raw client; requests have increasing ids.
pub(crate) struct Wire {
    client: TestClient,
    last: i64,
}

impl Wire {
    /// Uses a connected client.
    pub(crate) const fn on(client: TestClient) -> Self {
        Self { client, last: 0 }
    }

    /// Connects a client of the latest revision with these capabilities.
    pub(crate) fn modern(aggregator: &Arc<Aggregator>, capabilities: &Value) -> Self {
        Self::on(TestClient::modern(aggregator, capabilities.clone()))
    }

    /// Connects a legacy client and initializes it.
    pub(crate) async fn legacy(aggregator: &Arc<Aggregator>, capabilities: &Value) -> Self {
        let capabilities = capabilities.clone();
        Self::on(TestClient::legacy(aggregator, "2025-11-25", capabilities).await)
    }

    /// Sends `initialize` from a new client; returns the response.
    pub(crate) async fn initialize(aggregator: &Arc<Aggregator>, version: &str) -> Value {
        let mut client = TestClient::silent(aggregator);
        client.open(version, json!({})).await
    }

    /// Sends a request; returns the response. Messages before it are skipped.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.client.response(id).await
    }

    /// Sends a request; returns its id.
    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.last += 1;
        self.client.request(self.last, method, params).await;
        self.last
    }
}

impl Deref for Wire {
    type Target = TestClient;

    fn deref(&self) -> &TestClient {
        &self.client
    }
}

impl DerefMut for Wire {
    fn deref_mut(&mut self) -> &mut TestClient {
        &mut self.client
    }
}
