//! Pure translation between two revisions, one file per difference.
//!
//! A message that was admitted on one side may have to change before the other side understands
//! it. This crate changes only the members that its files name; all other bytes stay as they are.
//!
//! It cannot open connections, assign ids or read a clock: it takes them as arguments. Read [`plan`]
//! first, the fate of a message; then [`shape`], the form of results, parameters and errors,
//! [`lifecycle`], the declarations shown to each side, and [`input`], the questions of a server.

#![no_std]
#![deny(clippy::wildcard_enum_match_arm)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cursor;
pub mod input;
pub mod lifecycle;
pub mod listen;
pub mod logging;
pub mod plan;
pub mod progress;
pub mod shape;
pub mod tasks;
mod wire_error;
