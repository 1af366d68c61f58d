//! One cached list, with single-flight fetches.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mcpact_translate::input::Backoff;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::downstream::client::DownstreamClient;
use crate::lists::server_list::ServerList;
use crate::sync::lock;

/// Delays before a list is requested again from a server that did not answer.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_secs(300),
};

/// One list of one server, fetched by one request at a time.
#[derive(Debug, Default)]
pub(crate) struct CacheEntry {
    state: Mutex<CacheState>,
    /// Number of finished fetches.
    pub(crate) fetches: watch::Sender<u64>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(crate) fn restored(list: Arc<ServerList>) -> Self {
        let state = CacheState {
            list: Some(list),
            version: Some(ListVersion::default()),
            ..CacheState::default()
        };
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    /// Looks up the list. `is_young` decides by the time of the fetch whether a list without reported changes is current.
    pub(crate) fn lookup(
        &self,
        now: ListVersion,
        is_young: impl FnOnce(Option<Instant>) -> bool,
    ) -> Freshness {
        let state = lock(&self.state);
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
        let version = lock(&self.state).version;
        version.is_some_and(|version| version.starts == starts)
    }

    /// Returns the list, current or not.
    pub(crate) fn list(&self) -> Option<Arc<ServerList>> {
        lock(&self.state).list.clone()
    }

    /// Returns the list unless a change was reported since.
    pub(crate) fn unchanged(&self, changes: u64) -> Option<Arc<ServerList>> {
        let state = lock(&self.state);
        state.version.filter(|version| version.changes == changes)?;
        state.list.clone()
    }

    /// Records the client of a request.
    pub(crate) fn set_client(&self, client: &Arc<DownstreamClient>) {
        lock(&self.state).client = Arc::downgrade(client);
    }

    /// Returns the client of the last request, if it still exists.
    pub(crate) fn client(&self) -> Option<Arc<DownstreamClient>> {
        lock(&self.state).client.upgrade()
    }

    /// Returns true if a client was shown no list, or an outdated one.
    pub(crate) fn is_missed(&self) -> bool {
        lock(&self.state).is_missed
    }

    /// Records that a client is shown no list, or an outdated one.
    pub(crate) fn note_miss(&self) {
        lock(&self.state).is_missed = true;
    }

    /// Returns the start of the fetch in progress.
    pub(crate) fn fetching_since(&self) -> Option<Instant> {
        lock(&self.state).fetching
    }

    /// Returns true if the last fetch timed out.
    pub(crate) fn has_timed_out(&self) -> bool {
        lock(&self.state).retry.is_some()
    }

    /// Records a timeout: the list is not requested again for a while.
    pub(crate) fn note_timeout(&self) {
        let mut state = lock(&self.state);
        let before = state.retry.map_or(0, |(timeouts, _)| timeouts);
        let until = Instant::now() + BACKOFF.pause(before);
        state.retry = Some((before.saturating_add(1), until));
    }

    /// Records that the server was at capacity; returns the number of consecutive earlier failures of that kind.
    pub(crate) fn note_busy(&self) -> u32 {
        let mut state = lock(&self.state);
        let before = state.busy;
        state.busy = before.saturating_add(1);
        before
    }

    /// Begins a fetch; returns false if one is in progress, or the list is not to be requested yet.
    pub(crate) fn begin_fetch(&self) -> bool {
        let mut state = lock(&self.state);
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
        let mut state = lock(&self.state);
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
    use crate::aggregate::list_kind::ListKind;

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
        assert_eq!(lookup(&restored, ListVersion::default(), false), "stale");
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
