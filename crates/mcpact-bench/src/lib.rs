//! The inputs of the benchmarks, and the few operations that more than one of them measures.
//!
//! `benches/time.rs` measures with a clock, `benches/instructions.rs` counts instructions;
//! `cargo xtask bench` runs both and compares them with the targets. This crate may not decide
//! anything: whether a number is good is for `xtask/src/bench/targets.rs`.

mod conversations;
mod messages;
mod streams;

pub use conversations::{
    client_party, gate, http_facts, is_unambiguous, legacy_pact, server_party, server_terms,
};
pub use messages::{
    initialize, legacy_call, modern_call, result_with_blocks, result_with_quotes, result_with_text,
    task_call,
};
pub use streams::{CHUNK, count_events, count_lines, event_stream, line_stream};
