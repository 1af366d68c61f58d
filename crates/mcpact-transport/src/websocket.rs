//! The WebSocket transport: one message per text frame, subprotocol `mcp`.
//!
//! [`connect`] is the client's end. The server's end is a response of [`http::server`](crate::http::server), with the
//! same guard and token as other requests.

mod client;
mod pump;

pub use client::connect;
pub(crate) use pump::{config, link};

/// Subprotocol that both sides must name.
pub(crate) const SUBPROTOCOL: &str = "mcp";
