//! The facts of the five revisions of the Model Context Protocol, as tables.
//!
//! This crate holds no behaviour: a method, a capability, a feature, a header and an error code is
//! a row, and a revision is a column. Every other crate asks these tables instead of comparing
//! version strings, so that a sixth revision is a sixth column.
//!
//! It may not allocate, decide or depend on anything. Read [`Revision`] first, then [`Method`] and
//! [`Capability`].

#![no_std]
#![deny(clippy::wildcard_enum_match_arm)]

mod era;
mod revision;
mod side;
mod strings;
pub mod tables;

pub use era::Era;
pub use revision::Revision;
pub use side::Side;
pub use tables::capabilities::{Capability, Presence, Shape};
pub use tables::errors::{ErrorCode, Site};
pub use tables::extensions::Extension;
pub use tables::features::Feature;
pub use tables::fields::{ContentKind, FieldRow, Object};
pub use tables::gates::{Gate, ParamGate, ParamProbe, Violation};
pub use tables::headers::{Header, HeaderRule};
pub use tables::keys::ProtocolKeys;
pub use tables::levels::LogLevel;
pub use tables::methods::{EraUse, Kind, Method, Role};
