//! Pipes and sockets: every carrier of the protocol, client and server side.
//!
//! This is the only crate that opens a file descriptor. It moves bytes and tells facts about how they
//! arrived; it never looks into a message and never knows a revision. Read [`link::Link`] first.

pub mod address;
#[cfg(unix)]
pub mod cores;
pub mod error;
pub mod http;
pub mod http_sse;
pub mod link;
pub mod memory;
pub mod stdio;
pub mod tcp;
#[cfg(unix)]
pub mod unix;
pub mod vigil;
pub mod websocket;
pub mod within;
