//! Many servers behind one address, seen as one.
//!
//! Every server has a [`UpstreamServer`] of its own, which speaks its revision and knows its connections. A aggregator
//! decides which server a request is for, under which name the server knows the thing, and what a client
//! sees of all of them together. Read `aggregator/pump.rs` first: the order in which things happen.

use crate::handover::subscriptions;
use crate::lists::own;
use crate::lists::refresh;
use crate::subscriptions::list_changes;
use crate::sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::error::Error;
use mcpact::server::backend::Sealer;
use mcpact::server::{SealKeys, Settings};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Side;
use mcpact_wire::model::implementation::Implementation;

use crate::aggregate::name_table::NameFormat;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::terms::TermsCache;
use crate::aggregate::uri_table::MentionedUris;
use crate::downstream::client::ModernClients;
use crate::drain::DrainGate;
use crate::filters::Filters;
use crate::handover::removed::RemovedServers;
use crate::lists::merge::SharedMerges;
use crate::metrics::Metrics;
use crate::subscriptions::list_changes::ListChanges;

/// What can be set about a aggregator.
#[derive(Clone, Debug)]
pub struct AggregatorSettings {
    /// How its fronts are set.
    pub front: Settings,
    /// What stands between a server and the name of its thing.
    pub separator: String,
    /// How long a name may be.
    pub longest_name: usize,
    /// How long a client that comes waits for servers of which nothing is known.
    pub introduction_wait: Duration,
    /// Maximum wait of a list request for one server; clients are notified of later lists.
    pub list_wait: Duration,
    /// Age at which the list of a server without change notifications is refreshed, if the server is running.
    pub list_age: Duration,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where its requests are counted.
    pub drain_gate: DrainGate,
    /// What looks at its requests and results.
    pub filters: Filters,
}

impl Default for AggregatorSettings {
    fn default() -> Self {
        let style = NameFormat::default();
        Self {
            front: Settings::default(),
            separator: String::from(style.separator),
            longest_name: style.max_len,
            introduction_wait: Duration::from_secs(5),
            list_wait: Duration::from_secs(10),
            list_age: Duration::from_secs(60),
            metrics: Arc::default(),
            drain_gate: DrainGate::default(),
            filters: Filters::default(),
        }
    }
}

/// The servers of one moment, in the order of the configuration.
#[derive(Debug)]
pub(crate) struct ServerSet {
    pub(crate) entries: Vec<Arc<ServerEntry>>,
    /// The names of servers that are left out.
    pub(crate) absent: Arc<[Box<str>]>,
    pub(crate) style: Arc<NameFormat>,
    pub(crate) version: u64,
}

/// Many servers, seen as one.
#[derive(Debug)]
pub struct Aggregator {
    pub(crate) settings: AggregatorSettings,
    /// Terms for clients without a handshake.
    pub(crate) bare: Arc<ServerTerms>,
    pub(crate) server_set: Mutex<Arc<ServerSet>>,
    /// The names of servers that are left out.
    pub(crate) absent: Mutex<Arc<[Box<str>]>>,
    pub(crate) versions: AtomicU64,
    pub(crate) terms: TermsCache,
    pub(crate) visitors: Mutex<ModernClients>,
    pub(crate) merges: SharedMerges,
    pub(crate) seen: Mutex<MentionedUris>,
    pub(crate) changes: ListChanges,
    pub(crate) sealer: Sealer,
    /// Removed servers with tasks that clients may still query.
    pub(crate) departed: RemovedServers,
}

/// Error of a server with an invalid configuration.
pub(crate) const ABSENT: &str = "its config is wrong, as `mcpact status` tells";

impl Aggregator {
    /// These servers, seen as one.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn new(
        entries: Vec<Arc<ServerEntry>>,
        settings: AggregatorSettings,
    ) -> Result<Arc<Self>, Error> {
        let keys = settings.front.seal_keys.clone();
        let keys = keys.map_or_else(SealKeys::random, Ok)?;
        let nothing = CapabilitySet::empty(Side::Server);
        let policy = settings.front.policy.clone();
        let bare = ServerTerms::new(identity(), nothing, policy);
        let aggregator = Arc::new(Self {
            bare: Arc::new(bare),
            server_set: Mutex::new(Arc::new(ServerSet {
                entries: Vec::new(),
                absent: Arc::default(),
                style: Arc::default(),
                version: 0,
            })),
            absent: Mutex::default(),
            versions: AtomicU64::new(0),
            terms: TermsCache::default(),
            visitors: Mutex::default(),
            merges: SharedMerges::default(),
            seen: Mutex::default(),
            changes: ListChanges::default(),
            sealer: Sealer::new(&keys),
            departed: RemovedServers::default(),
            settings,
        });
        // The first set of servers is not a change.
        if !entries.is_empty() {
            aggregator.replace(entries, &aggregator.settings.separator);
        }
        refresh::watch(&aggregator);
        Ok(aggregator)
    }

    /// Replaces the servers and the separator of public names; notifies clients that all lists may have changed, unless
    /// nothing changes.
    pub fn replace(self: &Arc<Self>, entries: Vec<Arc<ServerEntry>>, separator: &str) {
        if self.is_made_of(&entries, separator) {
            return;
        }
        for entry in &entries {
            entry.belong_to(self);
        }
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let style = Arc::new(NameFormat {
            separator: Box::from(separator),
            max_len: self.settings.longest_name,
        });
        let server_set = Arc::new(ServerSet {
            entries,
            absent: lock(&self.absent).clone(),
            style,
            version,
        });
        let before = std::mem::replace(&mut *lock(&self.server_set), Arc::clone(&server_set));
        self.forget(&before, &server_set);
        self.departed.note(&before, &server_set);
        subscriptions::follow(self);
        if version > 1 {
            list_changes::announce_all(self);
        }
    }

    /// Whether nothing would change if these were the servers.
    pub(crate) fn is_made_of(&self, entries: &[Arc<ServerEntry>], separator: &str) -> bool {
        let now = self.server_set();
        let is_same =
            |(one, other): (&Arc<ServerEntry>, &Arc<ServerEntry>)| Arc::ptr_eq(one, other);
        now.version > 0
            && *now.style.separator == *separator
            && now.absent == *lock(&self.absent)
            && now.entries.len() == entries.len()
            && now.entries.iter().zip(entries).all(is_same)
    }

    /// Sets the servers that are reported as missing after the next replacement.
    pub(crate) fn tell_absent<'a>(&self, names: impl Iterator<Item = &'a str>) {
        *lock(&self.absent) = names.map(Box::from).collect();
    }

    /// Where servers stood has another meaning now; names do not, where they are made as before.
    pub(crate) fn forget(&self, before: &ServerSet, now: &ServerSet) {
        let is_named_alike = before.style == now.style;
        let origins = is_named_alike.then(|| now.origins());
        // Waits for names of the previous servers that are being assigned; later assignments see the new servers.
        self.merges.keep_names(&origins.unwrap_or_default());
        self.forget_merged();
        for guest in own::guests(self) {
            guest.own.stay_at(|number| now.place(number).is_some());
        }
        *lock(&self.seen) = MentionedUris::default();
    }

    /// Discards all merged lists.
    pub(crate) fn forget_merged(&self) {
        self.merges.shared.clear();
        for guest in own::guests(self) {
            guest.own.merges.clear();
        }
    }

    pub(crate) fn server_set(&self) -> Arc<ServerSet> {
        Arc::clone(&lock(&self.server_set))
    }

    /// Whether these are the servers.
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

    /// Clients are not told of changes where there are none, nor of how everything began.
    #[tokio::test]
    pub(crate) async fn the_same_servers_again_are_no_change() {
        let aggregator = Aggregator::new(Vec::new(), AggregatorSettings::default()).unwrap();
        let separator = aggregator.settings.separator.clone();
        aggregator.replace(Vec::new(), &separator);
        assert!(!aggregator.changes.are_pending());
        let version = aggregator.server_set().version;
        aggregator.replace(Vec::new(), &separator);
        assert_eq!(aggregator.server_set().version, version);
        assert!(!aggregator.changes.are_pending());
        aggregator.tell_absent(["lost"].into_iter());
        aggregator.replace(Vec::new(), &separator);
        assert_ne!(
            aggregator.server_set().version,
            version,
            "another one is missing"
        );
        assert!(aggregator.changes.are_pending());
    }
}
