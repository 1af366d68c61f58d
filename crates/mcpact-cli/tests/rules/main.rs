//! Config rules: approval, commands, environment, filters, limits.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod ambiguity;
mod answers;
mod approval;
mod commands;
mod confinement;
mod environment;
mod filters;
mod gateway_keys;
mod harness;
mod keys;
mod proxy;
mod sandbox;
