//! Client tests against scripted servers: in memory, in child processes, and over raw HTTP.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic fails the test"
)]

mod child;
mod era_cache;
mod gate;
mod http_legacy;
mod http_modern;
mod http_server;
mod http_sse;
mod lines;
mod own_server;
mod questions;
mod rounds;
mod stalled_peers;
mod statuses;
mod subscriptions;
mod task_calls;
mod validation;
