//! Raw client for tests, which writes every message itself.
use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::Arc;

use mcpact::server::backend::{Backend, SessionEnd, serve_link};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use super::message::{
    error_response, initialize, modern_params, modern_request, notification, request, response,
};
use super::time_limit;

/// One end of an in-memory stdio connection, for tests that send and check each message themselves.
///
/// It usually plays the client. It can play the server too: see [`accept`](Self::accept).
#[derive(Debug)]
pub struct TestClient {
    link: Link,
    /// Capabilities of a modern client; none for a legacy client.
    capabilities: Option<Value>,
    /// Messages skipped by [`response`](Self::response) and [`notification`](Self::notification).
    unread: VecDeque<Value>,
}

impl TestClient {
    /// Creates a client on a link. With capabilities it is a modern client, which declares them in each request;
    /// without, requests are sent as given.
    #[must_use]
    pub const fn on(link: Link, capabilities: Option<Value>) -> Self {
        Self {
            link,
            capabilities,
            unread: VecDeque::new(),
        }
    }

    /// Connects a client that has sent nothing yet.
    #[must_use]
    pub fn silent(backend: &Arc<impl Backend>) -> Self {
        Self::on(connect(backend), None)
    }

    /// Connects a modern client.
    #[must_use]
    pub fn modern(backend: &Arc<impl Backend>, capabilities: Value) -> Self {
        Self::on(connect(backend), Some(capabilities))
    }

    /// Connects a legacy client and initializes it.
    pub async fn legacy(backend: &Arc<impl Backend>, version: &str, capabilities: Value) -> Self {
        let mut client = Self::silent(backend);
        let opened = client.open(version, capabilities).await;
        assert_eq!(opened["result"]["protocolVersion"], version, "{opened}");
        client
    }

    /// Sends `initialize` and `notifications/initialized`; returns the response.
    pub async fn open(&mut self, version: &str, capabilities: Value) -> Value {
        self.send(initialize(0, version, capabilities)).await;
        let opened = self.response(0).await;
        self.notify("notifications/initialized", json!({})).await;
        opened
    }

    /// Answers the handshake of a client, as a server; see [`handshake`](super::message::handshake).
    pub async fn accept(&mut self, (method, result): (&str, Value)) {
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
        self.send(notification(method, params)).await;
    }

    /// Sends a request without waiting for the response.
    pub async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let message = match &self.capabilities {
            Some(capabilities) => modern_request(id, method, params, capabilities),
            None => request(id, method, params),
        };
        self.send(message).await;
    }

    /// Sends a modern request without capabilities, without waiting for the response.
    pub async fn request_modern(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.request_modern_with(id, method, params, json!({}))
            .await;
    }

    /// Sends a modern request like [`request_modern`](Self::request_modern); `meta` is added to its metadata.
    pub async fn request_modern_with(
        &mut self,
        id: impl Into<Value>,
        method: &str,
        params: Value,
        meta: Value,
    ) {
        let mut params = modern_params(params, &json!({}));
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
        self.send(response(request, result)).await;
    }

    /// Answers a request of the other end with an error.
    pub async fn refuse(&mut self, request: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.send(error_response(request, error)).await;
    }

    /// Returns the next message that arrives.
    pub async fn recv(&mut self) -> Value {
        let received = tokio::time::timeout(time_limit(), self.recv_or_end()).await;
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
        let closed = tokio::time::timeout(time_limit(), async {
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
    pub async fn result(&mut self, id: i64) -> Value {
        let message = self.recv().await;
        assert_eq!(message["id"], id, "{message}");
        assert!(message.get("result").is_some(), "{message}");
        message["result"].clone()
    }

    /// Returns the error code in the next message, which must answer this request.
    pub async fn error(&mut self, id: i64) -> i64 {
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

/// Serves a client of the backend; returns the end of the client.
#[must_use]
pub fn connect(backend: &Arc<impl Backend>) -> Link {
    let (near, far) = memory::pair();
    let session_end = SessionEnd::after(backend.settings().limits.drain);
    tokio::spawn(serve_link(Arc::clone(backend), far, session_end));
    near
}
