//! HTTP+SSE, the transport of 2024-11-05.

pub mod client;
