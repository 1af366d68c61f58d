//! HTTP, in both directions.

mod bell;
pub mod client;
pub mod server;
