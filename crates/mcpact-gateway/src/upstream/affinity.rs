//! The clients that are told apart by what they declare and who they are, and the connections of each kind.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Revision;

use crate::connection::UpstreamConnection;
use crate::connection::pool::ConnectionPool;
use crate::supervisor::InstanceSharing;
use crate::upstream::binding::ServerBinding;

/// How many kinds of clients are known at a time that have no instance.
pub(crate) const KINDS: usize = 64;

/// The kinds of clients, the latest first.
#[derive(Debug, Default)]
pub(crate) struct AffinityGroups {
    kinds: VecDeque<Arc<AffinityGroup>>,
}

/// What tells clients of a kind from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffinityKey<'a> {
    pub(crate) principal: &'a str,
    pub(crate) mark: &'a ClientKey,
    /// ClientRef uses the connections.
    pub(crate) sharing: InstanceSharing,
    /// The raw document.
    pub(crate) capabilities: &'a str,
}

/// Clients that share connections.
#[derive(Debug)]
pub(crate) struct AffinityGroup {
    pub(crate) principal: Box<str>,
    mark: ClientKey,
    sharing: InstanceSharing,
    capabilities: Box<str>,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) served: Mutex<Option<GroupTerms>>,
}

/// On which connection they are served, and how.
#[derive(Clone, Debug)]
pub(crate) struct GroupTerms {
    pub(crate) connection: Weak<UpstreamConnection>,
    pub(crate) terms: Arc<ServerTerms>,
    /// Revision of the client that the terms are for.
    pub(crate) revision: Revision,
    /// What the terms say is kept back.
    pub(crate) withheld: Option<String>,
    pub(crate) binding: Arc<ServerBinding>,
}

impl AffinityGroup {
    fn is(&self, apart: AffinityKey<'_>) -> bool {
        *self.capabilities == *apart.capabilities
            && *self.principal == *apart.principal
            && self.mark == *apart.mark
            && self.sharing == apart.sharing
    }

    /// Whether nobody loses anything with it.
    fn is_spare(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.pool.open_connection().is_none()
    }
}

impl AffinityGroups {
    /// Ends every stream of changes, in order.
    pub(crate) fn end_streams(&self) {
        for kind in &self.kinds {
            kind.pool.first().subscribers().listens.end();
        }
    }

    pub(crate) fn known(&self, apart: AffinityKey<'_>) -> Option<Arc<AffinityGroup>> {
        let known = self.kinds.iter().find(|kind| kind.is(apart));
        known.cloned()
    }

    /// The kind, made if it is not known; at most `limit` are.
    pub(crate) fn kind(
        &mut self,
        apart: AffinityKey<'_>,
        limit: usize,
        make: impl FnOnce() -> ConnectionPool,
    ) -> Arc<AffinityGroup> {
        if let Some(kind) = self.known(apart) {
            return kind;
        }
        if self.kinds.len() >= limit {
            self.make_room();
        }
        let kind = Arc::new(AffinityGroup {
            principal: apart.principal.into(),
            mark: apart.mark.clone(),
            sharing: apart.sharing,
            capabilities: apart.capabilities.into(),
            pool: Arc::new(make()),
            served: Mutex::default(),
        });
        self.kinds.push_front(Arc::clone(&kind));
        kind
    }

    fn make_room(&mut self) {
        let spare = self.kinds.iter().rposition(AffinityGroup::is_spare);
        let oldest = self.kinds.len().saturating_sub(1);
        self.kinds.remove(spare.unwrap_or(oldest));
    }

    /// Somebody has gone who had a connection for itself; what was kept for it.
    pub(crate) fn without(&mut self, identity: &ClientIdentity) -> Vec<Arc<AffinityGroup>> {
        parted(&mut self.kinds, identity, |kind| &kind.mark)
    }
}

/// Takes out what was kept for somebody who has gone. Only a connection of its own tells it from others for sure.
pub(crate) fn parted<T>(
    kinds: &mut VecDeque<Arc<T>>,
    identity: &ClientIdentity,
    mark: impl Fn(&T) -> &ClientKey,
) -> Vec<Arc<T>> {
    let ClientKey::Connection(_) = identity.key else {
        return Vec::new();
    };
    let is_of = |kind: &Arc<T>| *mark(kind) == identity.key;
    let (gone, kept) = kinds.drain(..).partition(is_of);
    *kinds = kept;
    Vec::from(gone)
}
