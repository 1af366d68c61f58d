//! Request for one list of one server, on behalf of a client.

use std::sync::Arc;

use mcpact_spec::Capability;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::error::ServeError;
use crate::lists::cache::ListKey;
use crate::lists::cache_entry::{CacheEntry, Freshness, ListVersion};
use crate::lists::scope::{Audience, ListScope};
use crate::lists::server_list::ServerList;
use crate::upstream::binding::ServerBinding;

/// Request for one list of one server.
#[derive(Clone, Debug)]
pub(crate) struct ListRequest {
    pub(crate) aggregator: Arc<Aggregator>,
    pub(crate) entry: Arc<ServerEntry>,
    pub(crate) client: Arc<DownstreamClient>,
    pub(crate) kind: ListKind,
    pub(crate) scope: ListScope,
    pub(crate) cached: Arc<CacheEntry>,
}

impl ListRequest {
    /// Requests the list that the client is shown now.
    pub(crate) fn new(
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
        client: &Arc<DownstreamClient>,
        kind: ListKind,
    ) -> Self {
        let (scope, cached) = match client.own_list(entry, kind) {
            Some(own) => (ListScope::Own, own),
            None => shared_list(entry, client, kind),
        };
        Self {
            aggregator: Arc::clone(aggregator),
            entry: Arc::clone(entry),
            client: Arc::clone(client),
            kind,
            scope,
            cached,
        }
    }

    /// Requests the list of the client's own instance, whether it has one or not.
    pub(crate) fn own(self) -> Self {
        let cached = self.client.own_lists.entry(self.entry.number, self.kind);
        Self {
            scope: ListScope::Own,
            cached,
            ..self
        }
    }

    /// Requests a shared list on behalf of the client that requested it last, if that still exists.
    pub(crate) fn repeated(
        aggregator: &Arc<Aggregator>,
        entry: &Arc<ServerEntry>,
        kind: ListKind,
        cached: Arc<CacheEntry>,
    ) -> Option<Self> {
        Some(Self {
            aggregator: Arc::clone(aggregator),
            entry: Arc::clone(entry),
            client: cached.client()?,
            kind,
            scope: entry.list_scope(false),
            cached,
        })
    }

    /// Requests the same list of the clients without an own instance.
    pub(crate) fn shared(&self) -> Self {
        let (scope, cached) = shared_list(&self.entry, &self.client, self.kind);
        Self {
            scope,
            cached,
            ..self.clone()
        }
    }

    /// Looks up the list in the cache.
    pub(crate) fn lookup(&self) -> Freshness {
        // A host that finds an outdated digest lists the skills again.
        if self.kind == ListKind::Skills && self.is_declared() {
            return Freshness::Missing;
        }
        let age = self.aggregator.settings.list_age;
        self.cached.lookup(self.version(), |fetched| {
            fetched.is_some_and(|fetched| fetched.elapsed() < age)
                || (self.entry.reports_changes_of(self.kind) && self.running_binding().is_some())
        })
    }

    /// Returns the version of the list if it is fetched now.
    pub(crate) fn version(&self) -> ListVersion {
        match self.scope {
            ListScope::Own => self.client.own_version(&self.entry, self.kind),
            ListScope::Kind | ListScope::Internal => self.entry.lists.version(self.kind),
        }
    }

    /// Returns the binding for the request, if the server is running.
    pub(crate) fn running_binding(&self) -> Option<Arc<ServerBinding>> {
        match self.scope {
            ListScope::Internal => self.client.running_internal_binding(&self.entry),
            ListScope::Kind | ListScope::Own => self.client.running_binding_for(&self.entry),
        }
    }

    /// Returns the binding for the request; starts the server if necessary.
    pub(crate) async fn binding(&self) -> Result<Arc<ServerBinding>, ServeError> {
        let (aggregator, entry) = (&self.aggregator, &self.entry);
        match self.scope {
            ListScope::Internal => self.client.internal_binding(aggregator, entry).await,
            ListScope::Kind | ListScope::Own => self.client.binding_for(aggregator, entry).await,
        }
    }

    /// Returns the audience of the list if it is fetched.
    pub(crate) fn audience(&self) -> Audience {
        match self.scope {
            ListScope::Own => self.client.audience(),
            ListScope::Kind | ListScope::Internal => Audience::All,
        }
    }

    /// Returns the audience of a list that the client is shown.
    pub(crate) fn audience_of(&self, list: Option<&Arc<ServerList>>) -> Audience {
        let Some(list) = list.filter(|_| self.scope == ListScope::Own) else {
            return Audience::All;
        };
        match self.shared().cached.list() {
            Some(shared) if Arc::ptr_eq(&shared, list) => Audience::All,
            Some(_) | None => Audience::Owner,
        }
    }

    /// Returns false for a list that the server is known not to have.
    pub(crate) fn is_declared(&self) -> bool {
        let capability = match self.kind {
            ListKind::Tools => Capability::Tools,
            ListKind::Prompts => Capability::Prompts,
            ListKind::Resources | ListKind::Templates => Capability::Resources,
            ListKind::Skills => return self.entry.extends(self.kind.method()),
        };
        self.entry.has(capability)
    }

    /// Returns a list without items.
    pub(crate) fn empty_list(&self) -> ServerList {
        ServerList::new(self.kind, self.entry.revision(), Vec::new())
    }

    /// Returns the list to show while the server does not answer: an outdated one, or that of another client.
    pub(crate) fn fallback(&self) -> Option<Arc<ServerList>> {
        let shared = self.shared();
        let list = self.cached.list().or_else(|| shared.cached.list());
        let (scope, principal) = (shared.scope, self.client.affinity());
        let lists = &self.entry.lists;
        list.or_else(|| lists.of_other_client(self.kind, scope, principal))
    }

    /// Returns a fetched list for the cache. An own list that equals the shared one uses its memory.
    pub(crate) fn to_cached(&self, list: ServerList) -> Arc<ServerList> {
        if self.scope != ListScope::Own {
            self.entry.note_defects(self.kind, &list);
            return Arc::new(list);
        }
        let shared = self.shared().cached.list();
        let same = shared.filter(|shared| shared.is_same(&list));
        same.unwrap_or_else(|| Arc::new(list))
    }

    /// Reports a failed fetch as a defect of the server.
    pub(crate) fn note_failure(&self, error: &ServeError) {
        if self.scope != ListScope::Own {
            let method = self.kind.method();
            let why = format!("`{method}` failed: {}", error.message());
            self.entry.note_missing_list(self.kind, why);
        }
    }

    /// Reports a list that did not arrive within the waiting time.
    pub(crate) fn note_late(&self) {
        if self.scope == ListScope::Own {
            return;
        }
        if self.entry.profile().is_none() {
            self.entry.note_failure(Some("no answer yet".into()));
        } else {
            let why = format!("`{}` is not complete yet", self.kind.method());
            self.entry.note_missing_list(self.kind, why);
        }
    }
}

/// Returns the list that clients like this one are shown if they have no own instance.
fn shared_list(
    entry: &ServerEntry,
    client: &DownstreamClient,
    kind: ListKind,
) -> (ListScope, Arc<CacheEntry>) {
    let key = ListKey {
        kind,
        scope: entry.list_scope(false),
        principal: client.affinity().into(),
        fingerprint: (!entry.is_modern()).then(|| client.fingerprint.clone()),
    };
    let restored = |list: &ServerList| entry.note_defects(kind, list);
    (key.scope, entry.lists.entry(key, restored))
}
