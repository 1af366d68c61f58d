//! MCP servers: tools, resources and prompts for clients of every revision.
//!
//! Capabilities follow from what is registered. A handler is written once; whether its questions to the client become
//! legacy requests or modern results is decided per request.

pub mod backend;
mod builder;
mod client_identity;
mod client_log;
mod connection;
mod context;
mod date;
mod dispatch;
mod folder;
mod handler_error;
mod http;
mod input;
mod line_usage;
mod outbox;
mod raw_params;
mod registry;
pub mod router;
mod seal;
mod session;
mod skills;
mod sse_replay_log;
mod subscribers;
mod task_store;
mod uri_template;

pub use builder::LineListener;
pub use builder::{BoundServer, NoArgs, Server};
pub use builder::{DecisionObserver, Settings};
pub use client_identity::{Principal, PrincipalKind, PrincipalSource};
pub use client_log::ClientLog;
pub use context::Context;
pub use folder::Folder;
pub use handler_error::HandlerError;
pub use input::Question;
pub use mcpact_engine::task_rule::TaskRequirement;
pub use mcpact_transport::address::ListenAddress;
pub use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token};
pub use registry::CompletionRequest;
pub use seal::SealKeys;
pub use skills::Skill;
