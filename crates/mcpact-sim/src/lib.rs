//! Peers of every revision on a virtual wire and clock, and a reference model: for tests only.
//!
//! [`pair::Pair`] connects the two machines of the engine and executes their effects step by step, without threads,
//! sockets or a real clock, within limits. [`model`] predicts the outcome from its own tables. [`trial`] compares the
//! two.
//!
//! [`scripted`] contains the clients and servers of integration tests, on real transports.
//!
//! This crate may use std and prints nothing. Read [`pair::Pair`] first, then [`model`] and [`trial::Trial`].

pub mod clock;
pub mod seed;
pub mod wire;

pub mod event;
pub mod pair;
pub mod peers;

pub mod model;

pub mod operations;
pub mod trial;

pub mod scripted;
