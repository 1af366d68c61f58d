//! Who hears what belongs to no call. Connections come and go; the audience stays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpact_bridge::listen::Standing;
use mcpact_engine::server::Scope;

use super::ear::{Ear, FarEar};
use super::lane::Lane;
use super::listens::Listens;
use crate::upstream::{Ask, Reply};

/// How many subscriptions of a legacy client are carried over to another session.
const SUBSCRIPTIONS: usize = 4096;

/// How many questions wait for a client that has not finished its handshake; the rest is refused.
const EARLY: usize = 8;

/// Everybody who is told what the server says unasked, on whichever connection it says it.
#[derive(Debug)]
pub(super) struct Audience {
    /// The modern clients that listen.
    pub(super) listens: Listens,
    /// The legacy client whose session this is.
    owner: Mutex<Option<FarEar>>,
    /// What the server could not wait to ask, while a legacy client is in its handshake.
    early: Mutex<Option<Vec<Ask>>>,
    /// What the owner has set at a legacy server.
    standing: Mutex<Standing>,
    /// The connection of the moment, or the last one.
    lane: Mutex<Option<Weak<Lane>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Audience {
    /// For a legacy client that is in its handshake.
    pub(super) fn of_one() -> Self {
        Self::new(Some(Vec::new()))
    }

    /// For modern clients, none of which can be asked anything out of the blue.
    pub(super) fn of_many() -> Self {
        Self::new(None)
    }

    fn new(early: Option<Vec<Ask>>) -> Self {
        Self {
            listens: Listens::new(),
            owner: Mutex::default(),
            early: Mutex::new(early),
            standing: Mutex::new(Standing::new(SUBSCRIPTIONS)),
            lane: Mutex::default(),
        }
    }

    /// The session belongs to this client, which hears everything.
    pub(super) fn belong_to(&self, ear: &Ear) {
        *lock(&self.owner) = Some(ear.downgrade());
    }

    /// The client whose session this is, while it is there.
    pub(super) fn owner(&self) -> Option<Ear> {
        lock(&self.owner).as_ref()?.near()
    }

    /// Keeps a question for a client that is in its handshake; gives it back if none is.
    pub(super) fn keep(&self, ask: Ask) -> Option<Ask> {
        match &mut *lock(&self.early) {
            Some(early) if early.len() < EARLY => {
                early.push(ask);
                None
            }
            Some(_) | None => Some(ask),
        }
    }

    /// The client can be asked from now on; what it is to be asked at once.
    pub(super) fn confirmed(&self) -> Vec<Ask> {
        lock(&self.early).take().unwrap_or_default()
    }

    pub(super) fn standing(&self) -> MutexGuard<'_, Standing> {
        lock(&self.standing)
    }

    /// The connection of the moment, if there is one.
    pub(super) fn lane(&self) -> Option<Arc<Lane>> {
        lock(&self.lane).as_ref()?.upgrade()
    }

    /// Whether somebody waits to be told something, so that a lost connection is to be replaced at
    /// once.
    pub(super) fn is_waiting(&self) -> bool {
        let is_subscribed = || self.owner().is_some() && self.standing().is_waiting();
        self.listens.are_any() || is_subscribed()
    }

    /// Moves to another connection. A legacy server is told again what it was told before, and
    /// everybody hears of everything that may have changed meanwhile.
    pub(super) async fn move_to(&self, lane: &Arc<Lane>) {
        let before = lock(&self.lane).replace(Arc::downgrade(lane));
        let acts = self.listens.restored(&lane.upstream);
        if before.is_some()
            && let Some(owner) = self.owner()
        {
            self.set_again(lane, &owner).await;
        }
        lane.perform(acts).await;
    }

    async fn set_again(&self, lane: &Lane, owner: &Ear) {
        let again = self.standing().again();
        for (method, params) in again {
            match lane.request(method, &params).await {
                Ok(Reply::Result(_)) => {}
                Ok(Reply::Error(_)) | Err(_) => {
                    tracing::warn!(%method, "the new session does not take what the lost one took");
                }
            }
        }
        let missed = self
            .standing()
            .missed(&lane.upstream.introduction.capabilities);
        for (method, params) in missed {
            owner.hint(Scope::Connection, method, &params);
        }
    }
}
