//! Server on HTTP with answers of a closure.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::unfold;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_wire::frame::sse::{EventParts, write_event};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::message::{error_response, response};

/// Server that answers each HTTP request with the result of a closure, and records the messages.
pub struct HttpScript<F> {
    script: F,
    received: Mutex<Vec<Value>>,
}

impl<F> std::fmt::Debug for HttpScript<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpScript(..)")
    }
}

impl<F> HttpScript<F>
where
    F: Fn(&HttpRequest, &Value) -> HttpResponse + Send + Sync + 'static,
{
    /// Starts a server; returns it and its URL. `script` gets each request; the message is null without a body.
    pub async fn listen(script: F) -> (Arc<Self>, String) {
        let server = Arc::new(Self {
            script,
            received: Mutex::default(),
        });
        let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}/mcp", http.address().unwrap());
        tokio::spawn(http.serve(Arc::clone(&server), std::future::pending()));
        (server, url)
    }

    /// Returns the received messages with this method, in order.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let mut received = self.received.lock().unwrap().clone();
        received.retain(|message| message["method"] == method);
        received
    }
}

impl<F> Endpoint for HttpScript<F>
where
    F: Fn(&HttpRequest, &Value) -> HttpResponse + Send + Sync + 'static,
{
    async fn handle(&self, request: Box<HttpRequest>) -> HttpResponse {
        let message = serde_json::from_slice(&request.body).unwrap_or_default();
        let answer = (self.script)(&request, &message);
        self.received.lock().unwrap().push(message);
        answer
    }
}

/// Returns the HTTP response with the result of a request.
#[must_use]
pub fn result(request: &Value, result: Value) -> HttpResponse {
    HttpResponse::json(200, response(request, result).to_string())
}

/// Returns the HTTP response with an error.
#[must_use]
pub fn error(request: &Value, status: u16, code: i64) -> HttpResponse {
    let error = json!({"code": code, "message": "an error"});
    HttpResponse::json(status, error_response(request, error).to_string())
}

/// Returns an event stream and its sender; dropping the sender ends the stream.
#[must_use]
pub fn stream() -> (mpsc::UnboundedSender<Bytes>, HttpResponse) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let events = unfold(
        receiver,
        |mut receiver: mpsc::UnboundedReceiver<Bytes>| async {
            let bytes = receiver.recv().await?;
            Some((bytes, receiver))
        },
    );
    (sender, HttpResponse::events(events))
}

/// Returns one event of a stream.
#[must_use]
pub fn event(id: Option<&str>, retry: Option<u64>, data: &str) -> Bytes {
    let mut bytes = Vec::new();
    let parts = EventParts {
        id,
        retry,
        data: Some(data),
        ..EventParts::default()
    };
    write_event(&mut bytes, &parts).unwrap();
    bytes.into()
}
