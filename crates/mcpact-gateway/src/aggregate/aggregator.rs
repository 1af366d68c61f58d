//! Aggregator: many servers behind one URL, seen as one.
//!
//! Each server has an `UpstreamServer` with its connections. The aggregator routes requests, maps names and URIs, and
//! merges lists. `aggregate/dispatch.rs` has the order of the steps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::error::Error;
use mcpact::server::backend::Sealer;
use mcpact::server::{SealKeys, Settings};
use mcpact_config::{ToolListing, ToolMode};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Side;
use mcpact_wire::model::implementation::Implementation;

use crate::aggregate::gateway_tools;
use crate::aggregate::name_table::NameFormat;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::terms::TermsCache;
use crate::aggregate::uri_table::MentionedUris;
use crate::downstream::client::ModernClients;
use crate::drain::DrainGate;
use crate::filters::Filters;
use crate::handover::removed::RemovedServers;
use crate::handover::subscriptions;
use crate::lists::merged::SharedMerges;
use crate::lists::{own, refresh};
use crate::metrics::Metrics;
use crate::result_limit::KeptResults;
use crate::subscriptions::list_changes::{self, ListChanges};
use crate::sync::lock;

/// Settings of an aggregator.
#[derive(Clone, Debug)]
pub struct AggregatorSettings {
    /// Settings of the MCP server towards clients.
    pub front: Settings,
    /// Separator of prefix and name in public names.
    pub separator: String,
    /// Tools that clients are shown.
    pub tools: ToolListing,
    /// Maximum length of public names.
    pub longest_name: usize,
    /// Maximum wait of a new client for unknown servers.
    pub introduction_wait: Duration,
    /// Maximum wait of a list request for one server; clients are notified of later lists.
    pub list_wait: Duration,
    /// Age at which the list of a server without change notifications is refreshed, if the server is running.
    pub list_age: Duration,
    /// Metrics of requests.
    pub metrics: Arc<Metrics>,
    /// Gate that admits requests until shutdown.
    pub drain_gate: DrainGate,
    /// Filters for requests and results.
    pub filters: Filters,
    /// Texts of cut results.
    pub kept_results: KeptResults,
}

impl Default for AggregatorSettings {
    fn default() -> Self {
        let style = NameFormat::default();
        Self {
            front: Settings::default(),
            separator: String::from(style.separator),
            tools: ToolListing::default(),
            longest_name: style.max_len,
            introduction_wait: Duration::from_secs(5),
            list_wait: Duration::from_secs(10),
            list_age: Duration::from_secs(60),
            metrics: Arc::default(),
            drain_gate: DrainGate::default(),
            filters: Filters::default(),
            kept_results: KeptResults::default(),
        }
    }
}

/// Servers of an aggregator at one time, in the order of the configuration.
#[derive(Debug, Default)]
pub(crate) struct ServerSet {
    pub(crate) entries: Vec<Arc<ServerEntry>>,
    /// Names of the servers with an invalid configuration.
    pub(crate) absent: Arc<[Box<str>]>,
    pub(crate) style: Arc<NameFormat>,
    pub(crate) version: u64,
}

/// Aggregator of many servers.
#[derive(Debug)]
pub struct Aggregator {
    pub(crate) settings: AggregatorSettings,
    /// Terms for clients without a handshake.
    pub(crate) base_terms: Arc<ServerTerms>,
    server_set: Mutex<Arc<ServerSet>>,
    /// Names of the servers with an invalid configuration, for the next server set.
    absent: Mutex<Arc<[Box<str>]>>,
    pub(crate) terms: TermsCache,
    pub(crate) modern_clients: Mutex<ModernClients>,
    pub(crate) merges: SharedMerges,
    pub(crate) mentioned: Mutex<MentionedUris>,
    pub(crate) changes: ListChanges,
    pub(crate) sealer: Sealer,
    /// Removed servers with tasks that clients may still query.
    pub(crate) removed: RemovedServers,
}

/// Error of a server with an invalid configuration.
pub(crate) const ABSENT: &str = "its config is invalid; run `mcpact status` for the cause";

impl Aggregator {
    /// Creates an aggregator of these servers.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub fn new(
        entries: Vec<Arc<ServerEntry>>,
        settings: AggregatorSettings,
    ) -> Result<Arc<Self>, Error> {
        let keys = settings.front.seal_keys.clone();
        let keys = keys.map_or_else(SealKeys::random, Ok)?;
        let nothing = CapabilitySet::empty(Side::Server);
        let policy = settings.front.policy.clone();
        let base_terms = ServerTerms::new(identity(), nothing, policy);
        let reserved: &[&str] = match settings.tools.mode {
            ToolMode::All => &[],
            ToolMode::Search => &gateway_tools::NAMES,
        };
        let aggregator = Arc::new(Self {
            base_terms: Arc::new(base_terms),
            server_set: Mutex::default(),
            absent: Mutex::default(),
            terms: TermsCache::default(),
            modern_clients: Mutex::default(),
            merges: SharedMerges::without(reserved),
            mentioned: Mutex::default(),
            changes: ListChanges::default(),
            sealer: Sealer::new(&keys),
            removed: RemovedServers::default(),
            settings,
        });
        // The first server set is not a change.
        if !entries.is_empty() {
            aggregator.replace(entries, &aggregator.settings.separator);
        }
        refresh::poll(&aggregator);
        Ok(aggregator)
    }

    /// Replaces the servers and the separator of public names; notifies clients that all lists may have changed, unless
    /// nothing changes.
    pub fn replace(self: &Arc<Self>, entries: Vec<Arc<ServerEntry>>, separator: &str) {
        if self.is_unchanged(&entries, separator) {
            return;
        }
        for entry in &entries {
            entry.join(self);
        }
        let style = Arc::new(NameFormat {
            separator: Box::from(separator),
            max_len: self.settings.longest_name,
        });
        let absent = lock(&self.absent).clone();
        let mut current = lock(&self.server_set);
        let server_set = Arc::new(ServerSet {
            entries,
            absent,
            style,
            version: current.version + 1,
        });
        let before = std::mem::replace(&mut *current, Arc::clone(&server_set));
        drop(current);
        self.release_names(&before, &server_set);
        self.removed.note(&before, &server_set);
        subscriptions::follow(self);
        if before.version > 0 {
            list_changes::announce_all(self);
        }
    }

    /// Returns true if a replacement by these servers changes nothing.
    fn is_unchanged(&self, entries: &[Arc<ServerEntry>], separator: &str) -> bool {
        let now = self.server_set();
        let present = now.entries.iter().map(Arc::as_ptr);
        now.version > 0
            && *now.style.separator == *separator
            && now.absent == *lock(&self.absent)
            && present.eq(entries.iter().map(Arc::as_ptr))
    }

    /// Sets the servers that are reported as missing after the next replacement.
    pub(crate) fn set_absent<'a>(&self, names: impl Iterator<Item = &'a str>) {
        *lock(&self.absent) = names.map(Box::from).collect();
    }

    /// Releases the names of removed servers, or all names if their format has changed, and discards the merged lists.
    fn release_names(&self, before: &ServerSet, now: &ServerSet) {
        let has_same_format = before.style == now.style;
        let origins = has_same_format.then(|| now.origins());
        // Waits for names of the previous servers that are being assigned; later assignments see the new servers.
        self.merges.keep_names(&origins.unwrap_or_default());
        self.clear_merges();
        let is_present = |number| now.position(number).is_some();
        for client in own::clients(self) {
            client.own_lists.retain(is_present);
        }
        *lock(&self.mentioned) = MentionedUris::default();
    }

    /// Discards all merged lists.
    pub(crate) fn clear_merges(&self) {
        self.merges.shared.clear();
        for client in own::clients(self) {
            client.own_lists.merges.clear();
        }
    }

    pub(crate) fn server_set(&self) -> Arc<ServerSet> {
        Arc::clone(&lock(&self.server_set))
    }

    /// Returns true unless the servers were replaced.
    pub(crate) fn is_current(&self, server_set: &ServerSet) -> bool {
        lock(&self.server_set).version == server_set.version
    }
}

/// Returns the name and version of the gateway.
pub(crate) fn identity() -> Implementation {
    Implementation::new("mcpact", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients are notified of replaced servers, but not of the first server set.
    #[tokio::test]
    async fn the_same_servers_again_are_no_change() {
        let aggregator = Aggregator::new(Vec::new(), AggregatorSettings::default()).unwrap();
        let separator = aggregator.settings.separator.clone();
        aggregator.replace(Vec::new(), &separator);
        assert!(!aggregator.changes.are_pending());
        let version = aggregator.server_set().version;
        aggregator.replace(Vec::new(), &separator);
        assert_eq!(aggregator.server_set().version, version);
        assert!(!aggregator.changes.are_pending());
        aggregator.set_absent(["lost"].into_iter());
        aggregator.replace(Vec::new(), &separator);
        assert_ne!(
            aggregator.server_set().version,
            version,
            "another one is missing"
        );
        assert!(aggregator.changes.are_pending());
    }
}
