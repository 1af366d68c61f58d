//! A gateway that runs, as people and service managers treat it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod agreed;
mod asked;
mod bundle;
mod circle;
mod contract;
mod drain;
mod gone;
mod house;
mod itself;
mod last_word;
mod lenient;
mod lineage;
mod reload;
mod secrets;
mod status;
mod stuck;
