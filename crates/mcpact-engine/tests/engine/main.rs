//! The engine from the outside: cell sheets of the specification, requirements and source
//! documents, each played against the real machines.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a broken expectation is a failed test"
)]

mod era_detection;
mod legacy_negotiation;
mod modern_negotiation;
mod support;
