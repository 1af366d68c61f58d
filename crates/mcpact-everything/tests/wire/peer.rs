//! A raw client for newline-delimited messages.

use mcpact::server::Server;
use mcpact_spec::Revision;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use crate::http::request;

/// The client's end of a connection to the reference server.
pub(crate) struct Peer(Link);

impl Peer {
    pub(crate) fn start(revisions: &[Revision]) -> Self {
        Self::of(mcpact_everything::server(revisions))
    }

    pub(crate) fn of(server: Server) -> Self {
        let (ours, theirs) = memory::pair();
        tokio::spawn(async move { server.serve(theirs).await });
        Self(ours)
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.sink.push(text);
        self.0.sink.flush().await.unwrap();
    }

    pub(crate) async fn tell(&mut self, message: &Value) {
        self.say(&message.to_string()).await;
    }

    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            if let Some(Line::Json(bytes)) = self.0.source.next_line() {
                return serde_json::from_slice(bytes).unwrap();
            }
            assert!(self.0.source.fill().await.unwrap(), "the server closed");
        }
    }

    pub(crate) async fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.tell(&request(id, method, &params)).await;
        self.hear().await
    }

    /// Asks, and hears everything up to the answer.
    pub(crate) async fn follow(&mut self, id: i64, method: &str, params: Value) -> Vec<Value> {
        self.tell(&request(id, method, &params)).await;
        let mut heard = Vec::new();
        loop {
            let message = self.hear().await;
            let is_answer = message["id"] == id && message.get("method").is_none();
            heard.push(message);
            if is_answer {
                return heard;
            }
        }
    }

    pub(crate) async fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}});
        let opened = self.ask(0, "initialize", params).await;
        assert_eq!(opened["result"]["protocolVersion"], version);
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        opened["result"].clone()
    }
}
