//! What a rebuild of the gateway must not change: isolation of clients, cancellation, reload and resends.
//!
//! The tests use the configuration, the wire and the `Backend` trait only. The servers and most clients are scripted
//! and in memory, so that the clock can be paused.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

#[path = "../cases/peer.rs"]
#[expect(dead_code, reason = "shared with the tests in `cases`")]
mod peer;
#[path = "../cases/stage.rs"]
#[expect(dead_code, reason = "shared with the tests in `cases`")]
mod stage;
#[path = "../cases/web.rs"]
#[expect(dead_code, reason = "shared with the tests in `cases`")]
mod web;

mod client;
mod cut;
mod isolation;
mod lists;
mod reload;
mod resting;
mod rig;
mod sweep;
