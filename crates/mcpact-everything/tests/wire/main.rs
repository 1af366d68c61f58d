//! The reference server on real carriers: what goes over the wire, revision by revision.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod front;
mod http;
mod lines;
mod pairs;
mod safety;
mod sessions;
mod shapes;
