//! One list of one server, for those who are shown the same.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use mcpact_translate::input::Backoff;
use mcpact_translate::lifecycle::Fingerprint;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::aggregate::list_kind::ListKind;
use crate::downstream::client::DownstreamClient;
use crate::lists::scope::ListScope;
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::target::digest;

/// The pauses before a server is asked again for a list that did not come.
const PAUSES: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_secs(300),
};

/// Key of a list: clients with the same key see the same list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListKey {
    pub(crate) kind: ListKind,
    pub(crate) scope: ListScope,
    pub(crate) principal: Box<str>,
    /// None where it does not matter who asks.
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl ListKey {
    /// Returns the reader of the cached list, as a digest.
    pub(crate) fn reader(&self) -> Box<str> {
        let declared = self.fingerprint.as_ref().map(ToString::to_string);
        let declared = declared.as_deref().unwrap_or_default();
        let who = digest([self.principal.as_bytes(), declared.as_bytes()]);
        self.scope.reader(&who).into()
    }
}

/// One list of one server.
#[derive(Debug, Default)]
pub(crate) struct CacheEntry {
    held: Mutex<CacheState>,
    /// Counts finished fetches.
    fetched: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct CacheState {
    listing: Option<Arc<ServerList>>,
    basis: Option<ListVersion>,
    /// Start of the fetch in progress.
    fetching: Option<Instant>,
    /// True if a client was shown no list, or an outdated one.
    is_missed: bool,
    /// How often in a row it did not come, and until when it is not asked for again.
    rest: Option<(u32, Instant)>,
    /// Consecutive fetches that failed because the server was at capacity.
    crowded_out: u32,
    /// Client of the last request.
    patron: Weak<DownstreamClient>,
}

/// When a list was true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListVersion {
    /// How often it had changed.
    pub(crate) changes: u64,
    /// How often the server had woken up.
    pub(crate) wakes: u64,
    /// When that was; none if it was in an earlier run.
    pub(crate) when: Option<Instant>,
}

/// What there is of a list.
#[derive(Debug)]
pub(crate) enum Freshness {
    /// As good as new.
    Fresh(Arc<ServerList>),
    /// Valid before, and no change was reported since.
    Old(Arc<ServerList>),
    /// Nothing that could be shown without asking.
    Missing,
}

/// What a fetch has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchOutcome {
    /// Nothing that others would have to hear of.
    Nothing,
    /// Something to write down.
    Learned,
    /// Something else than was shown before, which the server has not told of.
    Changed,
}

impl CacheEntry {
    /// How many items it had when it was fetched last.
    pub(crate) fn count(&self) -> Option<usize> {
        let listing = self.held().listing.clone()?;
        Some(listing.count())
    }

    /// A list of an earlier run.
    pub(crate) fn recalled(listing: Arc<ServerList>, changes: u64) -> Self {
        let slot = Self::default();
        let mut held = slot.held();
        held.listing = Some(listing);
        held.basis = Some(ListVersion {
            changes,
            wakes: 0,
            when: None,
        });
        drop(held);
        slot
    }

    fn held(&self) -> MutexGuard<'_, CacheState> {
        lock(&self.held)
    }

    /// What there is, as things are now; `is_young` says for how long a list is as good as new.
    pub(crate) fn look(
        &self,
        now: ListVersion,
        is_young: impl FnOnce(Option<Instant>) -> bool,
    ) -> Freshness {
        let held = self.held();
        let (Some(listing), Some(basis)) = (held.listing.clone(), held.basis) else {
            return Freshness::Missing;
        };
        drop(held);
        if basis.changes != now.changes {
            return Freshness::Missing;
        }
        if basis.wakes == now.wakes && is_young(basis.when) {
            return Freshness::Fresh(listing);
        }
        Freshness::Old(listing)
    }

    /// Whether it was fetched when the server had woken up as often.
    pub(crate) fn is_of(&self, wakes: u64) -> bool {
        let basis = self.held().basis;
        basis.is_some_and(|basis| basis.wakes == wakes)
    }

    /// The list, whatever it is worth.
    pub(crate) fn listing(&self) -> Option<Arc<ServerList>> {
        self.held().listing.clone()
    }

    /// Returns the list unless a change was reported since.
    pub(crate) fn unchanged(&self, changes: u64) -> Option<Arc<ServerList>> {
        let held = self.held();
        held.basis.filter(|basis| basis.changes == changes)?;
        held.listing.clone()
    }

    /// Records the client of a request.
    pub(crate) fn wanted_by(&self, guest: &Arc<DownstreamClient>) {
        let mut held = self.held();
        if held.patron.as_ptr() != Arc::as_ptr(guest) {
            held.patron = Arc::downgrade(guest);
        }
    }

    /// Returns the client of the last request, if it still exists.
    pub(crate) fn patron(&self) -> Option<Arc<DownstreamClient>> {
        self.held().patron.upgrade()
    }

    /// Returns true if a client was shown no list, or an outdated one.
    pub(crate) fn is_missed(&self) -> bool {
        self.held().is_missed
    }

    /// Records that a client is shown no list, or an outdated one.
    pub(crate) fn miss(&self) {
        self.held().is_missed = true;
    }

    /// Tells when a fetch is done that is not done yet.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        let mut done = self.fetched.subscribe();
        done.mark_unchanged();
        done
    }

    /// Returns the start of the fetch in progress.
    pub(crate) fn fetching_since(&self) -> Option<Instant> {
        self.held().fetching
    }

    /// Whether it did not come when it was asked for last.
    pub(crate) fn was_late(&self) -> bool {
        self.held().rest.is_some()
    }

    /// It did not come, and is not asked for again for ever longer.
    pub(crate) fn rest(&self) {
        let mut held = self.held();
        let times = held.rest.map_or(0, |(times, _)| times);
        held.rest = Some((
            times.saturating_add(1),
            Instant::now() + PAUSES.pause(times),
        ));
    }

    /// Records that the server was at capacity; returns the number of consecutive earlier failures of that kind.
    pub(crate) fn found_no_room(&self) -> u32 {
        let mut held = self.held();
        let before = held.crowded_out;
        held.crowded_out = before.saturating_add(1);
        before
    }

    /// Whether it is ours to fetch.
    pub(crate) fn begin(&self) -> bool {
        let mut held = self.held();
        if held.is_resting() {
            return false;
        }
        let is_ours = held.fetching.is_none();
        held.fetching.get_or_insert_with(Instant::now);
        is_ours
    }

    /// Ends a fetch.
    pub(crate) fn end(&self, listing: Option<Arc<ServerList>>, basis: ListVersion) -> FetchOutcome {
        let mut held = self.held();
        held.fetching = None;
        let news = match listing {
            Some(listing) => held.take(listing, basis),
            None => FetchOutcome::Nothing,
        };
        drop(held);
        self.fetched.send_modify(|times| *times += 1);
        news
    }
}

impl CacheState {
    fn is_resting(&self) -> bool {
        self.rest.is_some_and(|(_, until)| Instant::now() < until)
    }

    fn take(&mut self, listing: Arc<ServerList>, basis: ListVersion) -> FetchOutcome {
        self.rest = None;
        self.crowded_out = 0;
        let was_missed = std::mem::take(&mut self.is_missed);
        let before = self.basis.replace(basis);
        if self.listing.as_ref().is_some_and(|l| l.is_same(&listing)) {
            return FetchOutcome::Learned;
        }
        let had_one = self.listing.replace(listing).is_some();
        let was_untold = before.is_some_and(|before| before.changes == basis.changes);
        if was_missed || (had_one && was_untold) {
            FetchOutcome::Changed
        } else {
            FetchOutcome::Learned
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::*;

    const NOW: ListVersion = ListVersion {
        changes: 1,
        wakes: 1,
        when: None,
    };

    fn listing(tool: &str) -> Arc<ServerList> {
        let page = format!(r#"{{"tools":[{{"name":"{tool}"}}],"nextCursor":null}}"#);
        let listing = ServerList::new(ListKind::Tools, Revision::V2026_07_28, vec![page.into()]);
        Arc::new(listing)
    }

    fn looked(slot: &CacheEntry, now: ListVersion, is_young: bool) -> &'static str {
        match slot.look(now, |_| is_young) {
            Freshness::Fresh(_) => "fresh",
            Freshness::Old(_) => "old",
            Freshness::Missing => "missing",
        }
    }

    /// What a list is worth, by what has happened since.
    #[test]
    fn what_a_list_is_worth() {
        let slot = CacheEntry::default();
        assert_eq!(looked(&slot, NOW, true), "missing");
        slot.end(Some(listing("a")), NOW);
        let changed = ListVersion { changes: 2, ..NOW };
        let woken = ListVersion { wakes: 2, ..NOW };
        for (now, is_young, expected) in [
            (NOW, true, "fresh"),
            (NOW, false, "old"),
            (woken, true, "old"),
            (changed, true, "missing"),
        ] {
            assert_eq!(looked(&slot, now, is_young), expected, "{now:?} {is_young}");
        }
        let recalled = CacheEntry::recalled(listing("a"), 0);
        let first = ListVersion {
            changes: 0,
            wakes: 0,
            when: None,
        };
        assert_eq!(looked(&recalled, first, false), "old");
    }

    /// Clients are notified of a list that differs from the one they were shown, unless the server reported the change,
    /// and of a list that was missing.
    #[test]
    fn what_is_told() {
        let slot = CacheEntry::default();
        assert_eq!(slot.end(Some(listing("a")), NOW), FetchOutcome::Learned);
        assert_eq!(slot.end(Some(listing("a")), NOW), FetchOutcome::Learned);
        assert_eq!(slot.end(Some(listing("b")), NOW), FetchOutcome::Changed);
        assert_eq!(slot.end(None, NOW), FetchOutcome::Nothing);
        let told = ListVersion { changes: 2, ..NOW };
        assert_eq!(slot.end(Some(listing("c")), told), FetchOutcome::Learned);
        let late = CacheEntry::default();
        late.miss();
        assert_eq!(late.end(Some(listing("a")), NOW), FetchOutcome::Changed);
        assert!(!late.is_missed());
    }
}
