//! Bytes and messages: frames, the JSON-RPC envelope and the two era codecs.
//!
//! A message is scanned once. The scan checks that the bytes are one well-formed JSON value and
//! notes where the few members stand that the protocol itself reads; everything else stays raw and
//! leaves byte-identical.
//!
//! This crate may look at the shape of a message, never decide what it means. Read
//! [`envelope::Envelope`] first, then [`raw::Object`] and [`codec`].

#![no_std]
#![deny(clippy::wildcard_enum_match_arm)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ambiguity;
pub mod batch;
pub mod codec;
pub mod envelope;
pub mod frame;
pub mod header_value;
pub mod id;
pub mod layout;
pub mod model;
pub mod raw;
pub mod scan;
pub mod tree;
