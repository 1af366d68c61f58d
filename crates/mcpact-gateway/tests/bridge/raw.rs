//! A client that writes every message itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::Bridge;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Raw {
    link: Link,
    unread: VecDeque<Value>,
}

/// The reserved members of a modern request.
fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    })
}

impl Raw {
    /// A client in front of a bridge.
    pub(crate) fn before(bridge: &Arc<Bridge>) -> Self {
        let (link, theirs) = memory::pair();
        let bridge = Arc::clone(bridge);
        tokio::spawn(async move { bridge.serve(theirs).await });
        Self {
            link,
            unread: VecDeque::new(),
        }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.link.sink.push(&message.to_string());
        self.link.sink.flush().await.unwrap();
    }

    /// A legacy client that has made its handshake.
    pub(crate) async fn shake(&mut self, revision: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        });
        let answer = self.ask(0, "initialize", params).await;
        let done = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send(done).await;
        answer
    }

    pub(crate) async fn post(&mut self, id: i64, method: &str, params: Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request).await;
    }

    /// A request of a client that declares nothing, of the modern era.
    pub(crate) async fn post_modern(&mut self, id: i64, method: &str, params: Value) {
        let mut params = params;
        params["_meta"] = meta(json!({}));
        self.post(id, method, params).await;
    }

    pub(crate) async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.post(id, method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn ask_modern(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.post_modern(id, method, params).await;
        self.answer(id).await
    }

    /// The answer to a request; what comes before it is kept.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// The first notification of this method that was not looked at yet.
    pub(crate) async fn note(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    async fn find(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&is_it) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let message = self.next().await;
            if is_it(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some(Line::Json(bytes)) = self.link.source.next_line() {
                return serde_json::from_slice(bytes).unwrap();
            }
            let more = tokio::time::timeout(PATIENCE, self.link.source.fill()).await;
            let is_open = more.unwrap_or_else(|_| panic!("only {:?} arrived", self.unread));
            assert!(is_open.unwrap(), "the bridge hung up: {:?}", self.unread);
        }
    }
}
