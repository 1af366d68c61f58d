//! A server of 2025-11-25 on HTTP that writes down what it hears, and can forget its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderName, Method};
use mcpact_gateway::Target;
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse, HttpServer};
use mcpact_wire::frame::sse::{EventParts, write_event};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const SESSION: &str = "mcp-session-id";

#[derive(Debug, Default)]
pub(crate) struct Forgetful {
    state: Mutex<State>,
    is_vague: bool,
}

#[derive(Debug, Default)]
struct State {
    opened: usize,
    /// The sessions that it knows, with the streams that they have.
    sessions: HashMap<String, Option<mpsc::UnboundedSender<Bytes>>>,
    heard: Vec<Heard>,
}

/// A request that was let in.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) session: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Forgetful {
    /// One that answers 400 where the specification wants 404, as many do.
    pub(crate) fn vague() -> Self {
        Self {
            is_vague: true,
            ..Self::default()
        }
    }

    /// Listens until the test ends.
    pub(crate) async fn listen(self) -> (Arc<Self>, Target) {
        let server = Arc::new(self);
        let http = HttpServer::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}/mcp", http.address());
        let endpoint = Arc::new(Door(Arc::clone(&server)));
        tokio::spawn(http.serve(endpoint, std::future::pending()));
        (server, Target::url(url))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends every session, as a server that is started anew does.
    pub(crate) fn forget(&self) {
        self.state().sessions.clear();
    }

    /// The requests of this method that were let in.
    pub(crate) fn heard(&self, method: &str) -> Vec<Heard> {
        let state = self.state();
        let heard = state.heard.iter().filter(|heard| heard.method == method);
        heard.cloned().collect()
    }

    /// All methods that one session has heard, in order.
    pub(crate) fn methods(&self, session: &str) -> Vec<String> {
        let state = self.state();
        let heard = state.heard.iter().filter(|heard| heard.session == session);
        heard.map(|heard| heard.method.clone()).collect()
    }

    fn post(&self, arrival: &HttpRequest) -> HttpResponse {
        let message: Value = serde_json::from_slice(&arrival.body).unwrap();
        let method = message["method"].as_str().unwrap_or("(answer)").to_owned();
        let mut state = self.state();
        let session = match arrival.header(SESSION) {
            Some(session) if state.sessions.contains_key(session) => session.to_owned(),
            Some(_) => return self.unknown(&message),
            None if method == "initialize" => {
                state.opened += 1;
                let session = format!("s{}", state.opened);
                state.sessions.insert(session.clone(), None);
                session
            }
            None => return HttpResponse::empty(400),
        };
        state.heard.push(Heard {
            session: session.clone(),
            method: method.clone(),
            params: message["params"].clone(),
        });
        if message.get("id").is_none() || message.get("method").is_none() {
            return HttpResponse::empty(202);
        }
        let result = result(&method, &session);
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let answer = HttpResponse::json(200, answer.to_string());
        match method.as_str() {
            "initialize" => answer.with(HeaderName::from_static(SESSION), &session),
            _ => answer,
        }
    }

    fn unknown(&self, message: &Value) -> HttpResponse {
        if !self.is_vague {
            return HttpResponse::empty(404);
        }
        let text = "Bad Request: No valid session ID provided";
        let error = json!({"code": -32000, "message": text});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        HttpResponse::json(400, answer.to_string())
    }

    fn stream(&self, arrival: &HttpRequest) -> HttpResponse {
        let session = arrival.header(SESSION).unwrap_or_default().to_owned();
        let (sender, receiver) = mpsc::unbounded_channel();
        match self.state().sessions.get_mut(&session) {
            Some(stream) => *stream = Some(sender),
            None => return HttpResponse::empty(404),
        }
        // A comment opens the stream.
        let first = Some(Bytes::from_static(b": hello\n\n"));
        HttpResponse::events(unfold((first, receiver), |(first, mut receiver)| async {
            let bytes = match first {
                Some(first) => first,
                None => receiver.recv().await?,
            };
            Some((bytes, (None, receiver)))
        }))
    }

    /// Says something to everybody who listens.
    pub(crate) fn say(&self, message: &Value) {
        let mut bytes = Vec::new();
        let data = message.to_string();
        let parts = EventParts {
            data: Some(&data),
            ..EventParts::default()
        };
        write_event(&mut bytes, &parts).unwrap();
        for stream in self.state().sessions.values().flatten() {
            stream.send(bytes.clone().into()).unwrap();
        }
    }
}

fn result(method: &str, session: &str) -> Value {
    match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true},
                "logging": {},
            },
            "serverInfo": {"name": "forgetful", "version": "1"},
        }),
        "tools/call" => json!({"content": [{"type": "text", "text": session}]}),
        "tools/list" => json!({"tools": []}),
        _ => json!({}),
    }
}

#[derive(Debug)]
struct Door(Arc<Forgetful>);

impl Endpoint for Door {
    async fn handle(&self, arrival: Box<HttpRequest>) -> HttpResponse {
        match arrival.verb {
            Method::POST => self.0.post(&arrival),
            Method::GET => self.0.stream(&arrival),
            _ => HttpResponse::empty(405),
        }
    }
}
