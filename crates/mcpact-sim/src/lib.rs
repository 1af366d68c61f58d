//! Peers of every revision on a virtual wire and clock, and a reference model: for tests only.
//!
//! [`pair::Pair`] joins the engine's two machines and does what they ask for, step by step, without
//! a thread, a socket or a real clock, and never for longer than its limits. [`model`] says what
//! must come of it, from tables of its own. [`trial`] lets the two disagree.
//!
//! This crate may use std; it prints nothing and decides nothing for anybody. Read
//! [`pair::Pair`] first, then [`model`] and [`trial::Trial`].

pub mod clock;
pub mod seed;
pub mod wire;

pub mod event;
pub mod pair;
pub mod peers;

pub mod model;

pub mod operations;
pub mod trial;
