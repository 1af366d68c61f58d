//! Config files of mcpact and of other clients: parsing, expansion, validation, import, JSON Schema, command policy and
//! approvals.
//!
//! The text is parsed into a tree with source positions ([`Source`], `syntax`), and the tree is read into a [`Catalog`]
//! or a complete list of [`Problem`]s. Only `load`, [`LocalHost`] and [`ConfigWatcher`] touch the disk; everything else asks a
//! [`HostEnvironment`].
//!
//! Read [`keys`] first: it lists every key with its kind, default and description. Reader, JSON Schema and manual are
//! derived from it.

mod approvals;
mod config;
mod config_watcher;
mod edit;
mod expand;
mod fields;
mod foreign;
mod hosts;
pub mod import;
pub mod install;
pub mod keys;
mod launch;
mod load;
mod local_host;
mod name;
mod nearest;
mod policy;
mod policy_settings;
mod problem;
mod read;
mod schema;
mod secret;
mod source;
mod syntax;
mod tree;

use std::collections::BTreeMap;

pub use approvals::{
    Approval, ApprovalKind, ApprovalState, ApprovalSubject, Approvals, ExposingKey, PackagePin,
    UnpinnedPackage,
};
pub use config::{
    Change, ChangedTools, Changes, CommandLaunch, CommandRules, FilterConfig, GatewayConfig,
    Health, Launch, NameStyle, NamedToken, Probe, ProxyConfig, Restarts, RunSettings, ServerConfig,
    ShellRule, Stage, Strategy, ToolFilter, ToolListing, ToolMode, UrlLaunch,
};
pub use config_watcher::{ConfigDigest, ConfigWatcher};
pub use edit::{Edited, Entry, EntryChange, EntryValue, entry_names, remove_entry, set_entry};
pub use expand::{OnMissing, expand_text};
pub use hosts::{AllowHostsSource, host_problem, missing_host_warning, origin_problem};
pub use load::{
    CatalogError, LoadedConfig, inspect, load, load_with, nearest_config, outline,
    read_config_text, read_source,
};
pub(crate) use local_host::is_writable_by_all;
pub use local_host::{
    HostEnvironment, LocalHost, ProgramFacts, ProgramLookup, is_readable_by_all, read_small,
    readable_key_warning, user_id,
};
pub use name::{NameError, ServerName};
pub use nearest::{listed, nearest, shortened};
pub(crate) use policy::loads_code;
pub use policy_settings::{InvalidServers, PolicySettings};
pub use problem::{Problem, Severity};
pub use read::{ReadOutcome, read, read_with};
pub use schema::json_schema;
pub use secret::{EnvValue, ExpandedText, Secret, query_values, with_words};
pub use source::{Digest, Position, Source, Span, is_misleading};
pub use tree::{SharedIn, SharedValue};

/// A validated config.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Settings of the gateway.
    pub gateway: GatewayConfig,
    /// Servers by name, including disabled ones.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// Filter programs in the order in which they run.
    pub filters: Vec<FilterConfig>,
    /// Invalid servers that are left out, with the reason. Filled only if the gateway is lenient or the config belongs
    /// to another client.
    pub wrong: BTreeMap<ServerName, String>,
}
