//! Stands between clients and servers: any revision, any carrier, in both directions.
//!
//! The fronts of the library admit what a client sends; a bridge serves it by asking an upstream server
//! of whatever revision. What crosses, and in which shape, is decided by `mcpact-translate`; this crate
//! moves messages, keeps connections and waits.
//!
//! Read [`Bridge`] first, then `bridge/pump.rs`: one request on its way up and its answer on its way
//! back, from top to bottom. [`Hub`] shows many servers as one.

mod aggregate;
mod approval;
mod bridge;
mod cache;
mod chronicle;
mod circle;
pub mod control;
mod error;
mod figures;
mod filters;
mod gateway;
mod hub;
mod lineage;
mod pins;
mod retry;
mod stable;
mod supervisor;
mod target;
mod turnstile;
mod upstream;

pub use bridge::{Bridge, BridgeSettings};
pub use cache::Cache;
pub use chronicle::{Chronicle, Entry, EntryKind, Journal};
pub use error::{FailureText, UpstreamError};
pub use figures::{Figures, ServerFigures};
pub use filters::{FilterReport, Filters};
pub use gateway::{ConfigFile, Gateway, GatewayError, ReloadCause, ServerReport, Surroundings};
pub use hub::{Hub, HubSettings, Member};
pub use lineage::{Descent, Lineage};
pub use pins::PinSettings;
pub use stable::stable_strings;
pub use supervisor::{
    InstanceId, InstanceState, InstanceStatus, Mishap, ServerState, ServerStatus, StartCause,
    StopCause,
};
pub use target::{Local, Target};
pub use turnstile::Turnstile;
