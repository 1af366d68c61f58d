//! Messages and results in the form of each era.

use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};

/// Returns a request.
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a notification.
#[must_use]
pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Returns the response to a request.
#[must_use]
pub fn response(request: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// Returns the error response to a request.
#[must_use]
pub fn error_response(request: &Value, error: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request["id"], "error": error})
}

/// Returns the error response of a server that does not know the method.
#[must_use]
pub fn method_not_found(request: &Value) -> Value {
    error_response(
        request,
        json!({"code": -32601, "message": "Method not found"}),
    )
}

/// Returns the `initialize` request of a client.
pub fn initialize(id: impl Into<Value>, version: &str, capabilities: Value) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "t", "version": "1"}});
    request(id, "initialize", params)
}

/// Returns the parameters of a modern request with these client capabilities.
#[must_use]
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

/// Returns the parameters of a tool call.
#[must_use]
pub fn tool(name: &str) -> Value {
    json!({"name": name, "arguments": {"a": 1}})
}

/// Returns the result of a tool, valid in both eras.
#[must_use]
pub fn text_result(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

/// Returns the result of `initialize`.
#[must_use]
pub fn initialize_result(version: &str, capabilities: Value) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities, "instructions": "be kind",
        "serverInfo": {"name": "scripted", "version": "7"}})
}

/// Returns the result of `server/discover`.
#[must_use]
pub fn discover_result(capabilities: Value) -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
        "instructions": "be kind",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "7"}}})
}

/// Returns the method and result of the handshake of a server.
#[must_use]
pub fn handshake(revision: Revision, capabilities: Value) -> (&'static str, Value) {
    match revision.era() {
        Era::Legacy => (
            "initialize",
            initialize_result(revision.as_str(), capabilities),
        ),
        Era::Modern => ("server/discover", discover_result(capabilities)),
    }
}
