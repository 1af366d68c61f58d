//! Real clients and real servers of every revision, with a bridge between them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod forgetful;
mod headers;
mod idle;
mod loss;
mod matrix;
mod middle;
mod raw;
mod resuming;
mod scripted;
