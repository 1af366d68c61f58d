//! Upstream targets in this process.

use std::sync::Arc;

use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::serve;
use mcpact_spec::Revision;
use mcpact_transport::link::Link;

/// Target that connects to a new instance for every connection.
pub(crate) fn in_memory(connect: impl Fn() -> Link + Send + Sync + 'static) -> Target {
    Target::Local(Local(Arc::new(connect)))
}

/// Reference server with one revision.
pub(crate) fn everything(revision: Revision) -> Target {
    in_memory(move || serve(mcpact_everything::server(&[revision])))
}

/// Upstream server with default settings.
pub(crate) fn upstream(target: Target) -> Arc<UpstreamServer> {
    UpstreamServer::new(target, UpstreamSettings::default()).unwrap()
}
