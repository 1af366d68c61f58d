//! Scripted server on a link or HTTP.
//!
//! It answers the handshake of its era; the test receives everything else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName, Method as Verb};
use mcpact_spec::{Era, Revision};
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::http_server::event;
use super::message::{
    error_response, handshake, method_not_found, notification, request, response,
};
use super::{message, time_limit};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Handshake of a server.
#[derive(Clone, Debug)]
pub struct Role {
    /// Only revision of the server.
    pub revision: Revision,
    /// Capabilities of the server.
    pub capabilities: Value,
    /// Replacement of the handshake result.
    pub introduction: Option<Value>,
    /// True if a session has its own stream on HTTP.
    pub can_push: bool,
}

impl Role {
    /// Creates the role of a server that has every feature, without change notifications.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            capabilities: json!({"tools": {}, "prompts": {}, "resources": {}, "logging": {},
                "completions": {}}),
            introduction: None,
            can_push: true,
        }
    }

    /// Declares change notifications.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.capabilities["tools"]["listChanged"] = json!(true);
        self.capabilities["resources"]["subscribe"] = json!(true);
        self
    }

    /// Replaces the handshake result.
    #[must_use]
    pub fn introduced(mut self, introduction: Value) -> Self {
        self.introduction = Some(introduction);
        self
    }

    /// Returns the response to a message of the handshake; none for other messages.
    fn handshake_response(&self, message: &Value) -> Option<Option<Value>> {
        let method = message["method"].as_str()?;
        let (own, result) = handshake(self.revision, self.capabilities.clone());
        match method {
            _ if method == own => {
                let result = self.introduction.clone().unwrap_or(result);
                Some(Some(response(message, result)))
            }
            "server/discover" | "initialize" => Some(Some(method_not_found(message))),
            "notifications/initialized" if self.revision.era() == Era::Legacy => Some(None),
            _ => None,
        }
    }
}

/// Output of a server.
enum Output {
    /// Message.
    Message(Value),
    /// Last message of a request.
    Last(Value),
    /// HTTP status and document.
    Status(u16, Value),
    /// End of the connection or stream.
    End,
}

/// Message that the server received, with the way to reply.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// The message.
    pub message: Value,
    /// HTTP headers; empty on a link.
    pub headers: HeaderMap,
    /// Number of the connection; on HTTP of the session, or 0 without one.
    pub connection: usize,
    output: mpsc::UnboundedSender<Output>,
}

impl ReceivedMessage {
    /// Returns the method; empty for a response.
    #[must_use]
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// Returns the parameters.
    #[must_use]
    pub fn params(&self) -> &Value {
        &self.message["params"]
    }

    /// Returns the value of an HTTP header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn send(&self, output: Output) {
        // The client may have disconnected.
        let _ = self.output.send(output);
    }

    /// Answers with a result.
    pub fn result(&self, result: Value) {
        self.send(Output::Last(response(&self.message, result)));
    }

    /// Answers with a tool result that consists of a text.
    pub fn text(&self, text: &str) {
        self.result(message::text_result(text));
    }

    /// Answers with an error.
    pub fn error(&self, error: Value) {
        self.send(Output::Last(error_response(&self.message, error)));
    }

    /// Answers with an HTTP status and a document.
    pub fn status(&self, status: u16, document: Value) {
        self.send(Output::Status(status, document));
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.send(Output::Message(notification(method, params)));
    }

    /// Sends a request to the client.
    pub fn ask(&self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(Output::Message(request(id, method, params)));
    }

    /// Closes the connection or the stream.
    pub fn hang_up(&self) {
        self.send(Output::End);
    }

    /// Returns true once the connection is closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.output.is_closed()
    }

    /// Waits until the client disconnects.
    pub async fn closed(&self) {
        let closed = tokio::time::timeout(time_limit(), self.output.closed()).await;
        closed.expect("the client disconnects in time");
    }
}

/// Messages and connections of a server.
#[derive(Clone, Debug)]
struct Shared {
    role: Role,
    received: mpsc::UnboundedSender<ReceivedMessage>,
    handshakes: Arc<Mutex<Vec<Value>>>,
    /// Number of connections or sessions so far.
    count: Arc<AtomicUsize>,
}

impl Shared {
    fn handshake_response(&self, message: &Value) -> Option<Option<Value>> {
        let answer = self.role.handshake_response(message)?;
        self.handshakes.lock().unwrap().push(message.clone());
        Some(answer)
    }

    fn next_number(&self) -> usize {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Handle of the test for a server.
#[derive(Debug)]
pub struct ScriptedServer {
    received: mpsc::UnboundedReceiver<ReceivedMessage>,
    handshakes: Arc<Mutex<Vec<Value>>>,
    /// Held by every open connection.
    connections: Arc<()>,
}

impl ScriptedServer {
    fn new(role: Role) -> (Self, Shared) {
        let (sender, received) = mpsc::unbounded_channel();
        let handshakes = Arc::<Mutex<Vec<Value>>>::default();
        let shared = Shared {
            role,
            received: sender,
            handshakes: Arc::clone(&handshakes),
            count: Arc::default(),
        };
        let server = Self {
            received,
            handshakes,
            connections: Arc::default(),
        };
        (server, shared)
    }

    /// Creates a server in memory and a function that connects to a new instance.
    pub fn in_memory(role: Role) -> (Self, impl Fn() -> Link + Send + Sync + 'static) {
        let (server, shared) = Self::new(role);
        let open = Arc::clone(&server.connections);
        let connect = move || {
            let (near, far) = memory::pair();
            let (shared, open) = (shared.clone(), Arc::clone(&open));
            let connection = shared.next_number();
            tokio::spawn(async move {
                serve_link(far, connection, shared).await;
                drop(open);
            });
            near
        };
        (server, connect)
    }

    /// Starts a server on a socket; returns it and its URL.
    pub async fn on_http(role: Role) -> (Self, String) {
        let (server, shared) = Self::new(role);
        let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}/mcp", http.address().unwrap());
        tokio::spawn(http.serve(Arc::new(shared), std::future::pending()));
        (server, url)
    }

    /// Returns the next message that is not part of a handshake.
    pub async fn recv(&mut self) -> ReceivedMessage {
        let received = tokio::time::timeout(time_limit(), self.recv_or_end()).await;
        received.expect("a message arrives in time").unwrap()
    }

    /// Returns the next message without a time limit; none at the end.
    pub async fn recv_or_end(&mut self) -> Option<ReceivedMessage> {
        self.received.recv().await
    }

    /// Returns the next message, which must have this method.
    pub async fn expect(&mut self, method: &str) -> ReceivedMessage {
        let received = self.recv().await;
        assert_eq!(received.method(), method, "{}", received.message);
        received
    }

    /// Returns the messages received since the last call of this or another method.
    pub fn received(&mut self) -> Vec<ReceivedMessage> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }

    /// Returns the messages of handshakes so far.
    #[must_use]
    pub fn handshakes(&self) -> Vec<Value> {
        self.handshakes.lock().unwrap().clone()
    }

    /// Returns a token that every open connection, and everything that opens connections, holds.
    #[must_use]
    pub fn connections(&self) -> Arc<()> {
        Arc::clone(&self.connections)
    }
}

/// Serves one connection.
async fn serve_link(link: Link, connection: usize, shared: Shared) {
    let Link {
        mut source,
        mut sink,
    } = link;
    let (output, mut outputs) = mpsc::unbounded_channel();
    loop {
        while let Some(line) = source.next_line() {
            let Line::Json(bytes) = line else {
                panic!("the client wrote {line:?}");
            };
            let message: Value = serde_json::from_slice(bytes).unwrap();
            if let Some(answer) = shared.handshake_response(&message) {
                if let Some(answer) = answer {
                    sink.push(&answer.to_string());
                }
                continue;
            }
            let received = ReceivedMessage {
                message,
                headers: HeaderMap::new(),
                connection,
                output: output.clone(),
            };
            if shared.received.send(received).is_err() {
                return;
            }
        }
        if sink.flush().await.is_err() {
            return;
        }
        tokio::select! {
            more = source.fill() => if !more.unwrap_or(false) { return },
            Some(output) = outputs.recv() => match output {
                Output::Message(message) | Output::Last(message) => sink.push(&message.to_string()),
                Output::Status(..) => panic!("a link has no status"),
                Output::End => return,
            },
        }
    }
}

impl Endpoint for Shared {
    async fn handle(&self, request: Box<HttpRequest>) -> HttpResponse {
        if request.verb == Verb::DELETE {
            return HttpResponse::empty(200);
        }
        let is_stream = request.verb == Verb::GET;
        let message: Value = match is_stream {
            true if !self.role.can_push => return HttpResponse::empty(405),
            true => json!({"method": "GET"}),
            false => serde_json::from_slice(&request.body).unwrap(),
        };
        if let Some(answer) = self.handshake_response(&message) {
            return self.http_handshake(answer);
        }
        let has_answer = message.get("method").is_some() && message.get("id").is_some();
        let (output, mut outputs) = mpsc::unbounded_channel();
        let session = request.header(SESSION.as_str());
        let connection = session.and_then(|id| id.strip_prefix('s')?.parse().ok());
        let received = ReceivedMessage {
            message,
            connection: connection.unwrap_or_default(),
            headers: request.headers,
            output,
        };
        let _ = self.received.send(received);
        if is_stream {
            return events(None, outputs);
        }
        if !has_answer {
            return HttpResponse::empty(202);
        }
        match outputs.recv().await {
            Some(Output::Last(message)) => HttpResponse::json(200, message.to_string()),
            Some(Output::Status(status, document)) => {
                HttpResponse::json(status, document.to_string())
            }
            Some(Output::Message(message)) => events(Some(message), outputs),
            Some(Output::End) | None => HttpResponse::empty(500),
        }
    }
}

impl Shared {
    fn http_handshake(&self, answer: Option<Value>) -> HttpResponse {
        let Some(answer) = answer else {
            return HttpResponse::empty(202);
        };
        if answer.get("error").is_some() {
            return HttpResponse::json(404, answer.to_string());
        }
        let response = HttpResponse::json(200, answer.to_string());
        match self.role.revision.era() {
            Era::Legacy => response.with(SESSION, &format!("s{}", self.next_number())),
            Era::Modern => response,
        }
    }
}

fn events(first: Option<Value>, outputs: mpsc::UnboundedReceiver<Output>) -> HttpResponse {
    let event = |message: &Value| event(None, None, &message.to_string());
    let first = first.map(|message| event(&message));
    let state = (first, Some(outputs));
    HttpResponse::events(unfold(state, move |(first, outputs)| async move {
        if let Some(first) = first {
            return Some((first, (None, outputs)));
        }
        let mut outputs = outputs?;
        match outputs.recv().await? {
            Output::Message(message) => Some((event(&message), (None, Some(outputs)))),
            Output::Last(message) => Some((event(&message), (None, None))),
            Output::Status(..) | Output::End => None,
        }
    }))
}
