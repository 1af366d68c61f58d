//! Real processes behind a bridge: when they are started, shared, limited, watched and stopped.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod crowd;
mod faults;
mod house;
mod life;
