//! The commands that act as a client of one server: `tools`, `resources`, `prompts`, `call`, `read`, `prompt`,
//! `complete` and `tasks`, against the reference server.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod calls;
mod harness;
mod lists;
mod questions;
mod targets;
mod terminal;
