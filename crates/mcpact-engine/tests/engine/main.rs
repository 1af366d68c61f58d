//! The engine from the outside: cell sheets of the specification, requirements and source
//! documents, each played against the real machines.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

mod capabilities;
mod era_detection;
mod gating;
mod legacy_negotiation;
mod lifecycle;
mod modern_negotiation;
mod param_headers;
mod properties;
mod seed_0;
mod seed_1;
mod seed_2;
mod seed_3;
mod seed_4;
mod support;
