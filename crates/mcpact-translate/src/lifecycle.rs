//! Declarations shown to each side about the other: capabilities, and the identity of the server.
//!
//! A gateway may declare to one side only what the other declared and
//! what it can deliver there. Read [`client_capabilities`] and [`server_capabilities`] first.

mod capabilities;
mod fingerprint;
mod introduction;

pub use capabilities::{
    Emulation, client_capabilities, server_capabilities, with_tasks, without_elicitation,
};
pub use fingerprint::{Fingerprint, canonical};
pub use introduction::Introduction;
