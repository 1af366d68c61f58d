//! Fetching and refreshing of cached lists. An idle server is not started to refresh a list.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use mcpact_spec::ErrorCode;
use tokio::time::Instant;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::connection::IdleGuard;
use crate::downstream::client::DownstreamClient;
use crate::lists::cache_entry::{CacheEntry, FetchOutcome, Freshness, ListVersion};
use crate::lists::merged::Sources;
use crate::lists::pages::{FetchMode, ListFetch};
use crate::lists::request::ListRequest;
use crate::lists::scope::{Audience, ListScope};
use crate::lists::server_list::{ListError, ServerList};
use crate::lists::{bindings, own};
use crate::metrics::Outcome;
use crate::subscriptions::list_changes;

/// Returns the list of each server, none for those without one, and the audience of all of them. Missing lists are
/// fetched.
pub(crate) async fn server_lists(
    aggregator: &Arc<Aggregator>,
    server_set: &ServerSet,
    client: &Arc<DownstreamClient>,
    kind: ListKind,
) -> (Sources, Audience) {
    let entries = server_set.entries.iter();
    let requests: Vec<_> = entries
        .map(|entry| ListRequest::new(aggregator, entry, client, kind))
        .collect();
    let fetching = requests.iter().map(|request| {
        request.cached.set_client(client);
        let cached = request.cached();
        let metrics = &request.entry.server.shared.metrics;
        metrics.list_requested(cached.is_some());
        async move {
            match cached {
                Some(list) => Some(list),
                None => request.fetched().await,
            }
        }
    });
    let lists = join_all(fetching).await;
    let mut audience = Audience::All;
    for (request, list) in requests.iter().zip(&lists) {
        audience = audience.or(request.audience_of(list.as_ref()));
        if let Some(list) = list {
            request.note_shown(list);
        }
    }
    (lists, audience)
}

impl ListRequest {
    /// Returns the cached list if it can be shown at once. A stale one is refreshed in the background; clients are
    /// notified of changes.
    fn cached(&self) -> Option<Arc<ServerList>> {
        match self.lookup() {
            Freshness::Fresh(list) => Some(list),
            Freshness::Stale(list) => {
                self.refresh_in_background();
                Some(list)
            }
            Freshness::Missing => None,
        }
    }

    /// Refreshes a list that may be outdated, or was never fetched, if the server is running.
    pub(crate) fn refresh(&self) {
        if !matches!(self.lookup(), Freshness::Fresh(_)) {
            self.refresh_in_background();
        }
    }

    fn refresh_in_background(&self) {
        match self.running_binding() {
            // The client that started the server may finish before this request.
            Some(binding) => self.start_fetch(FetchMode::Background, binding.hold()),
            None if bindings::is_remote(&self.entry.server) => {
                self.start_fetch(FetchMode::Call, None);
            }
            None => {}
        }
    }

    /// Returns the list in its present state, or the cached one if it cannot be fetched.
    pub(crate) async fn current(self) -> Option<Arc<ServerList>> {
        match self.lookup() {
            Freshness::Fresh(list) => Some(list),
            Freshness::Stale(_) | Freshness::Missing => self.refetched().await,
        }
    }

    /// Fetches the list again; returns the cached one if that fails.
    pub(crate) async fn refetched(self) -> Option<Arc<ServerList>> {
        let mut fetches = self.cached.fetches.subscribe();
        self.start_fetch(FetchMode::Call, None);
        // A list that failed lately is not requested again; clients are notified when a late list arrives.
        if self.cached.fetching_since().is_some() {
            let limit = self.aggregator.settings.list_wait;
            let _ = tokio::time::timeout(limit, fetches.changed()).await;
        }
        self.cached.list()
    }

    /// Fetches a missing list, or waits for the fetch in progress.
    async fn fetched(&self) -> Option<Arc<ServerList>> {
        let Self { entry, cached, .. } = self;
        // A server is not started for a list that it is known not to have.
        if entry.profile().is_some() && !self.is_declared() && cached.begin_fetch() {
            let version = ListVersion {
                fetched: None,
                ..self.version()
            };
            self.publish(cached.end_fetch(Some(Arc::new(self.empty_list())), version));
            return cached.list();
        }
        let mut fetches = cached.fetches.subscribe();
        // A server that has just failed is retried later; clients do not wait for it.
        let is_resting = entry.server.status().state.wait().is_some() || cached.has_timed_out();
        self.start_fetch(FetchMode::Call, None);
        if is_resting {
            cached.note_miss();
            return self.fallback();
        }
        // The waiting time counts from the first client that waits.
        let since = match self.scope {
            ListScope::Own => cached.fetching_since(),
            ListScope::Kind | ListScope::Internal => entry.waited_for_since(),
        };
        let until = since.unwrap_or_else(Instant::now) + self.aggregator.settings.list_wait;
        let waited = tokio::time::timeout_at(until, fetches.changed()).await;
        if waited.is_err() {
            self.note_late();
        }
        if cached.unchanged(self.version().changes).is_none() {
            cached.note_miss();
        }
        self.fallback()
    }

    /// Starts a fetch unless one is in progress. It does not end with the client, since other clients wait for the list.
    fn start_fetch(&self, mode: FetchMode, idle_guard: Option<IdleGuard>) {
        if self.cached.begin_fetch() {
            let request = self.clone();
            tokio::spawn(async move {
                request.fetch(mode).await;
                drop(idle_guard);
            });
        }
    }

    async fn fetch(&self, mode: FetchMode) {
        let (entry, cached) = (&self.entry, &self.cached);
        let version = self.version();
        let is_first = !cached.is_of_start(version.starts);
        let mut is_busy = false;
        let list = match self.fetch_list(mode).await {
            Ok(list) => list,
            // The server may have been stopped as idle meanwhile.
            Err(ListError::Lost(error)) if mode == FetchMode::Background => {
                let masks = &entry.server.shared.masks;
                let error = masks.cover(error.message().into_owned());
                tracing::debug!(server = %entry.name, error, "failed to refresh a list");
                None
            }
            // A server at capacity works for other clients.
            Err(ListError::Lost(error))
                if error.outcome() == Outcome::Busy && entry.profile().is_some() =>
            {
                is_busy = true;
                cached.note_miss();
                self.note_failure(&error);
                None
            }
            Err(ListError::Lost(error)) => {
                entry.note_outcome(Some(&error));
                entry.server.shared.supervisor.left_out();
                None
            }
            Err(ListError::Late(error)) => {
                cached.note_timeout();
                self.note_failure(&error);
                None
            }
            Err(ListError::Refused(error)) => {
                entry.note_outcome(None);
                self.note_failure(&error);
                None
            }
        };
        if list.is_some() {
            entry.note_outcome(None);
        }
        let list = list.map(|list| self.to_cached(list));
        self.publish(cached.end_fetch(list, version));
        if self.scope == ListScope::Own {
            if is_first {
                self.verify_shared();
            }
        } else if is_busy {
            // A client with its own instance has capacity there.
            self.retry_later();
        }
    }

    /// Fetches the list; none if the server is not running and must not be started.
    async fn fetch_list(&self, mode: FetchMode) -> Result<Option<ServerList>, ListError> {
        let binding = match mode {
            FetchMode::Call => Some(self.binding().await.map_err(ListError::Lost)?),
            FetchMode::Background => self.running_binding(),
        };
        let Some(binding) = binding else {
            return Ok(None);
        };
        if !self.is_declared() {
            return Ok(Some(self.empty_list()));
        }
        let fetch = ListFetch {
            server: &self.entry.server,
            binding: &binding,
            kind: self.kind,
            audience: self.audience(),
            mode,
        };
        match fetch.run().await {
            // The server declares a capability that it does not have.
            Err(ListError::Refused(error)) if error.code() == ErrorCode::MethodNotFound.code() => {
                Ok(Some(self.empty_list()))
            }
            outcome => outcome,
        }
    }

    /// Saves a fetched list; notifies all clients of a change, or only the client that owns the list.
    fn publish(&self, outcome: FetchOutcome) {
        let is_changed = outcome == FetchOutcome::Changed;
        if self.scope == ListScope::Own {
            if self.differs_from_shown(&self.cached) || is_changed {
                self.notify_client();
            }
            return;
        }
        if outcome != FetchOutcome::Failed {
            self.entry.save();
        }
        if is_changed {
            self.entry.announce(self.kind.changed());
        }
    }

    /// Returns true, once, if the client was shown another list than that of its own instance.
    fn differs_from_shown(&self, own: &CacheEntry) -> bool {
        let (lists, server) = (&self.client.own_lists, self.entry.number);
        own.list()
            .is_some_and(|list| lists.must_notify(server, self.kind, &list))
    }

    fn notify_client(&self) {
        list_changes::notify_client(&self.aggregator, &self.client, self.kind.changed());
    }

    /// Records that the client is shown a list. The list of its own instance may have been fetched meanwhile.
    fn note_shown(&self, list: &ServerList) {
        if self.scope == ListScope::Kind {
            return;
        }
        let (entry, client) = (&self.entry, &self.client);
        client.own_lists.note_shown(entry.number, self.kind, list);
        let own = client.own_list(entry, self.kind);
        if own.is_some_and(|own| self.differs_from_shown(&own)) {
            self.notify_client();
        }
    }

    /// Fetches the stale shared list if the list of a new own instance differs: it may be that of an earlier version of
    /// the server.
    fn verify_shared(&self) {
        let shared = self.shared();
        if let (Freshness::Stale(shown), Some(own)) = (shared.lookup(), self.cached.list())
            && !own.is_same(&shown)
        {
            shared.start_fetch(FetchMode::Call, None);
        }
    }

    /// Fetches a list again that a client missed.
    fn fetch_missed(&self) {
        if self.cached.is_missed() {
            self.start_fetch(FetchMode::Call, None);
        }
    }

    /// Tries again after a while to fetch a list from a server at capacity.
    fn retry_later(&self) {
        let backoff = self.entry.server.retry_backoff();
        let delay = backoff.pause(self.cached.note_busy());
        let aggregator = Arc::downgrade(&self.aggregator);
        let (kind, entry) = (self.kind, Arc::downgrade(&self.entry));
        let cached = Arc::downgrade(&self.cached);
        let repeated = move || {
            let (aggregator, entry) = (aggregator.upgrade()?, entry.upgrade()?);
            Self::repeated(&aggregator, &entry, kind, cached.upgrade()?)
        };
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(request) = repeated() {
                request.fetch_missed();
            }
        });
    }
}

/// Returns the requests that were last made for the shared lists of a server.
fn last_requests(
    aggregator: &Arc<Aggregator>,
    entry: &Arc<ServerEntry>,
) -> impl Iterator<Item = ListRequest> {
    let cached = entry.lists.entries().into_iter();
    cached.filter_map(|(kind, cached)| ListRequest::repeated(aggregator, entry, kind, cached))
}

/// Refreshes the stale lists of a server, if it is running.
pub(crate) fn refresh_stale(aggregator: &Arc<Aggregator>, entry: &Arc<ServerEntry>) {
    for request in last_requests(aggregator, entry) {
        // The result is not used; only the refresh matters.
        let _ = request.cached();
    }
}

/// Fetches the lists of a server that clients missed.
pub(crate) fn fetch_missed(aggregator: &Arc<Aggregator>, entry: &Arc<ServerEntry>) {
    for request in last_requests(aggregator, entry) {
        request.fetch_missed();
    }
}

/// Polls servers that send no change notifications, while clients listen for changes.
pub(crate) fn poll(aggregator: &Arc<Aggregator>) {
    let age = aggregator.settings.list_age;
    let aggregator = Arc::downgrade(aggregator);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(age).await;
            let Some(aggregator) = Weak::upgrade(&aggregator) else {
                return;
            };
            if !aggregator.changes.has_receivers() {
                continue;
            }
            for entry in &aggregator.server_set().entries {
                refresh_stale(&aggregator, entry);
                fetch_missed(&aggregator, entry);
                for client in own::clients(&aggregator) {
                    own::refresh(&aggregator, entry, &client);
                }
            }
        }
    });
}
