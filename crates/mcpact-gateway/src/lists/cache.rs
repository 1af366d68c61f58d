//! Cached lists of one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use mcpact_spec::Method;
use mcpact_translate::input::Backoff;
use mcpact_translate::lifecycle::Fingerprint;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::aggregate::list_kind::ListKind;
use crate::cache::ServerProfile;
use crate::cache::{CachedList, ServerCacheFile, ServerMetadata};
use crate::downstream::client::DownstreamClient;
use crate::lists::scope::ListScope;
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::target::digest;

/// Maximum number of cached lists per server; clients with the same key share them.
const MAX_LISTS: usize = 64;

/// Delays before a list is requested again from a server that did not answer.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_secs(300),
};

/// Key of a list: clients with the same key see the same list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListKey {
    pub(crate) kind: ListKind,
    pub(crate) scope: ListScope,
    pub(crate) principal: Box<str>,
    /// None if the list does not depend on the capabilities of the client.
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl ListKey {
    /// Returns the reader of the cached list, as a digest.
    fn reader(&self) -> Box<str> {
        let declared = self.fingerprint.as_ref().map(ToString::to_string);
        let declared = declared.as_deref().unwrap_or_default();
        let client = digest([self.principal.as_bytes(), declared.as_bytes()]);
        self.scope.reader(&client).into()
    }
}

/// Lists of one server, the counters that decide whether they are current, and their file.
#[derive(Debug)]
pub(crate) struct ListCache {
    entries: Mutex<HashMap<ListKey, Arc<CacheEntry>>>,
    /// Lists of the file that were not requested yet.
    stored: Mutex<Vec<CachedList>>,
    file: Option<ServerCacheFile>,
    changes: ChangeCounters,
    /// Number of starts of the server.
    starts: AtomicU64,
}

impl ListCache {
    /// Creates a cache with the lists of an earlier run.
    pub(crate) fn new(file: Option<ServerCacheFile>, stored: Vec<CachedList>) -> Self {
        Self {
            entries: Mutex::default(),
            stored: Mutex::new(stored),
            file,
            changes: ChangeCounters::default(),
            starts: AtomicU64::new(0),
        }
    }

    /// Returns the entry of a key; `restored` receives a list of an earlier run.
    pub(crate) fn entry(
        &self,
        key: ListKey,
        restored: impl FnOnce(&ServerList),
    ) -> Arc<CacheEntry> {
        let mut entries = lock(&self.entries);
        if let Some(entry) = entries.get(&key) {
            return Arc::clone(entry);
        }
        if entries.len() >= MAX_LISTS {
            entries.clear();
        }
        let entry = match self.take_stored(&key) {
            Some(list) => {
                restored(&list);
                CacheEntry::restored(Arc::new(list))
            }
            None => CacheEntry::default(),
        };
        let entry = Arc::new(entry);
        entries.insert(key, Arc::clone(&entry));
        entry
    }

    fn take_stored(&self, key: &ListKey) -> Option<ServerList> {
        let mut stored = lock(&self.stored);
        if stored.is_empty() {
            return None;
        }
        let reader = key.reader();
        let is_it = |list: &CachedList| list.kind == key.kind && list.reader == reader;
        let at = stored.iter().position(is_it)?;
        Some(ServerList::restored(&stored.swap_remove(at)))
    }

    /// Returns all entries.
    pub(crate) fn entries(&self) -> Vec<(ListKind, Arc<CacheEntry>)> {
        let entries = lock(&self.entries);
        let entries = entries.iter();
        entries
            .map(|(key, entry)| (key.kind, Arc::clone(entry)))
            .collect()
    }

    /// Returns the lists of this kind.
    fn lists(&self, kind: ListKind) -> impl Iterator<Item = Arc<ServerList>> {
        let entries = self.entries().into_iter();
        entries.filter_map(move |(of, entry)| entry.list().filter(|_| of == kind))
    }

    /// Returns true if there is a list of this kind.
    pub(crate) fn has(&self, kind: ListKind) -> bool {
        self.lists(kind).next().is_some()
    }

    /// Returns a list of another client with the same principal, as a fallback while the server does not answer.
    pub(crate) fn of_other_client(&self, key: &ListKey) -> Option<Arc<ServerList>> {
        let entries = lock(&self.entries);
        let mut others = entries.iter().filter(|(other, _)| {
            (other.kind, other.scope) == (key.kind, key.scope) && other.principal == key.principal
        });
        others.find_map(|(_, entry)| entry.list())
    }

    /// Returns the lists of this kind that differ from the shown one, of any client.
    pub(crate) fn others(
        &self,
        kind: ListKind,
        shown: Option<&Arc<ServerList>>,
    ) -> Vec<Arc<ServerList>> {
        let is_other = |list: &Arc<ServerList>| shown.is_none_or(|shown| !shown.is_same(list));
        self.lists(kind).filter(is_other).collect()
    }

    /// Returns the number of items of a list, if it is known.
    pub(crate) fn count(&self, kind: ListKind) -> Option<usize> {
        self.lists(kind).map(|list| list.count()).max()
    }

    /// Returns the version of a list that is fetched now.
    pub(crate) fn version(&self, kind: ListKind) -> ListVersion {
        ListVersion {
            changes: self.changes.get(kind),
            starts: self.starts.load(Ordering::Acquire),
            fetched: Some(Instant::now()),
        }
    }

    /// Records a notification of the server; returns false if it concerns no list.
    pub(crate) fn note_change(&self, method: Method) -> bool {
        self.changes.note(method)
    }

    /// Records a start of the server.
    pub(crate) fn note_start(&self) {
        self.starts.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the time since which a list is being fetched.
    pub(crate) fn fetching_since(&self) -> Option<Instant> {
        let entries = self.entries();
        let fetching = entries.iter();
        fetching
            .filter_map(|(_, entry)| entry.fetching_since())
            .min()
    }

    /// Writes the current lists and the profile of the server to the file.
    pub(crate) fn save(&self, profile: &ServerProfile) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let ticket = file.ticket();
        let entries = lock(&self.entries).clone();
        let current = entries.into_iter().filter_map(|(key, entry)| {
            let list = entry.unchanged(self.changes.get(key.kind))?;
            Some(list.stored(key.reader()))
        });
        let mut lists: Vec<_> = current.collect();
        let stored = lock(&self.stored);
        let is_current = |list: &&CachedList| self.changes.get(list.kind) == 0;
        lists.extend(stored.iter().filter(is_current).cloned());
        drop(stored);
        lists.sort_unstable_by(|one, other| {
            (one.kind, &one.reader).cmp(&(other.kind, &other.reader))
        });
        lists.truncate(MAX_LISTS);
        let record = ServerMetadata {
            profile: profile.clone(),
            lists,
        };
        tokio::task::spawn_blocking(move || file.write(ticket, &record));
    }
}

/// Number of reported changes of each list.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounters([AtomicU64; ListKind::ALL.len()]);

impl ChangeCounters {
    /// Counts a notification; returns false if it concerns no list.
    pub(crate) fn note(&self, method: Method) -> bool {
        let mut is_list = false;
        for kind in ListKind::ALL {
            if kind.changed() == method {
                is_list = true;
                self.0[kind as usize].fetch_add(1, Ordering::AcqRel);
            }
        }
        is_list
    }

    pub(crate) fn get(&self, kind: ListKind) -> u64 {
        self.0[kind as usize].load(Ordering::Acquire)
    }
}

/// One list of one server, fetched by one request at a time.
#[derive(Debug, Default)]
pub(crate) struct CacheEntry {
    state: Mutex<CacheState>,
    /// Number of finished fetches.
    fetches: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct CacheState {
    list: Option<Arc<ServerList>>,
    version: Option<ListVersion>,
    /// Start of the fetch in progress.
    fetching: Option<Instant>,
    /// True if a client was shown no list, or an outdated one.
    is_missed: bool,
    /// Number of consecutive timeouts, and the time before which the list is not requested again.
    retry: Option<(u32, Instant)>,
    /// Number of consecutive fetches that failed because the server was at capacity.
    busy: u32,
    /// Client of the last request, for which the list is refreshed.
    client: Weak<DownstreamClient>,
}

/// State of the server for which a list is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListVersion {
    /// Number of reported changes.
    pub(crate) changes: u64,
    /// Number of starts of the server; for an own list, its connection.
    pub(crate) starts: u64,
    /// Time of the fetch; none for a list of an earlier run.
    pub(crate) fetched: Option<Instant>,
}

/// Result of a lookup.
#[derive(Debug)]
pub(crate) enum Freshness {
    /// The list is current.
    Fresh(Arc<ServerList>),
    /// No change was reported, but the list may be outdated.
    Stale(Arc<ServerList>),
    /// There is no list, or it has changed.
    Missing,
}

/// Result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchOutcome {
    Failed,
    /// The list is the one that clients know, or the server reported the change.
    Fetched,
    /// Clients must be notified of a change that the server did not report.
    Changed,
}

impl CacheEntry {
    /// Creates an entry with a list of an earlier run.
    fn restored(list: Arc<ServerList>) -> Self {
        let state = CacheState {
            list: Some(list),
            version: Some(ListVersion {
                changes: 0,
                starts: 0,
                fetched: None,
            }),
            ..CacheState::default()
        };
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        lock(&self.state)
    }

    /// Looks up the list. `is_young` decides by the time of the fetch whether a list without reported changes is current.
    pub(crate) fn lookup(
        &self,
        now: ListVersion,
        is_young: impl FnOnce(Option<Instant>) -> bool,
    ) -> Freshness {
        let state = self.state();
        let (Some(list), Some(version)) = (state.list.clone(), state.version) else {
            return Freshness::Missing;
        };
        drop(state);
        if version.changes != now.changes {
            return Freshness::Missing;
        }
        if version.starts == now.starts && is_young(version.fetched) {
            return Freshness::Fresh(list);
        }
        Freshness::Stale(list)
    }

    /// Returns true if the list was fetched since this start of the server.
    pub(crate) fn is_of_start(&self, starts: u64) -> bool {
        let version = self.state().version;
        version.is_some_and(|version| version.starts == starts)
    }

    /// Returns the list, current or not.
    pub(crate) fn list(&self) -> Option<Arc<ServerList>> {
        self.state().list.clone()
    }

    /// Returns the list unless a change was reported since.
    pub(crate) fn unchanged(&self, changes: u64) -> Option<Arc<ServerList>> {
        let state = self.state();
        state.version.filter(|version| version.changes == changes)?;
        state.list.clone()
    }

    /// Records the client of a request.
    pub(crate) fn set_client(&self, client: &Arc<DownstreamClient>) {
        let mut state = self.state();
        if state.client.as_ptr() != Arc::as_ptr(client) {
            state.client = Arc::downgrade(client);
        }
    }

    /// Returns the client of the last request, if it still exists.
    pub(crate) fn client(&self) -> Option<Arc<DownstreamClient>> {
        self.state().client.upgrade()
    }

    /// Returns true if a client was shown no list, or an outdated one.
    pub(crate) fn is_missed(&self) -> bool {
        self.state().is_missed
    }

    /// Records that a client is shown no list, or an outdated one.
    pub(crate) fn note_miss(&self) {
        self.state().is_missed = true;
    }

    /// Subscribes to the end of fetches.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.fetches.subscribe()
    }

    /// Returns the start of the fetch in progress.
    pub(crate) fn fetching_since(&self) -> Option<Instant> {
        self.state().fetching
    }

    /// Returns true if the last fetch timed out.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.state().retry.is_some()
    }

    /// Records a timeout: the list is not requested again for a while.
    pub(crate) fn note_timeout(&self) {
        let mut state = self.state();
        let before = state.retry.map_or(0, |(timeouts, _)| timeouts);
        let until = Instant::now() + BACKOFF.pause(before);
        state.retry = Some((before.saturating_add(1), until));
    }

    /// Records that the server was at capacity; returns the number of consecutive earlier failures of that kind.
    pub(crate) fn note_busy(&self) -> u32 {
        let mut state = self.state();
        let before = state.busy;
        state.busy = before.saturating_add(1);
        before
    }

    /// Begins a fetch; returns false if one is in progress, or the list is not to be requested yet.
    pub(crate) fn begin_fetch(&self) -> bool {
        let mut state = self.state();
        let is_early = state.retry.is_some_and(|(_, until)| Instant::now() < until);
        if is_early || state.fetching.is_some() {
            return false;
        }
        state.fetching = Some(Instant::now());
        true
    }

    /// Ends a fetch.
    pub(crate) fn end_fetch(
        &self,
        list: Option<Arc<ServerList>>,
        version: ListVersion,
    ) -> FetchOutcome {
        let mut state = self.state();
        state.fetching = None;
        let outcome = match list {
            Some(list) => state.replace(list, version),
            None => FetchOutcome::Failed,
        };
        drop(state);
        self.fetches.send_modify(|fetches| *fetches += 1);
        outcome
    }
}

impl CacheState {
    fn replace(&mut self, list: Arc<ServerList>, version: ListVersion) -> FetchOutcome {
        self.retry = None;
        self.busy = 0;
        let was_missed = std::mem::take(&mut self.is_missed);
        let before = self.version.replace(version);
        if self.list.as_ref().is_some_and(|known| known.is_same(&list)) {
            return FetchOutcome::Fetched;
        }
        let had_one = self.list.replace(list).is_some();
        let was_unreported = before.is_some_and(|before| before.changes == version.changes);
        if was_missed || (had_one && was_unreported) {
            FetchOutcome::Changed
        } else {
            FetchOutcome::Fetched
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::*;

    const NOW: ListVersion = ListVersion {
        changes: 1,
        starts: 1,
        fetched: None,
    };

    fn list(tool: &str) -> Arc<ServerList> {
        let page = format!(r#"{{"tools":[{{"name":"{tool}"}}],"nextCursor":null}}"#);
        let list = ServerList::new(ListKind::Tools, Revision::V2026_07_28, vec![page.into()]);
        Arc::new(list)
    }

    fn lookup(entry: &CacheEntry, now: ListVersion, is_young: bool) -> &'static str {
        match entry.lookup(now, |_| is_young) {
            Freshness::Fresh(_) => "fresh",
            Freshness::Stale(_) => "stale",
            Freshness::Missing => "missing",
        }
    }

    #[test]
    fn freshness_depends_on_changes_starts_and_age() {
        let entry = CacheEntry::default();
        assert_eq!(lookup(&entry, NOW, true), "missing");
        entry.end_fetch(Some(list("a")), NOW);
        let changed = ListVersion { changes: 2, ..NOW };
        let restarted = ListVersion { starts: 2, ..NOW };
        for (now, is_young, expected) in [
            (NOW, true, "fresh"),
            (NOW, false, "stale"),
            (restarted, true, "stale"),
            (changed, true, "missing"),
        ] {
            assert_eq!(
                lookup(&entry, now, is_young),
                expected,
                "{now:?} {is_young}"
            );
        }
        let restored = CacheEntry::restored(list("a"));
        let first = ListVersion {
            changes: 0,
            starts: 0,
            fetched: None,
        };
        assert_eq!(lookup(&restored, first, false), "stale");
    }

    /// Clients are notified of a list that differs from the one they were shown, unless the server reported the change,
    /// and of a list that was missing.
    #[test]
    fn clients_are_notified_of_unreported_changes() {
        let entry = CacheEntry::default();
        assert_eq!(entry.end_fetch(Some(list("a")), NOW), FetchOutcome::Fetched);
        assert_eq!(entry.end_fetch(Some(list("a")), NOW), FetchOutcome::Fetched);
        assert_eq!(entry.end_fetch(Some(list("b")), NOW), FetchOutcome::Changed);
        assert_eq!(entry.end_fetch(None, NOW), FetchOutcome::Failed);
        let reported = ListVersion { changes: 2, ..NOW };
        assert_eq!(
            entry.end_fetch(Some(list("c")), reported),
            FetchOutcome::Fetched
        );
        let late = CacheEntry::default();
        late.note_miss();
        assert_eq!(late.end_fetch(Some(list("a")), NOW), FetchOutcome::Changed);
        assert!(!late.is_missed());
    }
}
