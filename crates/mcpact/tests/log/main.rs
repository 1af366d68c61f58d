//! Log tests: negotiations, process lifecycle, messages of servers, and no secrets.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod canary;
mod client;
mod messages;
mod process;
mod record;
mod server;
