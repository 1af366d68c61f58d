//! HTTP, in both directions.

pub mod client;
pub mod server;
