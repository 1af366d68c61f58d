//! The clients that are told apart by what they declare and who they are, and the connections of each kind.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Revision;

use super::caller::Caller;
use super::lane::Lane;
use super::pool::Pool;
use crate::supervisor::InstanceSharing;

/// How many kinds of clients are known at a time that have no instance.
pub(super) const KINDS: usize = 64;

/// The kinds of clients, the latest first.
#[derive(Debug, Default)]
pub(super) struct Guests {
    kinds: VecDeque<Arc<Kind>>,
}

/// What tells clients of a kind from others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart<'a> {
    pub(super) principal: &'a str,
    pub(super) mark: &'a ClientKey,
    /// Who uses the connections.
    pub(super) tenant: InstanceSharing,
    /// The raw document.
    pub(super) capabilities: &'a str,
}

/// Clients that share connections.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) principal: Box<str>,
    mark: ClientKey,
    tenant: InstanceSharing,
    capabilities: Box<str>,
    pub(super) pool: Arc<Pool>,
    pub(super) served: Mutex<Option<Served>>,
}

/// On which connection they are served, and how.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) lane: Weak<Lane>,
    pub(super) terms: Arc<ServerTerms>,
    /// Revision of the client that the terms are for.
    pub(super) revision: Revision,
    /// What the terms say is kept back.
    pub(super) withheld: Option<String>,
    pub(super) caller: Arc<Caller>,
}

impl Kind {
    fn is(&self, apart: Apart<'_>) -> bool {
        *self.capabilities == *apart.capabilities
            && *self.principal == *apart.principal
            && self.mark == *apart.mark
            && self.tenant == apart.tenant
    }

    /// Whether nobody loses anything with it.
    fn is_spare(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.pool.open_lane().is_none()
    }
}

impl Guests {
    /// Ends every stream of changes, in order.
    pub(super) fn end_streams(&self) {
        for kind in &self.kinds {
            kind.pool.first().audience().listens.end();
        }
    }

    pub(super) fn known(&self, apart: Apart<'_>) -> Option<Arc<Kind>> {
        let known = self.kinds.iter().find(|kind| kind.is(apart));
        known.cloned()
    }

    /// The kind, made if it is not known; at most `limit` are.
    pub(super) fn kind(
        &mut self,
        apart: Apart<'_>,
        limit: usize,
        make: impl FnOnce() -> Pool,
    ) -> Arc<Kind> {
        if let Some(kind) = self.known(apart) {
            return kind;
        }
        if self.kinds.len() >= limit {
            self.make_room();
        }
        let kind = Arc::new(Kind {
            principal: apart.principal.into(),
            mark: apart.mark.clone(),
            tenant: apart.tenant,
            capabilities: apart.capabilities.into(),
            pool: Arc::new(make()),
            served: Mutex::default(),
        });
        self.kinds.push_front(Arc::clone(&kind));
        kind
    }

    fn make_room(&mut self) {
        let spare = self.kinds.iter().rposition(Kind::is_spare);
        let oldest = self.kinds.len().saturating_sub(1);
        self.kinds.remove(spare.unwrap_or(oldest));
    }

    /// Somebody has gone who had a connection for itself; what was kept for it.
    pub(super) fn without(&mut self, visitor: &ClientIdentity) -> Vec<Arc<Kind>> {
        parted(&mut self.kinds, visitor, |kind| &kind.mark)
    }
}

/// Takes out what was kept for somebody who has gone. Only a connection of its own tells it from others for sure.
pub(crate) fn parted<T>(
    kinds: &mut VecDeque<Arc<T>>,
    visitor: &ClientIdentity,
    mark: impl Fn(&T) -> &ClientKey,
) -> Vec<Arc<T>> {
    let ClientKey::Connection(_) = visitor.key else {
        return Vec::new();
    };
    let is_of = |kind: &Arc<T>| *mark(kind) == visitor.key;
    let (gone, kept) = kinds.drain(..).partition(is_of);
    *kinds = kept;
    Vec::from(gone)
}
