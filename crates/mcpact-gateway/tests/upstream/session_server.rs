//! HTTP server of 2025-11-25 that can lose its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{HeaderName, Method};
use mcpact_gateway::Target;
use mcpact_sim::scripted::HttpScript;
use mcpact_sim::scripted::http_server::{event, result, stream};
use mcpact_sim::scripted::message::{error_response, initialize_result, text_result};
use mcpact_transport::http::server::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const SESSION: &str = "mcp-session-id";

/// Response to a request of an unknown session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnknownSession {
    /// Status 404, as in the specification.
    NotFound,
    /// Status 400 and an error, as of many servers.
    BadRequest,
}

#[derive(Debug)]
pub(crate) struct SessionServer {
    state: Mutex<State>,
    unknown_session: UnknownSession,
}

#[derive(Debug, Default)]
struct State {
    opened: usize,
    /// Open sessions, with their streams.
    sessions: HashMap<String, Option<mpsc::UnboundedSender<Bytes>>>,
    received: Vec<Received>,
}

/// Message of an open session.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) session: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl SessionServer {
    /// Starts a server.
    pub(crate) async fn start(unknown_session: UnknownSession) -> (Arc<Self>, Target) {
        let server = Arc::new(Self {
            state: Mutex::default(),
            unknown_session,
        });
        let this = Arc::clone(&server);
        let script = move |request: &HttpRequest, message: &Value| match request.verb {
            Method::POST => this.post(request, message),
            Method::GET => this.stream(request),
            _ => HttpResponse::empty(405),
        };
        let (_, url) = HttpScript::listen(script).await;
        (server, Target::url(url))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends every session, like a restart.
    pub(crate) fn lose_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Returns the messages with this method.
    pub(crate) fn received(&self, method: &str) -> Vec<Received> {
        let mut received = self.state().received.clone();
        received.retain(|received| received.method == method);
        received
    }

    /// Returns the methods of all messages of a session, in order.
    pub(crate) fn methods(&self, session: &str) -> Vec<String> {
        let mut received = self.state().received.clone();
        received.retain(|received| received.session == session);
        received.into_iter().map(|one| one.method).collect()
    }

    fn post(&self, request: &HttpRequest, message: &Value) -> HttpResponse {
        let method = message["method"].as_str().unwrap_or("(answer)").to_owned();
        let mut state = self.state();
        let session = match request.header(SESSION) {
            Some(session) if state.sessions.contains_key(session) => session.to_owned(),
            Some(_) => return self.unknown(message),
            None if method == "initialize" => {
                state.opened += 1;
                let session = format!("s{}", state.opened);
                state.sessions.insert(session.clone(), None);
                session
            }
            None => return HttpResponse::empty(400),
        };
        state.received.push(Received {
            session: session.clone(),
            method: method.clone(),
            params: message["params"].clone(),
        });
        if message.get("id").is_none() || message.get("method").is_none() {
            return HttpResponse::empty(202);
        }
        match method.as_str() {
            "initialize" => {
                let capabilities = json!({"tools": {"listChanged": true},
                    "resources": {"subscribe": true}, "logging": {}});
                let opened = result(message, initialize_result("2025-11-25", capabilities));
                opened.with(HeaderName::from_static(SESSION), &session)
            }
            "tools/call" => result(message, text_result(&session)),
            "tools/list" => result(message, json!({"tools": []})),
            _ => result(message, json!({})),
        }
    }

    fn unknown(&self, message: &Value) -> HttpResponse {
        match self.unknown_session {
            UnknownSession::NotFound => HttpResponse::empty(404),
            UnknownSession::BadRequest => {
                let text = "Bad Request: No valid session ID provided";
                let error = json!({"code": -32000, "message": text});
                HttpResponse::json(400, error_response(message, error).to_string())
            }
        }
    }

    fn stream(&self, request: &HttpRequest) -> HttpResponse {
        let session = request.header(SESSION).unwrap_or_default();
        match self.state().sessions.get_mut(session) {
            Some(open) => {
                let (sender, answer) = stream();
                // A comment opens the stream.
                sender.send(Bytes::from_static(b": hello\n\n")).unwrap();
                *open = Some(sender);
                answer
            }
            None => HttpResponse::empty(404),
        }
    }

    /// Sends a message on every stream.
    pub(crate) fn send(&self, message: &Value) {
        let event = event(None, None, &message.to_string());
        for stream in self.state().sessions.values().flatten() {
            stream.send(event.clone()).unwrap();
        }
    }
}
