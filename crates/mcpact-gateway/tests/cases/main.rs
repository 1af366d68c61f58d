//! UpstreamServer between a scripted client and a scripted server, case by case.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod cache_scope;
mod changes;
mod configured_answers;
mod disconnects;
mod http_client;
mod questions_after_calls;
mod questions_to_legacy_clients;
mod questions_to_modern_clients;
mod random_runs;
mod same_ids;
mod scripted_client;
mod scripted_server;
mod session_ownership;
mod trace_context;
mod translation;
