//! One upstream server between scripted clients and a scripted server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod cache_scope;
mod changes;
mod client_capabilities;
mod configured_answers;
mod disconnects;
mod questions_after_calls;
mod questions_to_legacy_clients;
mod questions_to_modern_clients;
mod random_runs;
mod same_ids;
mod sampling_requests;
#[path = "../common/scripted_server.rs"]
mod scripted_server;
mod session_ownership;
mod trace_context;
mod translation;

use std::sync::Arc;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};

use self::scripted_server::ScriptedServer;

/// Upstream server with default settings for a scripted server.
fn upstream(scripted: &ScriptedServer) -> Arc<UpstreamServer> {
    UpstreamServer::new(scripted.target.clone(), UpstreamSettings::default()).unwrap()
}
