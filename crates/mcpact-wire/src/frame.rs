//! Where one message ends and the next begins.

mod backlog;
pub mod ndjson;
pub mod spoiled;
pub mod sse;
