//! Upstream targets in this process.

use std::sync::Arc;

use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{exchange, serve};
use mcpact_spec::Revision;
use mcpact_transport::link::Link;
use serde_json::Value;

/// Target that connects to a new instance for every connection.
pub(crate) fn in_memory(connect: impl Fn() -> Link + Send + Sync + 'static) -> Target {
    Target::Local(Local(Arc::new(connect)))
}

/// Reference server with one revision.
pub(crate) fn everything(revision: Revision) -> Target {
    in_memory(move || serve(mcpact_everything::server(&[revision])))
}

/// Upstream server with default settings.
pub(crate) fn upstream(target: Target) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}

/// Posts a message with these headers; returns the raw response.
pub(crate) async fn post(url: &str, headers: &str, message: &Value) -> String {
    let (origin, path) = url.rsplit_once('/').unwrap();
    let headers = format!("content-type: application/json\r\n{headers}");
    exchange(
        "POST",
        origin,
        &format!("/{path}"),
        &headers,
        &message.to_string(),
    )
    .await
}

/// Returns the header with the session that a response has opened.
pub(crate) fn session_header(response: &str) -> String {
    let mut lines = response.lines();
    let session = lines.find(|line| line.starts_with("mcp-session-id: "));
    format!("{}\r\n", session.unwrap())
}
