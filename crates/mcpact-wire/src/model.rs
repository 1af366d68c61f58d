//! The few bodies that the protocol itself reads: the handshake and its modern replacement.

pub mod discover;
pub mod error;
pub mod fault;
pub mod implementation;
pub mod initialize;
