//! The bridge between a client and a server that say exactly what they are told, case by case.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod answered_here;
mod asked_later;
mod asked_past;
mod asked_within;
mod changes;
mod claimed;
mod conversations;
mod leaving;
mod peer;
mod plain;
mod same_ids;
mod scopes;
mod stage;
mod traces;
mod web;
