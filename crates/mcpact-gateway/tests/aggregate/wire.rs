//! A client of a hub that says exactly what it is told.

use std::sync::Arc;

use mcpact_gateway::Aggregator;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

/// The client's end of a connection.
pub(crate) struct Wire {
    link: Link,
    /// What a modern client says with each request; none for a legacy one.
    meta: Option<Value>,
    last: u64,
}

impl Wire {
    fn new(hub: &Arc<Aggregator>, meta: Option<Value>) -> Self {
        let (link, theirs) = memory::pair();
        let hub = Arc::clone(hub);
        tokio::spawn(async move { hub.serve(theirs).await });
        Self {
            link,
            meta,
            last: 0,
        }
    }

    /// A client of the latest revision that declares this.
    pub(crate) fn modern(hub: &Arc<Aggregator>, capabilities: &Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        Self::new(hub, Some(meta))
    }

    /// A client that has not said anything yet.
    pub(crate) fn unmet(hub: &Arc<Aggregator>) -> Self {
        Self::new(hub, None)
    }

    /// A client that has made a handshake.
    pub(crate) async fn legacy(hub: &Arc<Aggregator>, capabilities: &Value) -> Self {
        let mut wire = Self::unmet(hub);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "wire", "version": "1"},
        });
        let answer = wire.ask("initialize", params).await;
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-11-25",
            "{answer}"
        );
        wire.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        wire
    }

    /// Sends a request, and gives its answer back.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Sends a request, and gives its id back.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        if let Some(meta) = &self.meta {
            for (key, value) in meta.as_object().unwrap() {
                params["_meta"][key] = value.clone();
            }
        }
        self.last += 1;
        let id = self.last;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends whatever it is.
    pub(crate) async fn say(&mut self, message: &Value) {
        self.link.sink.push(&message.to_string());
        self.link.sink.flush().await.unwrap();
    }

    /// The next message, whatever it is.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            if let Some(Line::Json(bytes)) = self.link.source.next_line() {
                return serde_json::from_slice(bytes).unwrap();
            }
            assert!(self.link.source.fill().await.unwrap(), "the hub hung up");
        }
    }
}
