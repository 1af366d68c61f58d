//! MCP servers: tools, resources and prompts for clients of every revision.
//!
//! Capabilities follow from what is registered. A handler is written once; whether its questions to the client become
//! legacy requests or modern results is decided per request.

pub mod backend;
mod backend_request;
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
mod outbox;
mod principal;
mod raw_params;
mod registry;
pub mod router;
mod seal;
mod serving;
mod session;
mod session_end;
mod settings;
mod sse_replay_log;
mod subscribers;
mod task_store;
mod tcp;
mod uri_template;

pub use builder::{BoundServer, NoArgs, Server};
pub use client_log::ClientLog;
pub use context::Context;
pub use folder::Folder;
pub use handler_error::HandlerError;
pub use input::Question;
pub use mcpact_engine::task_rule::TaskRequirement;
pub use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token};
pub use principal::PrincipalSource;
pub use registry::CompletionRequest;
pub use seal::SealKeys;
pub use settings::{DecisionObserver, Settings};
pub use tcp::LineListener;
