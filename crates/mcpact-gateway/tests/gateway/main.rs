//! A gateway with a catalog, on HTTP.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod apart;
mod claimed;
mod demands;
mod figures;
mod filter;
mod filtered;
mod parked;
mod paths;
mod place;
mod recovery;
mod reload;
mod tasks;
mod unseen;
