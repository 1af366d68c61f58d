//! A server on HTTP that does what a test says, and writes down what it was asked.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::unfold;
use mcpact_gateway::Target;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_wire::frame::sse::{EventParts, write_event};
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) struct Scripted<F> {
    script: F,
    heard: Mutex<Vec<Value>>,
}

impl<F> std::fmt::Debug for Scripted<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted(..)")
    }
}

impl<F> Scripted<F>
where
    F: Fn(&HttpRequest, &Value) -> HttpResponse + Send + Sync + 'static,
{
    /// Listens until the test ends; `script` is given each request, a GET without a message.
    pub(crate) async fn listen(script: F) -> (Arc<Self>, Target) {
        let server = Arc::new(Self {
            script,
            heard: Mutex::default(),
        });
        let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}/mcp", http.address());
        tokio::spawn(http.serve(Arc::clone(&server), std::future::pending()));
        (server, Target::url(url))
    }

    /// The messages of this method, in order.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        let of = heard.iter().filter(|message| message["method"] == method);
        of.cloned().collect()
    }
}

impl<F> Endpoint for Scripted<F>
where
    F: Fn(&HttpRequest, &Value) -> HttpResponse + Send + Sync + 'static,
{
    async fn handle(&self, arrival: Box<HttpRequest>) -> HttpResponse {
        let message = serde_json::from_slice(&arrival.body).unwrap_or_default();
        let answer = (self.script)(&arrival, &message);
        self.heard.lock().unwrap().push(message);
        answer
    }
}

/// The answer with a result.
pub(crate) fn result(message: &Value, result: Value) -> HttpResponse {
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    HttpResponse::json(200, answer.to_string())
}

/// The answer with an error.
pub(crate) fn error(message: &Value, status: u16, code: i64) -> HttpResponse {
    let error = json!({"code": code, "message": "as the test wants"});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    HttpResponse::json(status, answer.to_string())
}

/// What a modern server says of itself.
pub(crate) fn discovered(capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
    })
}

/// A result of a tool of a modern server.
pub(crate) fn texted(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// A stream that a test writes to; it ends when the sender is dropped.
pub(crate) fn stream() -> (mpsc::UnboundedSender<Bytes>, HttpResponse) {
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

/// One event.
pub(crate) fn event(id: Option<&str>, retry: Option<u64>, data: &str) -> Bytes {
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
