//! Where one message ends and the next begins.

pub mod ndjson;
pub mod sse;
