//! Pure negotiation engine: versions, capabilities, and the rules for every message.
//!
//! An offer meets a [`policy::Policy`] and becomes a [`pact::Pact`] or a [`refusal::Refusal`]; the
//! pact then rules on every message, in both directions, with a reason. The machines in [`server`]
//! and [`client`] walk a conversation from the first byte to the last.
//!
//! This crate cannot read a clock, open a socket, start a thread or draw a random number: time and
//! ids are arguments, and what is to be done is returned as effects. Read [`pact::Pact`] first,
//! then [`negotiate`], [`server::Server`] and [`client::Client`].

#![no_std]
#![deny(clippy::wildcard_enum_match_arm)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod capability;
pub mod classify;
pub mod client;
pub mod degrade;
pub mod effect;
pub mod gate;
pub mod lint;
pub mod negotiate;
pub mod negotiation;
pub mod outstanding;
pub mod pact;
pub mod policy;
pub mod reason;
pub mod refusal;
pub mod revisions;
pub mod sampling_rule;
pub mod server;
pub mod shutdown;
pub mod task_rule;
pub mod time;
pub mod transcript;
pub mod version;
