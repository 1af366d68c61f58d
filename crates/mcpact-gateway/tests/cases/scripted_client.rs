//! Scripted client on stdio.

use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::UpstreamServer;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Returns a request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a request with the metadata of a modern client.
pub(crate) fn modern(
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
    capabilities: &Value,
) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
    request(id, method, params)
}

/// Returns the parameters of a tool call.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {"a": 1}})
}

/// Client end of a connection to a bridge.
pub(crate) struct ScriptedClient {
    link: Link,
    /// Capabilities of a modern client; none for a legacy client.
    capabilities: Option<Value>,
}

impl ScriptedClient {
    /// Client on a link; `capabilities` are those of a modern client.
    pub(crate) const fn on(link: Link, capabilities: Option<Value>) -> Self {
        Self { link, capabilities }
    }

    fn new(bridge: &Arc<UpstreamServer>, capabilities: Option<Value>) -> Self {
        let (link, theirs) = memory::pair();
        let bridge = Arc::clone(bridge);
        tokio::spawn(async move { bridge.serve(theirs).await });
        Self::on(link, capabilities)
    }

    /// Connects a modern client.
    pub(crate) fn modern(bridge: &Arc<UpstreamServer>, capabilities: Value) -> Self {
        Self::new(bridge, Some(capabilities))
    }

    /// Connects a client that has sent nothing yet.
    pub(crate) fn silent(bridge: &Arc<UpstreamServer>) -> Self {
        Self::new(bridge, None)
    }

    /// Connects a legacy client and initializes it.
    pub(crate) async fn legacy(
        bridge: &Arc<UpstreamServer>,
        version: &str,
        capabilities: Value,
    ) -> Self {
        let mut peer = Self::silent(bridge);
        let opened = peer.open(version, capabilities).await;
        assert_eq!(opened["result"]["protocolVersion"], version, "{opened}");
        peer
    }

    pub(crate) async fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}});
        let opened = self.ask(0, "initialize", params).await;
        self.note("notifications/initialized", json!({})).await;
        opened
    }

    pub(crate) async fn tell(&mut self, message: &Value) {
        self.link.sink.push(&message.to_string());
        self.link.sink.flush().await.unwrap();
    }

    /// As [`tell`](Self::tell), but the bridge may have closed the connection.
    pub(crate) async fn tell_if_there(&mut self, message: &Value) {
        self.link.sink.push(&message.to_string());
        let _ = self.link.sink.flush().await;
    }

    pub(crate) async fn note(&mut self, method: &str, params: Value) {
        self.tell(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    pub(crate) async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let message = match &self.capabilities {
            Some(capabilities) => modern(id, method, params, capabilities),
            None => request(id, method, params),
        };
        self.tell(&message).await;
    }

    pub(crate) async fn answer(&mut self, question: &Value, result: Value) {
        let id = &question["id"];
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await;
    }

    pub(crate) async fn refuse(&mut self, question: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        let id = &question["id"];
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await;
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let heard = tokio::time::timeout(PATIENCE, self.hear_or_end()).await;
        heard
            .expect("something is said")
            .expect("the bridge is there")
    }

    /// Returns the next message without a time limit; none after the bridge closed. Cancel-safe.
    pub(crate) async fn hear_or_end(&mut self) -> Option<Value> {
        loop {
            if let Some(Line::Json(bytes)) = self.link.source.next_line() {
                return Some(serde_json::from_slice(bytes).unwrap());
            }
            if !self.link.source.fill().await.unwrap_or_default() {
                return None;
            }
        }
    }

    /// Returns the next message, which must have this method.
    pub(crate) async fn hear_of(&mut self, method: &str) -> Value {
        let message = self.hear().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Sends a request; returns the next message.
    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id: Value = id.into();
        self.request(id.clone(), method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Checks that no message is pending: the next one is the response to a new request.
    pub(crate) async fn hears_nothing(&mut self) {
        let method = match self.capabilities {
            Some(_) => "server/discover",
            None => "ping",
        };
        let answer = self.ask("fence", method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
}
