//! Instances that one client has for itself, and those that are nobody's.
//!
//! Where clients are told apart, what an instance says of its lists is for the client that has it. What all are shown who
//! have none yet comes from an instance that is no client's: it is told what they declare, and nobody is asked for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ServeError;
use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Era, Method};
use mcpact_wire::envelope::Params;

use crate::aggregate::list_kind::ListKind;
use crate::connection::pool::ConnectionPool;
use crate::supervisor::{InstanceSharing, SharingPolicy, StartCause, sharing_policy};
use crate::upstream::UpstreamServer;
use crate::upstream::accept::LegacyHello;
use crate::upstream::accept::ReachedServer;
use crate::upstream::accept::mapped;
use crate::upstream::affinity::AffinityKey;
use crate::upstream::binding::ServerBinding;
use crate::upstream::pending::SavedHello;
use crate::upstream::rebind::Rebind;

/// What tells the owners of instances from each other.
static OWNERS: AtomicU64 = AtomicU64::new(1);

/// What an instance has said of its lists to whoever has it for itself.
#[derive(Debug)]
pub(crate) struct OwnListChanges {
    number: u64,
    changes: [AtomicU64; ListKind::ALL.len()],
}

impl Default for OwnListChanges {
    fn default() -> Self {
        Self {
            number: OWNERS.fetch_add(1, Ordering::Relaxed),
            changes: [const { AtomicU64::new(0) }; ListKind::ALL.len()],
        }
    }
}

impl OwnListChanges {
    /// ListScope they are.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The instance says that something has changed.
    pub(crate) fn note(&self, method: Method) {
        let all = ListKind::ALL.into_iter();
        for kind in all.filter(|kind| kind.changed() == method) {
            self.changes[kind as usize].fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// ClientRef hears that a list has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeAudience {
    All,
    /// Whoever has the instance.
    Owner,
}

/// ClientRef hears what an instance says of its lists. (A modern server keeps nothing of anybody.)
pub(crate) const fn said_to(
    sharing: SharingPolicy,
    era: Era,
    instance: InstanceSharing,
) -> ChangeAudience {
    match (sharing, era, instance) {
        (
            SharingPolicy::Exclusive,
            Era::Legacy,
            InstanceSharing::Exclusive | InstanceSharing::Shared,
        ) => ChangeAudience::Owner,
        (SharingPolicy::Exclusive | SharingPolicy::SameAffinity | SharingPolicy::All, _, _) => {
            ChangeAudience::All
        }
    }
}

/// An instance of a client, as it is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnInstance {
    /// What its owner is known by.
    pub(crate) owner: u64,
    /// Tells its connection from those before, if there is one.
    pub(crate) session: Option<u64>,
    changes: [u64; ListKind::ALL.len()],
}

impl OwnInstance {
    fn of(binding: &ServerBinding) -> Self {
        let own_changes = binding.slot().own_changes();
        let changes = own_changes.changes.each_ref();
        Self {
            owner: own_changes.number,
            session: binding
                .open_connection()
                .map(|connection| connection.session),
            changes: changes.map(|count| count.load(Ordering::Acquire)),
        }
    }

    /// How often a list of it has changed.
    pub(crate) const fn changes_of(&self, kind: ListKind) -> u64 {
        self.changes[kind as usize]
    }
}

impl ServerBinding {
    /// The instance of the client that it stands for. Only a legacy server has one: where the client was introduced to
    /// a modern one first, whoever stands for it since.
    pub(crate) fn own_instance(&self) -> OwnInstance {
        let modern = self.rebind().filter(|own| own.era() == Era::Modern);
        let next = modern.and_then(Rebind::next);
        OwnInstance::of(next.map_or(self, |next| next))
    }
}

/// With whom clients share an instance.
pub(crate) fn sharing(server: &UpstreamServer) -> SharingPolicy {
    sharing_policy(server.shared.run().strategy)
}

/// The instance of modern clients that declare this, if they have ever had one.
pub(crate) fn instance_of(
    server: &UpstreamServer,
    capabilities: &str,
    identity: &ClientIdentity,
) -> Option<OwnInstance> {
    let pool = server.known_pool(capabilities, identity)?;
    let binding = ServerBinding::passing(pool.first(), Some(pool));
    Some(OwnInstance::of(&binding))
}

/// Binding for requests of the gateway itself, with the capabilities of clients that sent `hello`.
pub(crate) async fn internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Result<Arc<ServerBinding>, ServeError> {
    let declared = declared(hello);
    let raw = declared.raw().to_owned();
    let kind = server.kind(internal_key(principal, &raw), || {
        let offer = server.offer(declared, server.own_info());
        ConnectionPool::internal(Arc::clone(&server.shared), offer)
    });
    let reached = server.reach(kind.pool.first(), Some(&kind.pool), StartCause::Request);
    let reached = reached.await.map_err(ServeError::from)?;
    let ReachedServer { slot, pool, .. } = reached;
    Ok(Arc::new(ServerBinding::passing(slot, pool)))
}

/// The same, if its instance runs.
pub(crate) fn running_internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Option<Arc<ServerBinding>> {
    let declared = declared(hello);
    let kind = server
        .guests()
        .known(internal_key(principal, declared.raw()))?;
    kind.pool.open_connection()?;
    let pool = Arc::clone(&kind.pool);
    Some(Arc::new(ServerBinding::passing(pool.first(), Some(pool))))
}

fn internal_key<'a>(principal: &'a str, capabilities: &'a str) -> AffinityKey<'a> {
    AffinityKey {
        principal,
        mark: &ClientKey::None,
        sharing: InstanceSharing::Internal,
        capabilities,
    }
}

/// What a client declares that began like this, in the words of a legacy server.
fn declared(hello: &SavedHello) -> CapabilitySet {
    match hello {
        SavedHello::Request { capabilities, .. } => mapped(capabilities),
        SavedHello::Handshake { params } => {
            let params = Params {
                raw: Some(params),
                ..Params::default()
            };
            let newcomer = LegacyHello::parse(&params);
            newcomer.map_or_else(|| mapped("{}"), |newcomer| newcomer.mapped())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an instance says of its lists is for its owner where clients are told apart, and for all else.
    #[test]
    fn who_hears_of_a_change() {
        for (sharing, era, instance, expected) in [
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Exclusive,
                ChangeAudience::Owner,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Shared,
                ChangeAudience::Owner,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Legacy,
                InstanceSharing::Internal,
                ChangeAudience::All,
            ),
            (
                SharingPolicy::Exclusive,
                Era::Modern,
                InstanceSharing::Exclusive,
                ChangeAudience::All,
            ),
            (
                SharingPolicy::SameAffinity,
                Era::Legacy,
                InstanceSharing::Shared,
                ChangeAudience::All,
            ),
            (
                SharingPolicy::All,
                Era::Legacy,
                InstanceSharing::Shared,
                ChangeAudience::All,
            ),
        ] {
            let who = said_to(sharing, era, instance);
            assert_eq!(who, expected, "{sharing:?} {era:?} {instance:?}");
        }
    }
}
