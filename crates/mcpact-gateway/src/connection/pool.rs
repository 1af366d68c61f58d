//! Pools of connections to one server: hand out leases as [`placement`](crate::supervisor::Placement) decides.
//!
//! A question of a legacy server on stdio does not name its call. So a connection serves one call at a time that may
//! cause questions, and a second such call gets another connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;

use crate::connection::UpstreamConnection;
use crate::connection::ownership::{ClientRef, ConnectionUser};
use crate::connection::slot::{ConnectionSlot, ServerShared};
use crate::error::UpstreamError;
use crate::subscriptions::subscribers::Subscribers;
use crate::supervisor::{
    CallGuard, Few, InstanceSharing, PermitState, Placed, Placement, PoolFacts, Purpose, StartCause,
};
use crate::sync::lock;
use mcpact::connection::Offer;

/// Time for which a server may send questions for a cancelled call. The next call waits that long rather than going to
/// another instance, which lacks the state of this one.
const LINGER: Duration = Duration::from_secs(2);

/// Open connection with a place for one call.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) connection: Arc<UpstreamConnection>,
    pub(crate) guard: CallGuard,
}

/// Connections for clients with the same affinity.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    shared: Arc<ServerShared>,
    /// Home of all clients of the pool.
    first: Arc<ConnectionSlot>,
    /// All slots, the first one included.
    slots: Mutex<Few<Arc<ConnectionSlot>>>,
    /// Held by the call that has waited longest for a permit.
    permit_queue: AsyncMutex<()>,
    /// Number of slots up to which calls that may cause questions get another one.
    max_slots: usize,
    sharing: InstanceSharing,
}

/// Permit for the one call on a slot that may cause questions.
///
/// After a cancelled call, the server may still send questions for it. The permit is not passed on during that time:
/// the questions would reach another client.
#[derive(Debug)]
pub(crate) struct QuestionPermit {
    pub(crate) slot: Arc<ConnectionSlot>,
    /// The call has started, and has neither a response nor lost its connection.
    pub(crate) is_running: bool,
    /// Client that becomes the owner of this connection after the call, because the server may store its answer.
    pub(crate) next_owner: Option<(Arc<UpstreamConnection>, ClientRef)>,
}

impl QuestionPermit {
    fn take(slot: Arc<ConnectionSlot>) -> Option<Self> {
        slot.take_permit().then_some(Self {
            slot,
            is_running: false,
            next_owner: None,
        })
    }

    /// Records that the call waits for the input of its client, or no longer does.
    pub(crate) fn set_suspended(&self, is_suspended: bool) {
        self.slot.set_permit(match is_suspended {
            true => PermitState::Suspended,
            false => PermitState::Taken,
        });
    }
}

impl Drop for QuestionPermit {
    fn drop(&mut self) {
        // The owner is set before the permit goes to another call.
        if let Some((connection, client)) = self.next_owner.take() {
            connection.ownership.take(&client);
        }
        let slot = Arc::clone(&self.slot);
        let runtime = tokio::runtime::Handle::try_current();
        match runtime.ok().filter(|_| self.is_running) {
            None => slot.set_permit(PermitState::Free),
            Some(runtime) => {
                slot.set_permit(PermitState::Paused);
                runtime.spawn(async move {
                    tokio::time::sleep(LINGER).await;
                    slot.set_permit(PermitState::Free);
                });
            }
        }
    }
}

/// Facts about a pool as seen by a user, and the open connection of each slot.
pub(crate) type PoolView = (PoolFacts, Few<Option<Arc<UpstreamConnection>>>);

/// Leases a connection for a call.
pub(crate) async fn lease(
    shared: &ServerShared,
    purpose: Purpose,
    user: &ConnectionUser,
    view: impl Fn() -> PoolView,
    slot: impl Fn(usize) -> Arc<ConnectionSlot>,
) -> Result<Lease, UpstreamError> {
    loop {
        let placed = shared.supervisor.place_call(purpose, &view).await;
        match placed.map_err(|kind| slot(0).error(kind))? {
            Placed::Call(connection, guard) if connection.ownership.admits(user) => {
                return Ok(Lease { connection, guard });
            }
            // Another client has become the owner meanwhile.
            Placed::Call(..) => {}
            Placed::Open(number) => {
                let (user, cause) = (&ConnectionUser::Gateway, StartCause::Request);
                slot(number).connection_for(user, cause).await?;
            }
            Placed::Release(numbers) => {
                for number in numbers {
                    slot(number).release_foreign(user);
                }
            }
        }
    }
}

impl ConnectionPool {
    /// Creates a pool. In an exclusive one, all calls use the first connection, except those that may cause questions.
    pub(crate) fn new(
        shared: Arc<ServerShared>,
        offer: Offer,
        sharing: InstanceSharing,
        max_slots: usize,
    ) -> Self {
        let subscribers = Subscribers::of_many();
        let first = ConnectionSlot::new(Arc::clone(&shared), offer, sharing, subscribers);
        Self::with_first(shared, Arc::new(first), sharing, max_slots)
    }

    /// Creates a pool around an existing slot.
    pub(crate) fn with_first(
        shared: Arc<ServerShared>,
        first: Arc<ConnectionSlot>,
        sharing: InstanceSharing,
        max_slots: usize,
    ) -> Self {
        Self {
            slots: Mutex::new(Few::from_iter([Arc::clone(&first)])),
            first,
            shared,
            permit_queue: AsyncMutex::default(),
            max_slots,
            sharing,
        }
    }

    /// Returns true if several clients may use the pool.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing == InstanceSharing::Shared
    }

    /// Returns the home of all clients of the pool.
    pub(crate) fn first(&self) -> Arc<ConnectionSlot> {
        Arc::clone(&self.first)
    }

    fn slots(&self) -> Few<Arc<ConnectionSlot>> {
        lock(&self.slots).clone()
    }

    /// Returns the slot with this number, or a new one.
    fn slot(&self, number: usize) -> Arc<ConnectionSlot> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(number) {
            return Arc::clone(slot);
        }
        let slot = self.first.another();
        slots.push(Arc::clone(&slot));
        slot
    }

    fn view(&self, user: &ConnectionUser) -> PoolView {
        let (slots, connections) = self.slots().iter().map(|slot| slot.view(user)).unzip();
        let facts = PoolFacts {
            slots,
            sharing: self.sharing,
            max_slots: self.max_slots,
        };
        (facts, connections)
    }

    /// Leases a connection for a call.
    pub(crate) async fn acquire(&self, user: &ConnectionUser) -> Result<Lease, UpstreamError> {
        let view = || self.view(user);
        let slot = |number| self.slot(number);
        lease(&self.shared, Purpose::Call, user, view, slot).await
    }

    /// Waits for the permit of a slot, as one of the calls that wait for an instance.
    pub(crate) async fn question_permit(
        &self,
        user: &ConnectionUser,
    ) -> Result<QuestionPermit, UpstreamError> {
        let supervisor = &self.shared.supervisor;
        let permit = || {
            let (facts, _) = self.view(user);
            match supervisor.place(Purpose::QuestionCall, &facts) {
                Placement::Lease(number) | Placement::Open(number) => {
                    QuestionPermit::take(self.slot(number))
                }
                Placement::Wait(_) | Placement::Refuse | Placement::Release(_) => None,
            }
        };
        let next = async {
            let _head = self.permit_queue.lock().await;
            supervisor.until_some(permit).await
        };
        let permit = supervisor.wait_in_queue(next).await;
        permit.map_err(|kind| self.first.error(kind.in_turn()))
    }

    /// Returns a connection for something other than a call, opened for this cause if there is none.
    pub(crate) async fn connection_for(
        &self,
        user: &ConnectionUser,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        loop {
            if let Some(connection) = self.open_connection_for(user) {
                return Ok(connection);
            }
            let (facts, _) = self.view(user);
            let number = match self.shared.supervisor.place(Purpose::Description, &facts) {
                Placement::Lease(number) | Placement::Open(number) => number,
                Placement::Release(numbers) => {
                    for number in numbers {
                        self.slot(number).release_foreign(user);
                    }
                    continue;
                }
                // Only calls wait.
                Placement::Wait(_) | Placement::Refuse => 0,
            };
            let slot = self.slot(number);
            let opening = slot.connection_for(&ConnectionUser::Gateway, cause);
            let connection = opening.await?;
            if connection.ownership.admits(user) {
                return Ok(connection);
            }
        }
    }

    /// Returns a slot without an open connection.
    pub(crate) fn closed(&self) -> Option<Arc<ConnectionSlot>> {
        let mut slots = self.slots().into_iter();
        slots.find(|slot| slot.live().is_none())
    }

    /// Opens one more connection.
    pub(crate) async fn open_another(&self, cause: StartCause) -> Result<(), UpstreamError> {
        let slot = self.closed().unwrap_or_else(|| self.slot(usize::MAX));
        let opening = slot.connection_for(&ConnectionUser::Gateway, cause);
        opening.await.map(|_| ())
    }

    /// Returns any open connection.
    pub(crate) fn open_connection(&self) -> Option<Arc<UpstreamConnection>> {
        self.slots().iter().find_map(|slot| slot.live())
    }

    /// Returns any open connection, or opens one for this cause.
    pub(crate) async fn any_connection(
        &self,
        cause: StartCause,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        match self.open_connection() {
            Some(connection) => Ok(connection),
            None => self.connection_for(&ConnectionUser::Gateway, cause).await,
        }
    }

    /// Returns an open connection for this user, preferably its own.
    pub(crate) fn open_connection_for(
        &self,
        user: &ConnectionUser,
    ) -> Option<Arc<UpstreamConnection>> {
        let (facts, connections) = self.view(user);
        connections.into_iter().nth(facts.nearest()?)?
    }

    /// Returns all open connections that this user may use.
    pub(crate) fn open_connections(&self, user: &ConnectionUser) -> Few<Arc<UpstreamConnection>> {
        let slots = self.slots().into_iter();
        slots.filter_map(|slot| slot.live_for(user)).collect()
    }
}
