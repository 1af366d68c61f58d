//! Framing: the ends of messages in a byte stream.

mod backlog;
pub mod ndjson;
pub mod sse;
pub mod unreadable;
