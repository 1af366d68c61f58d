//! Cached lists of one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpact_spec::Method;
use mcpact_translate::lifecycle::Fingerprint;
use tokio::time::Instant;

use crate::aggregate::list_kind::ListKind;
use crate::cache::{CachedList, ServerCacheFile, ServerMetadata, ServerProfile};
use crate::lists::cache_entry::{CacheEntry, ListVersion};
use crate::lists::scope::ListScope;
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::target::digest;

/// Maximum number of cached lists per server; clients with the same key share them.
const MAX_LISTS: usize = 64;

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
#[derive(Debug, Default)]
pub(crate) struct ListCache {
    entries: Mutex<HashMap<ListKey, Arc<CacheEntry>>>,
    /// Lists of the file that were not requested yet.
    stored: Mutex<Vec<CachedList>>,
    file: Option<ServerCacheFile>,
    pub(crate) changes: ChangeCounters,
    /// Number of starts of the server.
    starts: AtomicU64,
}

impl ListCache {
    /// Creates a cache with the lists of an earlier run.
    pub(crate) fn new(file: Option<ServerCacheFile>, stored: Vec<CachedList>) -> Self {
        Self {
            stored: Mutex::new(stored),
            file,
            ..Self::default()
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
        let stored = self.take_stored(&key).map(|list| {
            restored(&list);
            CacheEntry::restored(Arc::new(list))
        });
        let entry = Arc::new(stored.unwrap_or_default());
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
        let entries = entries.map(|(key, entry)| (key.kind, Arc::clone(entry)));
        entries.collect()
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
    pub(crate) fn of_other_client(
        &self,
        kind: ListKind,
        scope: ListScope,
        principal: &str,
    ) -> Option<Arc<ServerList>> {
        let entries = lock(&self.entries);
        let mut others = entries.iter().filter(|(key, _)| {
            (key.kind, key.scope) == (kind, scope) && *key.principal == *principal
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

    /// Returns the names of the items of the longest list, if one is known.
    pub(crate) fn names(&self, kind: ListKind) -> Option<Vec<String>> {
        let longest = self.lists(kind).max_by_key(|list| list.count());
        Some(longest?.names())
    }

    /// Returns the version of a list that is fetched now.
    pub(crate) fn version(&self, kind: ListKind) -> ListVersion {
        ListVersion {
            changes: self.changes.get(kind),
            starts: self.starts.load(Ordering::Acquire),
            fetched: Some(Instant::now()),
        }
    }

    /// Records a start of the server.
    pub(crate) fn note_start(&self) {
        self.starts.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the time since which a list is being fetched.
    pub(crate) fn fetching_since(&self) -> Option<Instant> {
        let entries = self.entries().into_iter();
        let fetching = entries.filter_map(|(_, entry)| entry.fetching_since());
        fetching.min()
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
        file.write_later(record, ticket);
    }
}

/// Number of reported changes of each list.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounters([AtomicU64; ListKind::ALL.len()]);

impl ChangeCounters {
    /// Counts a notification; returns false if it concerns no list.
    pub(crate) fn note(&self, method: Method) -> bool {
        let changed = ListKind::ALL.into_iter();
        for kind in changed.filter(|kind| kind.changed() == method) {
            self.0[kind as usize].fetch_add(1, Ordering::AcqRel);
        }
        ListKind::changed_by(method).is_some()
    }

    pub(crate) fn get(&self, kind: ListKind) -> u64 {
        self.0[kind as usize].load(Ordering::Acquire)
    }
}
