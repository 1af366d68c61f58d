//! What the local log hears: negotiations, the life of processes, messages of servers, and no secrets.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod canary;
mod client;
mod life;
mod messages;
mod record;
mod server;
