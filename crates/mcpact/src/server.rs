//! Serving tools, resources and prompts to clients of every revision.
//!
//! What is registered is what is declared. A handler is written once; whether its questions to the
//! client become requests of a legacy connection or results of a modern one is decided per request.

pub mod backend;
mod builder;
mod change;
mod client_log;
mod clock;
mod context;
mod date;
mod dispatch;
mod ending;
mod error;
mod event_log;
mod folder;
mod held;
mod http;
mod input;
mod job;
mod lines;
mod outbox;
mod principal;
mod raw_params;
mod registry;
mod seal;
mod session;
pub mod site;
mod task;
mod tcp;
mod uri_template;
mod visitor;
mod watch;

pub use builder::{Listening, NoArgs, Server, Settings};
pub use client_log::ClientLog;
pub use context::Context;
pub use error::HandlerError;
pub use folder::Folder;
pub use input::Question;
pub use mcpact_engine::task_rule::TaskRequirement;
pub use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token};
pub use principal::Principals;
pub use registry::CompletionRequest;
pub use seal::SealKeys;
pub use tcp::ListeningLines;
pub use watch::Watch;
