//! `mcpact probe` and `mcpact doctor` against real servers, silent ones and wrong ones.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "probe/doctor.rs"]
mod doctor;
#[path = "probe/harness.rs"]
mod harness;
#[path = "probe/servers.rs"]
mod servers;
#[path = "probe/wrong.rs"]
mod wrong;
