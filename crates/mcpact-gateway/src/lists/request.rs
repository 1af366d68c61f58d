//! A list that is to be shown, and who is asked for it.

use std::sync::Arc;

use crate::error::ServeError;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::lists::cache::{CacheEntry, ListKey, ListVersion};
use crate::lists::scope::{Audience, ListScope};
use crate::lists::server_list::ServerList;
use crate::upstream::binding::ServerBinding;

/// A list of a server, and for whom.
#[derive(Clone, Debug)]
pub(crate) struct ListRequest {
    pub(crate) entry: Arc<ServerEntry>,
    pub(crate) guest: Arc<DownstreamClient>,
    pub(crate) kind: ListKind,
    pub(crate) scope: ListScope,
    pub(crate) slot: Arc<CacheEntry>,
}

impl ListRequest {
    /// The list that a client is shown now.
    pub(crate) fn new(
        entry: &Arc<ServerEntry>,
        guest: &Arc<DownstreamClient>,
        kind: ListKind,
    ) -> Self {
        match guest.own_slot(entry, kind) {
            Some(_) => Self::of_own(entry, guest, kind),
            None => Self::of_many(entry, guest, kind),
        }
    }

    /// The list of a client's own instance, whether it has one or not.
    pub(crate) fn of_own(
        entry: &Arc<ServerEntry>,
        guest: &Arc<DownstreamClient>,
        kind: ListKind,
    ) -> Self {
        Self {
            entry: Arc::clone(entry),
            guest: Arc::clone(guest),
            kind,
            scope: ListScope::Own,
            slot: guest.own.slot(entry.number, kind),
        }
    }

    /// The list that all are shown who are like this client, and have no instance of their own.
    pub(crate) fn of_many(
        entry: &Arc<ServerEntry>,
        guest: &Arc<DownstreamClient>,
        kind: ListKind,
    ) -> Self {
        let key = key(entry, guest, kind);
        Self {
            entry: Arc::clone(entry),
            guest: Arc::clone(guest),
            kind,
            scope: key.scope,
            slot: entry.slot(key),
        }
    }

    /// What it rests on if it is fetched now.
    pub(crate) fn basis(&self) -> ListVersion {
        match self.scope {
            ListScope::Own => self.guest.own_basis(&self.entry, self.kind),
            ListScope::Kind | ListScope::Internal => self.entry.basis(self.kind),
        }
    }

    /// Returns the binding for the request, if the server is running.
    pub(crate) fn awake(&self) -> Option<Arc<ServerBinding>> {
        match self.scope {
            ListScope::Internal => self.guest.running_internal_binding(&self.entry),
            ListScope::Kind | ListScope::Own => self.guest.running_binding_for(&self.entry),
        }
    }

    /// Returns the binding for the request; starts the server if necessary.
    pub(crate) async fn binding(
        &self,
        aggregator: &Arc<Aggregator>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        match self.scope {
            ListScope::Internal => self.guest.internal_binding(aggregator, &self.entry).await,
            ListScope::Kind | ListScope::Own => {
                self.guest.binding_for(aggregator, &self.entry).await
            }
        }
    }

    /// Returns the audience of the list.
    pub(crate) fn audience(&self) -> Audience {
        match self.scope {
            ListScope::Own => self.guest.audience(),
            ListScope::Kind | ListScope::Internal => Audience::All,
        }
    }

    /// The same list of those who have no instance of their own.
    pub(crate) fn common(&self) -> Self {
        Self::of_many(&self.entry, &self.guest, self.kind)
    }

    /// What there is to show while it does not come: an old list is better than none, and what others are shown is,
    /// too.
    pub(crate) fn meanwhile(&self) -> Option<Arc<ServerList>> {
        let key = key(&self.entry, &self.guest, self.kind);
        let of_many = || self.entry.slot(key.clone()).listing();
        let of_others = || self.entry.shown_to_others(&key);
        self.slot.listing().or_else(of_many).or_else(of_others)
    }

    /// Returns the audience of the list that the client is shown.
    pub(crate) fn audience_of(&self, listing: Option<&Arc<ServerList>>) -> Audience {
        let Some(listing) = listing.filter(|_| self.scope == ListScope::Own) else {
            return Audience::All;
        };
        match self.common().slot.listing() {
            Some(common) if Arc::ptr_eq(&common, listing) => Audience::All,
            Some(_) | None => Audience::Owner,
        }
    }

    /// Returns a fetched list for the cache. An own list that equals the common one shares its memory.
    pub(crate) fn taken(&self, listing: ServerList) -> Arc<ServerList> {
        if self.scope != ListScope::Own {
            self.entry.look_over(self.kind, &listing);
            return Arc::new(listing);
        }
        let common = self.common().slot.listing();
        let same = common.filter(|common| common.is_same(&listing));
        same.unwrap_or_else(|| Arc::new(listing))
    }

    /// It has not come, and why.
    pub(crate) fn do_without(&self, error: &ServeError) {
        if self.scope != ListScope::Own {
            let method = self.kind.method();
            let why = format!("its `{method}` is missing: {}", error.message());
            self.entry.do_without(self.kind, why);
        }
    }

    /// It has not come yet.
    pub(crate) fn is_late(&self) {
        if self.scope == ListScope::Own {
            return;
        }
        match self.entry.known() {
            None => self.entry.missing("it has not answered yet".into()),
            Some(_) => {
                let why = format!("its `{}` has not come yet", self.kind.method());
                self.entry.do_without(self.kind, why);
            }
        }
    }
}

/// Which list all are shown who are like this client.
fn key(entry: &ServerEntry, guest: &DownstreamClient, kind: ListKind) -> ListKey {
    ListKey {
        kind,
        scope: entry.list_scope(false),
        principal: guest.principal().into(),
        fingerprint: (!entry.is_modern()).then(|| guest.fingerprint.clone()),
    }
}
