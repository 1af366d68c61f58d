//! Invariants of the gateway: isolation of clients, cancellation, reload and resends.
//!
//! The tests use the configuration, the wire and the `Backend` trait only. The servers and most clients are scripted
//! and in memory, so that the clock can be paused.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

#[path = "../common/scripted_server.rs"]
mod scripted_server;

mod client;
mod cut;
mod isolation;
mod lists;
mod reload;
mod resting;
mod rig;
mod sweep;
