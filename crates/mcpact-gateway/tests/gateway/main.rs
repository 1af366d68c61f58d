//! A gateway with a catalog, on HTTP.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod demands;
mod figures;
mod filter;
mod paths;
mod place;
mod reload;
