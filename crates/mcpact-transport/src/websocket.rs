//! Messages on a WebSocket: one message per text frame, with the subprotocol `mcp`.
//!
//! The client's end is [`connect`]; the server's end is an answer of
//! [`http::server`](crate::http::server), behind the same guard and token as every other.

mod client;
mod pump;

pub use client::connect;
pub(crate) use pump::{config, link};

/// What both sides must name, so that no other kind of socket is taken for one of ours.
pub(crate) const SUBPROTOCOL: &str = "mcp";
