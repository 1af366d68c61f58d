//! The bodies of the fuzz targets, and their replay over the committed corpora.
//!
//! Each target is a function from bytes to nothing that panics when an invariant is broken. The
//! fuzzer in `fuzz/` calls it with bytes that it makes up; `tests/replay.rs` calls it with every file
//! of `fuzz/corpus/`, on a stable compiler and without the fuzzer.
//!
//! This crate may only call what the other crates offer to everybody. Read [`envelope`] first, then
//! [`engine`], whose input is a small script.

#![expect(clippy::panic, reason = "a target tells the fuzzer by panicking")]

mod chunks;
mod engine;
mod envelope;
mod ndjson;
mod scanner;
mod sse;

pub use engine::engine;
pub use envelope::envelope;
pub use ndjson::ndjson;
pub use scanner::scanner;
pub use sse::sse;
