//! Many servers behind one address, seen as one.
//!
//! Every server has a [`Bridge`] of its own, which speaks its revision and knows its connections. A hub
//! decides which server a request is for, under which name the server knows the thing, and what a client
//! sees of all of them together. Read `hub/pump.rs` first: the order in which things happen.

mod changes;
mod departed;
mod errand;
mod fetch;
mod guest;
mod listen;
mod lists;
mod member;
mod merges;
mod own;
mod pump;
mod route;
mod slot;
mod state;
mod succession;
mod tasks;
mod unknown;
mod view;
mod watched;
mod welcome;
mod whose;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpact::error::Error;
use mcpact::server::backend::Sealer;
use mcpact::server::{SealKeys, Settings};
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Side;
use mcpact_wire::model::implementation::Implementation;

use self::changes::Changes;
use self::departed::Departed;
pub(crate) use self::guest::Guest;
use self::guest::Visitors;
use self::lists::Boards;
pub use self::member::Member;
use self::welcome::TermsBook;
use crate::aggregate::name_table::NameFormat;
use crate::aggregate::uri_table::MentionedUris;
use crate::drain::DrainGate;
use crate::filters::Filters;
use crate::metrics::Metrics;

/// What can be set about a hub.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// How its fronts are set.
    pub front: Settings,
    /// What stands between a server and the name of its thing.
    pub separator: String,
    /// How long a name may be.
    pub longest_name: usize,
    /// How long a client that comes waits for servers of which nothing is known.
    pub introduction_wait: Duration,
    /// How long a list waits for a server; it is told of those that come later.
    pub list_wait: Duration,
    /// How old the list of a server may be that does not tell of changes, before it is looked at again
    /// if that wakes nobody.
    pub list_age: Duration,
    /// Where it counts.
    pub metrics: Arc<Metrics>,
    /// Where its requests are counted.
    pub drain_gate: DrainGate,
    /// What looks at its requests and results.
    pub filters: Filters,
}

impl Default for HubSettings {
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
pub(crate) struct Roster {
    pub(crate) members: Vec<Arc<Member>>,
    /// The names of servers that are left out.
    absent: Arc<[Box<str>]>,
    style: Arc<NameFormat>,
    version: u64,
}

/// Many servers, seen as one.
#[derive(Debug)]
pub struct Hub {
    settings: HubSettings,
    /// The terms for whoever has not said anything yet.
    bare: Arc<ServerTerms>,
    roster: Mutex<Arc<Roster>>,
    /// The names of servers that are left out.
    absent: Mutex<Arc<[Box<str>]>>,
    versions: AtomicU64,
    terms: TermsBook,
    visitors: Mutex<Visitors>,
    boards: Boards,
    seen: Mutex<MentionedUris>,
    changes: Changes,
    sealer: Sealer,
    /// Those whose tasks may still be asked after.
    departed: Departed,
}

/// What clients are told of a server that is left out.
pub(crate) const ABSENT: &str = "its config is wrong, as `mcpact status` tells";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// These servers, seen as one.
    ///
    /// # Errors
    /// The operating system has no randomness.
    pub fn new(members: Vec<Arc<Member>>, settings: HubSettings) -> Result<Arc<Self>, Error> {
        let keys = settings.front.seal_keys.clone();
        let keys = keys.map_or_else(SealKeys::random, Ok)?;
        let nothing = CapabilitySet::empty(Side::Server);
        let policy = settings.front.policy.clone();
        let bare = ServerTerms::new(identity(), nothing, policy);
        let hub = Arc::new(Self {
            bare: Arc::new(bare),
            roster: Mutex::new(Arc::new(Roster {
                members: Vec::new(),
                absent: Arc::default(),
                style: Arc::default(),
                version: 0,
            })),
            absent: Mutex::default(),
            versions: AtomicU64::new(0),
            terms: TermsBook::default(),
            visitors: Mutex::default(),
            boards: Boards::default(),
            seen: Mutex::default(),
            changes: Changes::default(),
            sealer: Sealer::new(&keys),
            departed: Departed::default(),
            settings,
        });
        // Whoever has no servers yet is about to be told which; that is no change.
        if !members.is_empty() {
            hub.replace(members, &hub.settings.separator);
        }
        hub.watch();
        Ok(hub)
    }

    /// From here on these are the servers, and this stands between a server and the name of its thing;
    /// clients are told that everything may have changed, unless it is as it was.
    pub fn replace(self: &Arc<Self>, members: Vec<Arc<Member>>, separator: &str) {
        if self.is_made_of(&members, separator) {
            return;
        }
        for member in &members {
            member.belong_to(self);
        }
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let style = Arc::new(NameFormat {
            separator: Box::from(separator),
            max_len: self.settings.longest_name,
        });
        let roster = Arc::new(Roster {
            members,
            absent: lock(&self.absent).clone(),
            style,
            version,
        });
        let before = std::mem::replace(&mut *lock(&self.roster), Arc::clone(&roster));
        self.forget(&before, &roster);
        self.departed.note(&before, &roster);
        self.follow();
        if version > 1 {
            self.announce_all();
        }
    }

    /// Whether nothing would change if these were the servers.
    fn is_made_of(&self, members: &[Arc<Member>], separator: &str) -> bool {
        let now = self.roster();
        let is_same = |(one, other): (&Arc<Member>, &Arc<Member>)| Arc::ptr_eq(one, other);
        now.version > 0
            && *now.style.separator == *separator
            && now.absent == *lock(&self.absent)
            && now.members.len() == members.len()
            && now.members.iter().zip(members).all(is_same)
    }

    /// Clients are told that these servers are missing, from the next time on that servers are replaced.
    pub(crate) fn tell_absent<'a>(&self, names: impl Iterator<Item = &'a str>) {
        *lock(&self.absent) = names.map(Box::from).collect();
    }

    /// Where servers stood has another meaning now; names do not, where they are made as before.
    fn forget(&self, before: &Roster, now: &Roster) {
        let is_named_alike = before.style == now.style;
        let origins = is_named_alike.then(|| now.origins());
        // Whoever is naming things of the servers from before is done after this, and no other begins.
        self.boards.keep_names(&origins.unwrap_or_default());
        self.forget_merged();
        for guest in self.guests() {
            guest.own.stay_at(|number| now.place(number).is_some());
        }
        *lock(&self.seen) = MentionedUris::default();
    }

    /// What is made of lists is made anew.
    fn forget_merged(&self) {
        self.boards.clear();
        for guest in self.guests() {
            guest.own.merges.clear();
        }
    }

    fn roster(&self) -> Arc<Roster> {
        Arc::clone(&lock(&self.roster))
    }

    /// Whether these are the servers.
    fn is_current(&self, roster: &Roster) -> bool {
        lock(&self.roster).version == roster.version
    }
}

/// Who a hub is.
fn identity() -> Implementation {
    Implementation::new("mcpact", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients are not told of changes where there are none, nor of how everything began.
    #[tokio::test]
    async fn the_same_servers_again_are_no_change() {
        let hub = Hub::new(Vec::new(), HubSettings::default()).unwrap();
        let separator = hub.settings.separator.clone();
        hub.replace(Vec::new(), &separator);
        assert!(!hub.changes.are_pending());
        let version = hub.roster().version;
        hub.replace(Vec::new(), &separator);
        assert_eq!(hub.roster().version, version);
        assert!(!hub.changes.are_pending());
        hub.tell_absent(["lost"].into_iter());
        hub.replace(Vec::new(), &separator);
        assert_ne!(hub.roster().version, version, "another one is missing");
        assert!(hub.changes.are_pending());
    }
}
