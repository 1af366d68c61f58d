//! Gateway between MCP clients and servers of any revision over any transport.
//!
//! The server side of the `mcpact` library admits requests; an [`UpstreamServer`] forwards them to one server, and an
//! [`Aggregator`] serves many servers as one. A [`Gateway`] serves a configuration. `mcpact-translate` decides how messages
//! are translated; this crate owns connections, processes, queues and timeouts.
//!
//! Start with `pipeline.rs`, which forwards one request. `cargo xtask purity` checks the layers of the modules.

mod aggregate;
mod approval;
mod cache;
mod connect;
mod connection;
pub mod control;
mod downstream;
mod drain;
mod error;
mod event_history;
mod exchange;
mod filters;
mod gateway;
mod handover;
mod lists;
mod loop_detection;
mod meaning;
mod metrics;
mod pins;
mod pipeline;
mod reason;
mod result_limit;
mod retry;
mod subscriptions;
mod supervisor;
mod suspended;
mod sync;
mod target;
mod tasks;
mod upstream;

pub use aggregate::aggregator::{Aggregator, AggregatorSettings};
pub use aggregate::server_entry::{ServerEntry, ServerReport};
pub use cache::Cache;
pub use drain::DrainGate;
pub use error::UpstreamError;
pub use event_history::{EventHistory, LogEntry, LogEntryKind, ServerLog};
pub use filters::{FilterReport, Filters};
pub use gateway::{ConfigFile, Gateway, GatewayEnv, GatewayError, ReloadCause, stable_strings};
pub use loop_detection::start::{ParentConfigs, StartLoop};
pub use mcpact::connection::FailureText;
pub use metrics::{Metrics, ServerMetrics};
pub use pins::PinSettings;
pub use result_limit::KeptResults;
pub use supervisor::{
    InstanceId, InstanceState, InstanceStatus, ServerFailure, ServerState, ServerStatus,
    StartCause, StopCause,
};
pub use target::{Local, Target};
pub use upstream::{UpstreamServer, UpstreamSettings};
