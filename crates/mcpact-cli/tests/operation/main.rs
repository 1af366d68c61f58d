//! Operation of a running gateway: reload, drain, status, logs, loop detection.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod bundle;
mod contract;
mod drain;
mod elicitation;
mod harness;
mod lenient;
mod proxy_loop;
mod quiet;
mod reload;
mod secrets;
mod self_loop;
mod server_failure;
mod server_shutdown;
mod start_loop;
mod status;
mod tool_approval;
mod unresponsive;
