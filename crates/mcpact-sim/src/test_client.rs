//! Raw client for tests, which writes every message itself.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::time::Duration;

use mcpact_transport::link::Link;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

/// Default time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a request.
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns the parameters of a modern request with these client capabilities.
pub fn modern_params(mut params: Value, capabilities: &Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
    params
}

/// Returns a request with the metadata of a modern client.
pub fn modern_request(
    id: impl Into<Value>,
    method: &str,
    params: Value,
    capabilities: &Value,
) -> Value {
    request(id, method, modern_params(params, capabilities))
}

/// One end of an in-memory stdio connection, for tests that send and check each message themselves.
///
/// It usually plays the client. It can play the server too: see [`accept`](Self::accept).
#[derive(Debug)]
pub struct TestClient {
    link: Link,
    /// Capabilities of a modern client; none for a legacy client.
    capabilities: Option<Value>,
    patience: Duration,
    /// Messages skipped by [`response`](Self::response) and [`notification`](Self::notification).
    unread: VecDeque<Value>,
}

impl TestClient {
    /// Creates a client whose requests are sent as given.
    #[must_use]
    pub const fn new(link: Link) -> Self {
        Self {
            link,
            capabilities: None,
            patience: PATIENCE,
            unread: VecDeque::new(),
        }
    }

    /// Creates a modern client: each request carries these capabilities.
    #[must_use]
    pub fn modern(link: Link, capabilities: Value) -> Self {
        Self {
            capabilities: Some(capabilities),
            ..Self::new(link)
        }
    }

    /// Changes the time limit of each wait, for example on a paused clock.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends `initialize` and `notifications/initialized`; returns the response.
    pub async fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"}});
        let opened = self.ask(0, "initialize", params).await;
        self.notify("notifications/initialized", json!({})).await;
        opened
    }

    /// Answers the handshake of a client of this kind, as a server.
    pub async fn accept(&mut self, method: &str, result: Value) {
        let opening = self.expect(method).await;
        self.answer(&opening, result).await;
        if method == "initialize" {
            self.expect("notifications/initialized").await;
        }
    }

    /// Sends a message; adds the member `jsonrpc` if it is missing.
    pub async fn send(&mut self, message: impl Borrow<Value>) {
        self.push(message.borrow());
        self.link.sink.flush().await.unwrap();
    }

    /// Sends a message like [`send`](Self::send), but the connection may be closed.
    pub async fn try_send(&mut self, message: &Value) {
        self.push(message);
        let _ = self.link.sink.flush().await;
    }

    fn push(&mut self, message: &Value) {
        let mut message = message.clone();
        if let Some(members) = message.as_object_mut() {
            members.entry("jsonrpc").or_insert_with(|| json!("2.0"));
        }
        self.link.sink.push(&message.to_string());
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params})).await;
    }

    /// Sends a request without waiting for the response.
    pub async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let message = match &self.capabilities {
            Some(capabilities) => modern_request(id, method, params, capabilities),
            None => request(id, method, params),
        };
        self.send(message).await;
    }

    /// Sends a modern request without waiting for the response; `meta` is added to its metadata.
    pub async fn request_modern(&mut self, id: u64, method: &str, mut params: Value, meta: Value) {
        params = modern_params(params, &json!({}));
        for (key, value) in meta.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        self.send(request(id, method, params)).await;
    }

    /// Sends a request; returns the next message, which must be the response.
    pub async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id: Value = id.into();
        self.request(id.clone(), method, params).await;
        let answer = self.recv().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Sends a request; returns the response. Messages before it are kept.
    pub async fn call(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        self.response(id).await
    }

    /// Sends a modern request without capabilities; returns the response. Messages before it are kept.
    pub async fn call_modern(&mut self, id: i64, method: &str, params: Value) -> Value {
        let params = modern_params(params, &json!({}));
        self.call(id, method, params).await
    }

    /// Answers a request of the other end.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"id": request["id"], "result": result}))
            .await;
    }

    /// Answers a request of the other end with an error.
    pub async fn refuse(&mut self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.send(json!({"id": request["id"], "error": error}))
            .await;
    }

    /// Returns the next message that arrives.
    pub async fn recv(&mut self) -> Value {
        let received = tokio::time::timeout(self.patience, self.recv_or_end()).await;
        let received = received.unwrap_or_else(|_| panic!("only {:?} arrived", self.unread));
        received.expect("the other end is open")
    }

    /// Returns the next message without a time limit; none after the other end closed. Cancel-safe.
    pub async fn recv_or_end(&mut self) -> Option<Value> {
        loop {
            if let Some(Line::Json(bytes)) = self.link.source.next_line() {
                return Some(serde_json::from_slice(bytes).unwrap());
            }
            if !self.link.source.fill().await.unwrap_or_default() {
                return None;
            }
        }
    }

    /// Waits until the other end closes.
    pub async fn closed(&mut self) {
        let closed = tokio::time::timeout(self.patience, async {
            while self.recv_or_end().await.is_some() {}
        });
        closed.await.expect("the other end closes in time");
    }

    /// Returns the next message, which must have this method.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.recv().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Returns the result in the next message, which must answer this request.
    pub async fn result(&mut self, id: u64) -> Value {
        let message = self.recv().await;
        assert_eq!(message["id"], id, "{message}");
        assert!(message.get("result").is_some(), "{message}");
        message["result"].clone()
    }

    /// Returns the error code in the next message, which must answer this request.
    pub async fn error(&mut self, id: u64) -> i64 {
        let message = self.recv().await;
        assert_eq!(message["id"], id, "{message}");
        message["error"]["code"].as_i64().unwrap()
    }

    /// Checks that no message is pending: the next one is the response to a new request.
    pub async fn expect_silence(&mut self) {
        let method = match self.capabilities {
            Some(_) => "server/discover",
            None => "ping",
        };
        let answer = self.ask("fence", method, json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// Returns the response to a request. Messages before it are kept.
    pub async fn response(&mut self, id: i64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// Returns the first unread message with this method. Messages before it are kept.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    async fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&is_wanted) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let message = self.recv().await;
            if is_wanted(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }
}
