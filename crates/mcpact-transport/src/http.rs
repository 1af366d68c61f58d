//! HTTP client and server.

pub mod client;
pub mod server;
mod waker;
