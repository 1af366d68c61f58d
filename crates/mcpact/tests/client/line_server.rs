//! Scripted server in memory.

use std::sync::{Arc, Mutex};

use mcpact::client::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

/// Messages received by a scripted server.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<Vec<Value>>>);

impl Received {
    pub(crate) fn push(&self, message: Value) {
        self.0.lock().unwrap().push(message);
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        let all = self.all();
        let methods = all.iter().filter_map(|message| message["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    pub(crate) fn of(&self, method: &str) -> Vec<Value> {
        let mut all = self.all();
        all.retain(|message| message["method"] == method);
        all
    }
}

/// Starts a server that answers each message according to the script.
pub(crate) fn serve(
    mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Link, Received) {
    let (near, mut far) = memory::pair();
    let received = Received::default();
    let log = received.clone();
    tokio::spawn(async move {
        loop {
            while let Some(line) = far.source.next_line() {
                let Line::Json(bytes) = line else {
                    panic!("the client wrote {line:?}");
                };
                let message: Value = serde_json::from_slice(bytes).unwrap();
                log.push(message.clone());
                for answer in script(&message) {
                    match answer {
                        // Raw line, with a fixed order of members.
                        Value::String(line) => far.sink.push(&line),
                        answer => far.sink.push(&answer.to_string()),
                    }
                }
            }
            if far.sink.flush().await.is_err() || !far.source.fill().await.unwrap_or(false) {
                return log.push(json!({ "method": "end" }));
            }
        }
    });
    (near, received)
}

pub(crate) fn result(message: &Value, result: Value) -> Vec<Value> {
    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })]
}

pub(crate) fn error(message: &Value, code: i64, data: Value) -> Vec<Value> {
    let error = json!({ "code": code, "message": "no", "data": data });
    vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
}

pub(crate) fn initialized(version: &str, capabilities: Value) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": capabilities,
        "serverInfo": { "name": "scripted", "version": "1" },
        "instructions": "be kind",
    })
}

pub(crate) fn discovered(capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "instructions": "be kind",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
    })
}

/// Legacy server without `server/discover`; the script handles everything after the handshake.
pub(crate) fn legacy(
    version: &'static str,
    capabilities: Value,
    mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Link, Received) {
    serve(move |message| match message["method"].as_str() {
        Some("server/discover") => error(message, -32601, Value::Null),
        Some("initialize") => result(message, initialized(version, capabilities.clone())),
        Some("notifications/initialized") => Vec::new(),
        _ => script(message),
    })
}

/// Modern server; the script handles everything but `server/discover`.
pub(crate) fn modern(
    capabilities: Value,
    mut script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Link, Received) {
    serve(move |message| match message["method"].as_str() {
        Some("server/discover") => result(message, discovered(capabilities.clone())),
        _ => script(message),
    })
}
