//! The few bodies that the protocol itself reads: the handshake, its modern replacement, errors and traces.

pub mod discover;
pub mod error;
pub mod fault;
pub mod implementation;
pub mod initialize;
pub mod trace;
