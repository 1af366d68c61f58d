//! The reference server on real carriers: what goes over the wire, revision by revision.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod features;
mod front;
mod headers;
mod http;
mod lines;
mod messages;
mod pairs;
mod peer;
mod principals;
mod questions;
mod safety;
mod sessions;
mod shapes;
mod streams;
mod tasks;
