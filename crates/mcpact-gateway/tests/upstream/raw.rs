//! A client that writes every message itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::UpstreamServer;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Raw {
    link: Link,
    unread: VecDeque<Value>,
}

impl Raw {
    /// A client in front of a bridge.
    pub(crate) fn before(bridge: &Arc<UpstreamServer>) -> Self {
        let (link, theirs) = memory::pair();
        let bridge = Arc::clone(bridge);
        tokio::spawn(async move { bridge.serve(theirs).await });
        Self::on(link)
    }

    /// A client on the other end of a link.
    pub(crate) fn on(link: Link) -> Self {
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

    /// The parameters of a modern request of a client that declares this.
    pub(crate) fn modern(&self, mut params: Value, capabilities: &Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        });
        params
    }

    /// A modern request of a client that declares nothing.
    pub(crate) async fn post_modern(&mut self, id: i64, method: &str, params: Value) {
        let params = self.modern(params, &json!({}));
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

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
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

/// The first message of a legacy client on HTTP.
pub(crate) fn initialize(capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "raw", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// The header that names the session which an answer has opened.
pub(crate) fn session_in(reply: &str) -> &str {
    let mut lines = reply.lines();
    lines
        .find(|line| line.starts_with("mcp-session-id: "))
        .unwrap()
}

/// Sends a POST with these headers and gives everything that comes back.
pub(crate) async fn post(address: &str, headers: &str, message: &Value) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}
