//! Aggregation: many servers as one MCP server.
//!
//! Merges lists, capabilities and instructions of servers, and maps public names and URIs to servers and back.

pub(crate) mod aggregator;
pub(crate) mod capabilities;
pub(crate) mod dispatch;
pub(crate) mod gateway_tools;
pub(crate) mod instructions;
pub(crate) mod list_defects;
pub(crate) mod list_kind;
pub(crate) mod merge;
pub(crate) mod name_registry;
pub(crate) mod name_table;
pub(crate) mod not_found;
pub(crate) mod rewrite;
pub(crate) mod rewriter;
pub(crate) mod route;
pub(crate) mod sealed_state;
pub(crate) mod server_entry;
pub(crate) mod task_ids;
pub(crate) mod terms;
pub(crate) mod tool_search;
pub(crate) mod uri_table;
