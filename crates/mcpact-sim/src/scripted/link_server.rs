//! Server on a link with answers of a closure.

use std::sync::{Arc, Mutex};

use mcpact::server::Server;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use super::message::{
    discover_result, error_response, initialize_result, method_not_found, response,
};

/// Returns the answer with a result.
#[must_use]
pub fn result(request: &Value, result: Value) -> Vec<Value> {
    vec![response(request, result)]
}

/// Returns the answer with an error.
#[must_use]
pub fn error(request: &Value, code: i64, data: Value) -> Vec<Value> {
    let error = json!({"code": code, "message": "no", "data": data});
    vec![error_response(request, error)]
}

/// Starts a server of the library for one client; returns the end of the client.
#[must_use]
pub fn serve(server: Server) -> Link {
    let (near, far) = memory::pair();
    tokio::spawn(server.serve(far));
    near
}

/// Messages received by a server that answers each with the result of a closure.
#[derive(Clone, Debug, Default)]
pub struct LinkServer {
    received: Arc<Mutex<Vec<Value>>>,
}

impl LinkServer {
    /// Starts a server that answers each message with these messages.
    ///
    /// A string is sent as a raw line, for example to fix the order of members. Null closes the connection.
    pub fn start(mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static) -> (Link, Self) {
        let (near, mut far) = memory::pair();
        let server = Self::default();
        let log = server.clone();
        tokio::spawn(async move {
            'connection: loop {
                while let Some(line) = far.source.next_line() {
                    let Line::Json(bytes) = line else {
                        panic!("the client wrote {line:?}");
                    };
                    let message: Value = serde_json::from_slice(bytes).unwrap();
                    log.push(message.clone());
                    for answer in script(&message) {
                        match answer {
                            Value::Null => break 'connection,
                            Value::String(line) => far.sink.push(&line),
                            answer => far.sink.push(&answer.to_string()),
                        }
                    }
                }
                if far.sink.flush().await.is_err() || !far.source.fill().await.unwrap_or(false) {
                    break;
                }
            }
            log.push(json!({"method": "end"}));
        });
        (near, server)
    }

    /// Starts a legacy server without `server/discover`; the script handles everything after the handshake.
    pub fn legacy(
        version: &'static str,
        capabilities: Value,
        mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
    ) -> (Link, Self) {
        Self::start(move |message| match message["method"].as_str() {
            Some("server/discover") => vec![method_not_found(message)],
            Some("initialize") => {
                let result = initialize_result(version, capabilities.clone());
                vec![response(message, result)]
            }
            Some("notifications/initialized") => Vec::new(),
            _ => script(message),
        })
    }

    /// Starts a modern server; the script handles everything but `server/discover`.
    pub fn modern(
        capabilities: Value,
        mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
    ) -> (Link, Self) {
        Self::start(move |message| match message["method"].as_str() {
            Some("server/discover") => {
                vec![response(message, discover_result(capabilities.clone()))]
            }
            _ => script(message),
        })
    }

    fn push(&self, message: Value) {
        self.received.lock().unwrap().push(message);
    }

    /// Returns all messages, in order. The method of the last one is `end` once the connection is closed.
    #[must_use]
    pub fn all(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the methods of all messages, in order.
    #[must_use]
    pub fn methods(&self) -> Vec<String> {
        let all = self.all();
        let methods = all.iter().filter_map(|message| message["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    /// Returns the messages with this method, in order.
    #[must_use]
    pub fn received(&self, method: &str) -> Vec<Value> {
        let mut all = self.all();
        all.retain(|message| message["method"] == method);
        all
    }
}
