//! Config files of mcpact and of other clients: parsing, expansion, checks, import, JSON Schema, command policy and approvals.
//!
//! A text becomes a tree that remembers where everything stands ([`Source`], `syntax`), the tree a
//! [`Catalog`] or a list of every [`Problem`] in it. Nothing but `load`
//! and [`Machine`] touches the disk: what the machine has is asked from [`Surroundings`]. Read [`keys`] first: every key with its kind,
//! its default and what it does; reader, JSON Schema and manual follow from it.

mod adopt;
mod approvals;
mod changes;
mod config;
mod expand;
mod fields;
mod filter;
mod hosts;
pub mod import;
mod itself;
pub mod keys;
mod launch;
mod load;
mod loaders;
mod machine;
mod name;
mod nearest;
mod negotiation;
mod opening;
mod policy;
mod problem;
mod read;
mod schema;
mod secret;
mod sent;
mod source;
mod surroundings;
mod syntax;
mod tree;

use std::collections::BTreeMap;

pub use approvals::{Approval, Approvals, Deed, DeedKind};
pub use changes::{Change, Changes};
pub use config::{
    ChangedTools, CommandLaunch, CommandRules, GatewayConfig, Health, Launch, NameStyle, Probe,
    Restarts, RunSettings, ServerConfig, ShellRule, Strategy, ToolFilter, UrlLaunch,
};
pub use expand::{OnMissing, fill};
pub use filter::{FilterConfig, Stage};
pub use hosts::{HostsGiven, host_remedy, is_host, namelessness, origin_fault};
pub use load::{CatalogError, Loaded, inspect, load, nearest_config, read_source};
pub(crate) use loaders::loads_code;
pub(crate) use machine::is_writable_by_all;
pub use machine::{Machine, read_small};
pub use name::{NameFault, ServerName};
pub use nearest::{listed, nearest, shortened};
pub use opening::Opening;
pub use problem::{Problem, Severity};
pub use read::{Reading, read};
pub use schema::json_schema;
pub use secret::{Filled, Secret, query_values, with_words};
pub use sent::{Sent, SentIn};
pub use source::{Digest, Place, Source, Span};
pub use surroundings::{ProgramFacts, Sought, Surroundings};

/// Everything that was configured, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// The gateway itself.
    pub gateway: GatewayConfig,
    /// The servers, by name; those that are switched off, too.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// The programs that look at requests and results, in the order in which they are asked.
    pub filters: Vec<FilterConfig>,
    /// The servers that are wrong, and how; only a lenient gateway goes without them, and with the config of
    /// another client.
    pub wrong: BTreeMap<ServerName, String>,
}
