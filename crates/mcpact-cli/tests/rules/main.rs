//! What configs may do: with the real program, and real programs behind it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod answers;
mod approval;
mod commands;
mod confinement;
mod environment;
mod filters;
mod keys;
mod openings;
mod place;
