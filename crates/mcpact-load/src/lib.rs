//! Whole servers and clients under load.
//!
//! The program `mcpact-load` starts the subjects one after the other, each a process of its own,
//! loads them in the same way and writes down what it saw. `load-ours` is built with our library,
//! `load-rmcp` with the peer's, and `load-floor` does no protocol at all: it echoes bytes, and shows
//! what the machine could do. `load-floor-proxy` does as little between a client and a server.
//! `load-instructions` counts the instructions per call through `mcpact` under valgrind. This crate may not decide anything: whether a number is good is for
//! `xtask/src/bench/`.

pub mod between;
pub mod call;
pub mod caller;
pub mod cost;
pub mod error;
pub mod http;
pub mod instructions;
pub mod lines;
pub mod many;
pub mod memory;
pub mod plan;
pub mod process;
pub mod raw;
pub mod relay;
pub mod role;
pub mod sample;
