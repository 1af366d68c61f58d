//! The connections to a server that clients of one kind share; of a modern one, everybody.
//!
//! A question of a legacy server on a pipe does not say which call it belongs to. So a connection carries
//! one call at a time that could be asked something, and a second such call gets a connection of its
//! own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::audience::Audience;
use super::lane::Lane;
use super::port::{Boarded, Port, Shared};
use crate::error::UpstreamError;
use crate::supervisor::{Few, StartCause, Tenant};
use crate::upstream::Wish;

/// Connections for those who are told the same.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    /// The one that everybody of this kind may use.
    first: Arc<Port>,
    /// Those for calls that may be asked something while others are.
    more: Mutex<Vec<Arc<Port>>>,
    limit: usize,
    tenant: Tenant,
}

/// How long a server may go on asking for a call that it was told to forget. The next call waits that long
/// rather than going to another server, which knows nothing of what this one was told before.
const LINGER: Duration = Duration::from_secs(2);

/// A connection on which nobody else can be asked anything, for as long as this is held.
///
/// A server that is told to forget a call may not have heard of it yet, and still ask something for
/// it. The connection goes to nobody else in that time, who would be asked another's question.
#[derive(Debug)]
pub(super) struct Turn {
    /// Where it is.
    pub(super) port: Arc<Port>,
    /// None where turns are not taken any more.
    permit: Option<OwnedSemaphorePermit>,
    is_running: bool,
}

impl Turn {
    /// A call is about to be made.
    pub(super) const fn begin(&mut self) {
        self.is_running = true;
    }

    /// The server has answered, or never will.
    pub(super) const fn end(&mut self) {
        self.is_running = false;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take().filter(|_| self.is_running) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let port = Arc::clone(&self.port);
            port.rests(true);
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                port.rests(false);
                drop(permit);
            });
        }
    }
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, wish: Wish, limit: usize) -> Self {
        Self::with(shared, wish, limit, Tenant::Shared)
    }

    /// One connection, for one client that may have something in it; others for what cannot be done there at the
    /// same time.
    pub(super) fn of_one(shared: Arc<Shared>, wish: Wish, limit: usize) -> Self {
        Self::with(shared, wish, limit, Tenant::Own)
    }

    /// One connection, which no client uses.
    pub(super) fn of_nobody(shared: Arc<Shared>, wish: Wish) -> Self {
        Self::with(shared, wish, 1, Tenant::Nobody)
    }

    fn with(shared: Arc<Shared>, wish: Wish, limit: usize, tenant: Tenant) -> Self {
        let audience = Audience::of_many();
        let first = Port::new(Arc::clone(&shared), wish, tenant, audience);
        Self {
            first,
            shared,
            more: Mutex::default(),
            limit,
            tenant,
        }
    }

    /// Connections for everybody, of which there is one already.
    pub(super) fn of_all(shared: Arc<Shared>, first: Arc<Port>, limit: usize) -> Self {
        Self {
            first,
            shared,
            more: Mutex::default(),
            limit,
            tenant: Tenant::Shared,
        }
    }

    /// Whether it is for more than one client.
    pub(super) fn is_shared(&self) -> bool {
        self.tenant == Tenant::Shared
    }

    /// The connection that everybody of this kind may use.
    pub(super) fn first(&self) -> Arc<Port> {
        Arc::clone(&self.first)
    }

    fn more(&self) -> MutexGuard<'_, Vec<Arc<Port>>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that carries no other call that could be asked something.
    pub(super) async fn turn(&self) -> Turn {
        let found = if self.first.is_resting() {
            None
        } else {
            self.free()
        };
        let (port, permit) = match found {
            Some(found) => found,
            None => (self.first(), self.first.turn().await),
        };
        Turn {
            port,
            permit,
            is_running: false,
        }
    }

    /// A port whose turn it is, rather one that is connected; none when there are as many as there may
    /// be and all are taken.
    fn free(&self) -> Option<(Arc<Port>, Option<OwnedSemaphorePermit>)> {
        let mut more = self.more();
        let (open, closed): (Vec<_>, Vec<_>) = std::iter::once(&self.first)
            .chain(more.iter())
            .partition(|port| port.live().is_some());
        let mut all = open.into_iter().chain(closed);
        let found = all.find_map(|port| Some((Arc::clone(port), Some(port.try_turn()?))));
        if found.is_some() || more.len() + 1 >= self.limit {
            return found;
        }
        let port = self.first.alike();
        more.push(Arc::clone(&port));
        let permit = port.try_turn();
        Some((port, permit))
    }

    /// A port that has no connection, if there is one.
    pub(super) fn closed(&self) -> Option<Arc<Port>> {
        self.closed_of(&self.more())
    }

    fn closed_of(&self, more: &[Arc<Port>]) -> Option<Arc<Port>> {
        let mut ports = std::iter::once(&self.first).chain(more);
        ports.find(|port| port.live().is_none()).map(Arc::clone)
    }

    /// The same, made if there is none.
    fn closed_port(&self) -> Arc<Port> {
        let mut more = self.more();
        self.closed_of(&more).unwrap_or_else(|| {
            let port = self.first.alike();
            more.push(Arc::clone(&port));
            port
        })
    }

    /// Any connection that is open.
    pub(super) fn open_lane(&self) -> Option<Arc<Lane>> {
        let more = self.more();
        let mut ports = std::iter::once(&self.first).chain(more.iter());
        ports.find_map(|port| port.live())
    }

    /// A connection, opened for this reason if there is none.
    pub(super) async fn lane_because(&self, cause: StartCause) -> Result<Arc<Lane>, UpstreamError> {
        match self.open_lane() {
            Some(lane) => Ok(lane),
            None => self.first.lane_because(cause).await,
        }
    }

    /// All connections that are open.
    pub(super) fn open_lanes(&self) -> Few<Arc<Lane>> {
        let more = self.more();
        let ports = std::iter::once(&self.first).chain(more.iter());
        ports.filter_map(|port| port.live()).collect()
    }

    /// A connection with room for a call; another one is opened when all are full, if there may be one.
    pub(super) async fn board(&self) -> Result<Boarded, UpstreamError> {
        if self.tenant != Tenant::Shared {
            return self.first.board().await;
        }
        loop {
            let entered = self.shared.supervisor.enter_any(|| self.open_lanes());
            let entered = entered.await;
            match entered.map_err(|kind| self.first.error(kind))? {
                Some((lane, in_use)) => return Ok(Boarded { lane, in_use }),
                None => self.open_another(StartCause::Request).await?,
            }
        }
    }

    /// Opens a connection more.
    pub(super) async fn open_another(&self, cause: StartCause) -> Result<(), UpstreamError> {
        let port = self.closed_port();
        port.lane_because(cause).await.map(|_| ())
    }
}
