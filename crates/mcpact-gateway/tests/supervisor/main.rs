//! Supervision of real processes: start, sharing, limits, health checks and stop.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod failures;
mod fixture;
mod lifecycle;
mod sharing;
