//! The reserved keys of `_meta`.

/// The revision that a modern request speaks; its presence marks a request as modern.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities that the client declares for this one request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of the client; recommended, never required.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The lowest level of log messages wanted for this one request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Name and version of the server, on a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen request that a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Ties a message to a task of 2025-11-25.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The token under which the sender of a request wants progress.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The place in a trace that a request was sent from, as W3C Trace Context writes it.
pub const TRACE_PARENT: &str = "traceparent";
/// Vendor data for the same trace.
pub const TRACE_STATE: &str = "tracestate";
