//! Scripted peers of integration tests, on real transports.
//!
//! | type | role |
//! |---|---|
//! | [`TestClient`] | one end of a stdio-like link; every message is written by the test |
//! | [`HttpTestClient`] | the same on HTTP |
//! | [`ScriptedServer`] | server on a link or HTTP; the test receives each message and answers it |
//! | [`LinkServer`] | server on a link with answers of a closure |
//! | [`HttpScript`] | server on HTTP with answers of a closure |
//!
//! [`message`] builds their messages. [`process`] is for tests of programs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

use std::time::Duration;

mod client;
mod http_client;
pub mod http_server;
pub mod link_server;
pub mod message;
pub mod process;
mod server;

pub use client::{TestClient, connect};
pub use http_client::{HttpTestClient, Reply, exchange, listen, post, session_header};
pub use http_server::HttpScript;
pub use link_server::{LinkServer, serve};
pub use server::{ReceivedMessage, Role, ScriptedServer};

/// Time limit of each wait.
const REAL_LIMIT: Duration = Duration::from_secs(30);

/// Time limit of each wait on a paused clock, which jumps ahead whenever all tasks wait.
const VIRTUAL_LIMIT: Duration = Duration::from_secs(3600);

/// Returns the time limit of each wait on the clock of this test.
fn time_limit() -> Duration {
    let (real, shown) = (std::time::Instant::now(), tokio::time::Instant::now());
    while real.elapsed() < Duration::from_micros(2) {
        std::hint::spin_loop();
    }
    let is_paused = shown.elapsed().is_zero();
    if is_paused { VIRTUAL_LIMIT } else { REAL_LIMIT }
}
