//! Affinity groups: clients that share the connections of one pool.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use mcpact::server::backend::{ClientIdentity, ClientKey, Principal, PrincipalKind};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Revision;

use crate::connection::UpstreamConnection;
use crate::connection::pool::ConnectionPool;
use crate::supervisor::InstanceSharing;

/// Maximum number of groups without an instance.
pub(crate) const GROUPS: usize = 64;

/// Affinity groups of a server, the latest first.
#[derive(Debug, Default)]
pub(crate) struct AffinityGroups {
    groups: VecDeque<Arc<AffinityGroup>>,
}

/// Key of an affinity group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AffinityKey<'a> {
    pub(crate) principal: &'a str,
    pub(crate) client: &'a ClientKey,
    pub(crate) sharing: InstanceSharing,
    /// Declared capabilities, as raw JSON.
    pub(crate) capabilities: &'a str,
}

/// Clients that share connections.
#[derive(Debug)]
pub(crate) struct AffinityGroup {
    pub(crate) principal: Box<str>,
    client: ClientKey,
    sharing: InstanceSharing,
    capabilities: Box<str>,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) terms: Mutex<Option<GroupTerms>>,
}

/// What distinguishes a client from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Evidence {
    /// Nothing.
    None,
    /// Its own connection.
    Connection,
    /// Its principal.
    Principal,
}

impl Evidence {
    pub(crate) fn of(identity: &ClientIdentity) -> Self {
        match (identity.principal.is_anonymous(), &identity.key) {
            (false, _) => Self::Principal,
            (true, ClientKey::Connection(_)) => Self::Connection,
            (true, ClientKey::None | ClientKey::Key(_)) => Self::None,
        }
    }
}

/// Principal of clients whose only evidence is the token of the gateway's own user.
static OWN_TOKEN: LazyLock<Principal> = LazyLock::new(|| Principal::token("token"));

/// Returns the part of a principal that decides which instances it shares. The user of the gateway, the holder of its
/// single token and anonymous clients are one: the gateway itself, whose instances they use, counts as one of them.
pub(crate) fn affinity(principal: &Principal) -> &str {
    let is_own = match principal.kind() {
        PrincipalKind::Uid => own_uid().is_some_and(|own| principal.subject() == own),
        PrincipalKind::Token => principal.subject() == OWN_TOKEN.subject(),
        _ => false,
    };
    match is_own {
        true => "",
        false => principal.subject(),
    }
}

/// Returns the subject of the gateway's own user.
fn own_uid() -> Option<&'static str> {
    static OWN: LazyLock<Option<Principal>> =
        LazyLock::new(|| mcpact_transport::own_uid().map(Principal::uid));
    OWN.as_ref().map(Principal::subject)
}

/// Cached terms of the modern clients of a group.
#[derive(Debug)]
pub(crate) struct GroupTerms {
    pub(crate) connection: Weak<UpstreamConnection>,
    pub(crate) terms: Arc<ServerTerms>,
    /// Revision of the client that the terms are for.
    pub(crate) revision: Revision,
    /// Evidence of the clients that the terms are for.
    pub(crate) evidence: Evidence,
    /// Notice about hidden tools in the terms.
    pub(crate) withheld: Option<String>,
}

impl<'a> AffinityKey<'a> {
    /// Returns the key of a client with its own instance, or of all clients with this principal and declaration.
    pub(crate) const fn new(
        principal: &'a str,
        client: &'a ClientKey,
        capabilities: &'a str,
    ) -> Self {
        let sharing = match client {
            ClientKey::None => InstanceSharing::Shared,
            ClientKey::Connection(_) | ClientKey::Key(_) => InstanceSharing::Exclusive,
        };
        Self {
            principal,
            client,
            sharing,
            capabilities,
        }
    }

    /// Returns the key of all clients with this principal and declaration.
    pub(crate) const fn shared(principal: &'a str, capabilities: &'a str) -> Self {
        Self::new(principal, &ClientKey::None, capabilities)
    }
}

impl AffinityGroup {
    fn has(&self, key: AffinityKey<'_>) -> bool {
        *self.capabilities == *key.capabilities
            && *self.principal == *key.principal
            && self.client == *key.client
            && self.sharing == key.sharing
    }

    /// Returns true if the group is not in use and has no open connection.
    fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && self.pool.open_connection().is_none()
    }
}

impl AffinityGroups {
    /// Ends all change streams.
    pub(crate) fn end_streams(&self) {
        for group in &self.groups {
            group.pool.first().subscribers().listens.end();
        }
    }

    pub(crate) fn find(&self, key: AffinityKey<'_>) -> Option<Arc<AffinityGroup>> {
        self.groups.iter().find(|group| group.has(key)).cloned()
    }

    /// Returns the group with this key; adds it if necessary. At most `limit` groups are kept.
    pub(crate) fn find_or_add(
        &mut self,
        key: AffinityKey<'_>,
        limit: usize,
        pool: impl FnOnce() -> ConnectionPool,
    ) -> Arc<AffinityGroup> {
        if let Some(group) = self.find(key) {
            return group;
        }
        if self.groups.len() >= limit {
            let unused = self.groups.iter().rposition(AffinityGroup::is_unused);
            let oldest = self.groups.len().saturating_sub(1);
            self.groups.remove(unused.unwrap_or(oldest));
        }
        let group = Arc::new(AffinityGroup {
            principal: key.principal.into(),
            client: key.client.clone(),
            sharing: key.sharing,
            capabilities: key.capabilities.into(),
            pool: Arc::new(pool()),
            terms: Mutex::default(),
        });
        self.groups.push_front(Arc::clone(&group));
        group
    }

    /// Removes and returns the groups of a closed connection.
    pub(crate) fn remove(&mut self, identity: &ClientIdentity) -> Vec<Arc<AffinityGroup>> {
        remove_disconnected(&mut self.groups, identity, |group| &group.client)
    }
}

/// Removes and returns the entries of a closed connection. Clients with another kind of key may use further
/// connections.
pub(crate) fn remove_disconnected<T>(
    entries: &mut VecDeque<Arc<T>>,
    identity: &ClientIdentity,
    client: impl Fn(&T) -> &ClientKey,
) -> Vec<Arc<T>> {
    let ClientKey::Connection(_) = identity.key else {
        return Vec::new();
    };
    let is_of = |entry: &Arc<T>| *client(entry) == identity.key;
    let (removed, kept) = entries.drain(..).partition(is_of);
    *entries = kept;
    Vec::from(removed)
}
