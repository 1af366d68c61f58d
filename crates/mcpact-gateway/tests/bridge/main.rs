//! Real clients and real servers of every revision, with a bridge between them.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod matrix;
mod middle;
