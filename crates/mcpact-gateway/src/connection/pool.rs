//! The connections to a server that clients of one kind share; of a modern one, everybody.
//!
//! A question of a legacy server on a pipe does not say which call it belongs to. So a connection carries
//! one call at a time that could be asked something, and a second such call gets a connection of its
//! own.

use crate::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit};

use crate::connection::UpstreamConnection;
use crate::connection::ownership::{ClientRef, ConnectionUser};
use crate::connection::slot::{ConnectionSlot, Lease, ServerShared};
use crate::error::UpstreamError;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{
    Few, InstanceSharing, OwnershipRelation, PermitState, Placement, PoolFacts, Purpose, StartCause,
};
use mcpact::connection::Offer;

/// Connections for those who are told the same.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    shared: Arc<ServerShared>,
    /// The one that everybody of this kind may use.
    first: Arc<ConnectionSlot>,
    /// Those for calls that may be asked something while others are.
    more: Mutex<Vec<Arc<ConnectionSlot>>>,
    /// Whoever waits for a turn longest holds it.
    line: AsyncMutex<()>,
    limit: usize,
    sharing: InstanceSharing,
}

/// How long a server may go on asking for a call that it was told to forget. The next call waits that long
/// rather than going to another server, which knows nothing of what this one was told before.
const LINGER: Duration = Duration::from_secs(2);

/// How far a connection is from somebody who looks for one; what is no connection is in the middle.
const fn distance(relation: Option<OwnershipRelation>) -> u8 {
    match relation {
        Some(OwnershipRelation::Own) => 0,
        Some(OwnershipRelation::Common) => 1,
        Some(OwnershipRelation::Left) | None => 2,
        Some(OwnershipRelation::Foreign) => FOREIGN,
    }
}

/// That of another client.
const FOREIGN: u8 = 3;

/// A connection on which nobody else can be asked anything, for as long as this is held.
///
/// A server that is told to forget a call may not have heard of it yet, and still ask something for
/// it. The connection goes to nobody else in that time, who would be asked another's question.
#[derive(Debug)]
pub(crate) struct QuestionPermit {
    /// Where it is.
    pub(crate) slot: Arc<ConnectionSlot>,
    /// Until it is over.
    permit: Option<OwnedSemaphorePermit>,
    is_running: bool,
    /// Client that becomes the owner of this connection after the call, because the server may store its answer.
    pub(crate) disclosed: Option<(Arc<UpstreamConnection>, ClientRef)>,
}

impl QuestionPermit {
    /// A call is about to be made.
    pub(crate) const fn begin(&mut self) {
        self.is_running = true;
    }

    /// The server has answered, or never will.
    pub(crate) const fn end(&mut self) {
        self.is_running = false;
    }
}

impl Drop for QuestionPermit {
    fn drop(&mut self) {
        // The owner is set before the permit goes to another call.
        if let Some((connection, who)) = self.disclosed.take() {
            connection.ownership.take(&who);
        }
        let permit = self.permit.take();
        let slot = Arc::clone(&self.slot);
        let runtime = tokio::runtime::Handle::try_current();
        match runtime.ok().filter(|_| self.is_running) {
            None => slot.free_again(permit),
            Some(runtime) => {
                slot.rests(true);
                runtime.spawn(async move {
                    tokio::time::sleep(LINGER).await;
                    slot.rests(false);
                    slot.free_again(permit);
                });
            }
        }
    }
}

impl ConnectionPool {
    pub(crate) fn new(shared: Arc<ServerShared>, offer: Offer, limit: usize) -> Self {
        Self::with(shared, offer, limit, InstanceSharing::Shared)
    }

    /// One connection, for one client that may have something in it; others for what cannot be done there at the
    /// same time.
    pub(crate) fn of_one(shared: Arc<ServerShared>, offer: Offer, limit: usize) -> Self {
        Self::with(shared, offer, limit, InstanceSharing::Exclusive)
    }

    /// One connection, which no client uses.
    pub(crate) fn internal(shared: Arc<ServerShared>, offer: Offer) -> Self {
        Self::with(shared, offer, 1, InstanceSharing::Internal)
    }

    fn with(
        shared: Arc<ServerShared>,
        offer: Offer,
        limit: usize,
        sharing: InstanceSharing,
    ) -> Self {
        let subscribers = Subscribers::of_many();
        let first = ConnectionSlot::new(Arc::clone(&shared), offer, sharing, subscribers);
        Self {
            first,
            shared,
            more: Mutex::default(),
            line: AsyncMutex::default(),
            limit,
            sharing,
        }
    }

    /// Connections for everybody, of which there is one already.
    pub(crate) fn of_all(
        shared: Arc<ServerShared>,
        first: Arc<ConnectionSlot>,
        limit: usize,
    ) -> Self {
        Self {
            first,
            shared,
            more: Mutex::default(),
            line: AsyncMutex::default(),
            limit,
            sharing: InstanceSharing::Shared,
        }
    }

    /// Whether it is for more than one client.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing == InstanceSharing::Shared
    }

    /// The connection that everybody of this kind may use.
    pub(crate) fn first(&self) -> Arc<ConnectionSlot> {
        Arc::clone(&self.first)
    }

    fn more(&self) -> MutexGuard<'_, Vec<Arc<ConnectionSlot>>> {
        lock(&self.more)
    }

    /// A connection that carries no other call that could be asked something. Whoever waits for one is one of those
    /// who wait for an instance.
    pub(crate) async fn turn(
        &self,
        user: &ConnectionUser,
    ) -> Result<QuestionPermit, UpstreamError> {
        let free = || {
            let facts = self.facts(user);
            let placement = self.shared.supervisor.place(Purpose::QuestionCall, &facts);
            let check = |found: Option<&Arc<ConnectionSlot>>| {
                let more = self.more();
                let mut slots = std::iter::once(&self.first).chain(more.iter());
                let at = found.and_then(|found| slots.position(|slot| Arc::ptr_eq(slot, found)));
                let expected = match placement {
                    Placement::Lease(slot) | Placement::Open(slot) => Some(slot),
                    Placement::Wait(None) => None,
                    ref other => panic!("{other:?}"),
                };
                drop(more);
                let mut after = self.facts(user);
                let was_freed = at
                    .and_then(|at| facts.slots.get(at))
                    .is_some_and(|slot| slot.permit != PermitState::Free);
                if was_freed {
                    // Another call ended meanwhile.
                    return;
                }
                if let Some(at) = at {
                    if at == facts.slots.len() {
                        after.slots.pop();
                    } else {
                        after.slots[at].permit = facts.slots[at].permit;
                    }
                }
                if after == facts {
                    assert_eq!(at, expected, "{facts:?}");
                }
            };
            if self.first.is_resting() {
                // Its permit is what is waited for.
                check(None);
                return None;
            }
            let found = self.free(user);
            check(found.as_ref().map(|(slot, _)| slot));
            let (slot, permit) = found?;
            Some(QuestionPermit {
                slot,
                permit: Some(permit),
                is_running: false,
                disclosed: None,
            })
        };
        let supervisor = &self.shared.supervisor;
        let next = async {
            let _head = self.line.lock().await;
            supervisor.until_some(free).await
        };
        let turn = supervisor.wait_in_queue(next).await;
        turn.map_err(|kind| self.first.error(kind.in_turn()))
    }

    /// Returns the facts for a decision about a lease of this user.
    fn facts(&self, user: &ConnectionUser) -> PoolFacts {
        let more = self.more();
        let slots = std::iter::once(&self.first).chain(more.iter());
        PoolFacts {
            slots: slots.map(|slot| slot.facts(user)).collect(),
            sharing: self.sharing,
            max_slots: self.limit,
        }
    }

    /// A slot whose turn it is, rather one that is connected, and one of another client only if there is no other;
    /// none when there are as many as there may be and all are taken.
    fn free(&self, user: &ConnectionUser) -> Option<(Arc<ConnectionSlot>, OwnedSemaphorePermit)> {
        let mut more = self.more();
        let mut all: Few<(u8, &Arc<ConnectionSlot>)> = std::iter::once(&self.first)
            .chain(more.iter())
            .map(|slot| (distance(slot.relation(user)), slot))
            .collect();
        all.sort_by_key(|(distance, _)| *distance);
        let may_be_more = more.len() + 1 < self.limit;
        let found = all
            .into_iter()
            .filter(|(distance, _)| *distance < FOREIGN || !may_be_more)
            .find_map(|(_, slot)| Some((Arc::clone(slot), slot.try_turn()?)));
        if found.is_some() || !may_be_more {
            return found;
        }
        let slot = self.first.alike();
        more.push(Arc::clone(&slot));
        let permit = slot.try_turn()?;
        Some((slot, permit))
    }

    /// A connection for this one, opened where there is none.
    pub(crate) async fn connection(
        &self,
        user: &ConnectionUser,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let before = self.facts(user);
        let placement = self.shared.supervisor.place(Purpose::Description, &before);
        self.release_foreign(user);
        let open = self.open_connection_for(user);
        let after = self.facts(user);
        if after == before {
            match (&open, placement) {
                (None, Placement::Open(_)) => {}
                (Some(open), Placement::Lease(slot)) => {
                    let id = before.slots[slot].open.map(|(id, _)| id);
                    assert_eq!(Some(open.running.id()), id);
                }
                (open, other) => panic!("{open:?} {other:?} {before:?}"),
            }
        }
        match open {
            Some(connection) => Ok(connection),
            None => self.closed_port().connection(user).await,
        }
    }

    /// A slot that has no connection, if there is one.
    pub(crate) fn closed(&self) -> Option<Arc<ConnectionSlot>> {
        self.closed_of(&self.more())
    }

    fn closed_of(&self, more: &[Arc<ConnectionSlot>]) -> Option<Arc<ConnectionSlot>> {
        let mut ports = std::iter::once(&self.first).chain(more);
        ports.find(|slot| slot.live().is_none()).map(Arc::clone)
    }

    /// The same, made if there is none.
    fn closed_port(&self) -> Arc<ConnectionSlot> {
        let mut more = self.more();
        self.closed_of(&more).unwrap_or_else(|| {
            let slot = self.first.alike();
            more.push(Arc::clone(&slot));
            slot
        })
    }

    /// Any connection that is open.
    pub(crate) fn open_connection(&self) -> Option<Arc<UpstreamConnection>> {
        let more = self.more();
        let mut ports = std::iter::once(&self.first).chain(more.iter());
        ports.find_map(|slot| slot.live())
    }

    /// The same, for this one; rather its own.
    pub(crate) fn open_connection_for(
        &self,
        user: &ConnectionUser,
    ) -> Option<Arc<UpstreamConnection>> {
        let connections = self.open_connections(user).into_iter();
        connections.min_by_key(|connection| distance(Some(connection.ownership.relation(user))))
    }

    fn own_connection(&self, user: &ConnectionUser) -> Option<Arc<UpstreamConnection>> {
        let connection = self.open_connection_for(user)?;
        (connection.ownership.relation(user) == OwnershipRelation::Own).then_some(connection)
    }

    /// Releases connections of disconnected clients, and without capacity those of other clients.
    fn release_foreign(&self, user: &ConnectionUser) {
        let more = self.more();
        let ports = || std::iter::once(&self.first).chain(more.iter());
        let is_common = |relation| matches!(relation, None | Some(OwnershipRelation::Common));
        if ports().all(|slot| is_common(slot.relation(user))) {
            return;
        }
        let has_capacity = self.shared.supervisor.has_capacity();
        ports().for_each(|slot| slot.release_foreign(user, has_capacity));
    }

    /// A connection, opened for this reason if there is none.
    pub(crate) async fn connection_because(
        &self,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        match self.open_connection() {
            Some(connection) => Ok(connection),
            None => self.first.connection_because(cause).await,
        }
    }

    /// All connections that are open for this one.
    pub(crate) fn open_connections(&self, user: &ConnectionUser) -> Few<Arc<UpstreamConnection>> {
        let more = self.more();
        let ports = std::iter::once(&self.first).chain(more.iter());
        ports.filter_map(|slot| slot.live_for(user)).collect()
    }

    /// The same; if there are none, those of others do not stand in the way.
    fn usable_connections(&self, user: &ConnectionUser) -> Few<Arc<UpstreamConnection>> {
        let connections = self.open_connections(user);
        if connections.is_empty() {
            let before = self.facts(user);
            let placement = self.shared.supervisor.place(Purpose::Call, &before);
            self.release_foreign(user);
            let after = self.facts(user);
            let pairs = before.slots.iter().zip(&after.slots).enumerate();
            let gone: Few<usize> = pairs
                .filter(|(_, (before, after))| before.open.is_some() && after.open.is_none())
                .map(|(slot, _)| slot)
                .collect();
            let expected = match placement {
                Placement::Release(slots) => slots,
                _ => Few::new(),
            };
            // A connection may have been opened or lost at the same time.
            let is_racing = tokio::runtime::Handle::current().metrics().num_workers() > 1;
            if !is_racing {
                assert_eq!(gone, expected, "{before:?}");
            }
        }
        connections
    }

    /// A connection with room for a call; another one is opened when all are full, if there may be one.
    pub(crate) async fn acquire(&self, user: &ConnectionUser) -> Result<Lease, UpstreamError> {
        if self.sharing != InstanceSharing::Shared {
            return self.first.acquire(user).await;
        }
        let before = self.facts(user);
        let placement = self.shared.supervisor.place(Purpose::Call, &before);
        let own = self.own_connection(user);
        if self.facts(user) == before
            && let Some(own) = &own
        {
            let at = before
                .slots
                .iter()
                .position(|slot| slot.open.is_some_and(|(id, _)| id == own.running.id()));
            match placement {
                Placement::Lease(slot) => assert_eq!(at, Some(slot), "{before:?}"),
                Placement::Wait(_) | Placement::Refuse => {}
                other => panic!("{other:?} {before:?}"),
            }
        }
        if let Some(connection) = own {
            let entered = connection.running.start_call().await;
            if let Some(guard) = entered.map_err(|kind| self.first.error(kind))? {
                return Ok(Lease { connection, guard });
            }
        }
        loop {
            let entered = self
                .shared
                .supervisor
                .start_call_on_any(|| self.usable_connections(user), || self.facts(user));
            let entered = entered.await;
            match entered.map_err(|kind| self.first.error(kind))? {
                Some((connection, guard)) if connection.ownership.admits(user) => {
                    return Ok(Lease { connection, guard });
                }
                // It has become another's just now.
                Some(_) => {}
                None => self.open_another(StartCause::Request).await?,
            }
        }
    }

    /// Opens a connection more.
    pub(crate) async fn open_another(&self, cause: StartCause) -> Result<(), UpstreamError> {
        let slot = self.closed_port();
        slot.connection_because(cause).await.map(|_| ())
    }
}
