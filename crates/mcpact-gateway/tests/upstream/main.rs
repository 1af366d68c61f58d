//! Real clients and real servers of every revision, with the gateway between them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod calls;
mod cursors;
mod doubtful;
mod forgetful;
mod gone;
mod headers;
mod idle;
mod logging;
mod loss;
mod matrix;
mod middle;
mod peculiar;
mod raw;
mod resuming;
mod scripted;
mod shared_tasks;
mod staged;
mod tasks;
mod too_long;
mod wordless;
