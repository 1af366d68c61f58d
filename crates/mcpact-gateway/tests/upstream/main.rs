//! One upstream server between clients and servers of every revision.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod calls;
mod cursors;
mod deviating_servers;
mod disconnecting_clients;
mod headers;
mod idle_connections;
mod logging;
mod lost_servers;
mod matrix;
mod misleading_errors;
mod non_message_errors;
mod oversized_responses;
mod pairs;
mod resumed_streams;
mod scene;
mod session_server;
mod shared_tasks;
#[path = "../common/targets.rs"]
mod targets;
mod tasks;
