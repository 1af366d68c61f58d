//! Gateway with a catalog over HTTP.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod ambiguity;
mod client_state;
mod filter_metrics;
mod harness;
mod metrics;
mod ownership;
mod paths;
mod principals;
mod queued_calls;
mod recovery;
mod reload;
mod required_capabilities;
mod result_limit;
mod suspended_calls;
mod tasks;
mod tool_filter;
mod tool_search;
