//! The connections to a legacy server that clients of one kind share.
//!
//! A question of a legacy server on a pipe does not say which call it belongs to. So a connection carries
//! one call at a time that could be asked something, and a second such call gets a connection of its
//! own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::lane::Lane;
use super::port::{Port, Shared};
use crate::error::UpstreamError;
use crate::upstream::Wish;

/// Connections for those who are told the same.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    wish: Wish,
    slots: Mutex<Vec<Slot>>,
    limit: usize,
    idle: Duration,
}

#[derive(Debug)]
struct Slot {
    port: Arc<Port>,
    used: Instant,
}

/// A connection on which nobody else can be asked anything, for as long as this is held.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) lane: Arc<Lane>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, wish: Wish, limit: usize, idle: Duration) -> Self {
        let pool = Self {
            shared,
            wish,
            slots: Mutex::default(),
            limit: limit.max(1),
            idle,
        };
        let _ = pool.add();
        pool
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self) -> Arc<Port> {
        let port = Port::new(Arc::clone(&self.shared), self.wish.clone());
        let port = Arc::new(port);
        self.slots().push(Slot {
            port: Arc::clone(&port),
            used: Instant::now(),
        });
        port
    }

    /// The connection that everybody of this kind may use.
    pub(super) fn first(&self) -> Arc<Port> {
        let first = self.slots().first().map(|slot| Arc::clone(&slot.port));
        first.unwrap_or_else(|| self.add())
    }

    /// Every open connection.
    pub(super) fn lanes(&self) -> Vec<Arc<Lane>> {
        self.slots()
            .iter()
            .filter_map(|slot| slot.port.live())
            .collect()
    }

    /// A connection that carries no other call that could be asked something.
    pub(super) async fn turn(&self) -> Result<Turn, UpstreamError> {
        let ports: Vec<Arc<Port>> = {
            let mut slots = self.slots();
            self.forget_idle(&mut slots);
            slots.iter().map(|slot| Arc::clone(&slot.port)).collect()
        };
        for port in &ports {
            if let Some(lane) = port.live()
                && let Ok(permit) = Arc::clone(&lane.turn).try_acquire_owned()
            {
                return Ok(self.taken(port, lane, permit));
            }
        }
        let dead = ports.iter().find(|port| port.live().is_none());
        let port = match dead {
            Some(port) => Arc::clone(port),
            None if ports.len() < self.limit => self.add(),
            None => self.first(),
        };
        let lane = port.lane().await?;
        match Arc::clone(&lane.turn).acquire_owned().await {
            Ok(permit) => Ok(self.taken(&port, lane, permit)),
            Err(_) => Box::pin(self.turn()).await,
        }
    }

    fn taken(&self, port: &Arc<Port>, lane: Arc<Lane>, permit: OwnedSemaphorePermit) -> Turn {
        let mut slots = self.slots();
        if let Some(slot) = slots.iter_mut().find(|slot| Arc::ptr_eq(&slot.port, port)) {
            slot.used = Instant::now();
        }
        Turn {
            lane,
            _permit: permit,
        }
    }

    /// Lets connections go that nobody has needed for a while; the first stays.
    fn forget_idle(&self, slots: &mut Vec<Slot>) {
        let mut is_first = true;
        slots.retain(|slot| {
            let is_busy = slot
                .port
                .live()
                .is_some_and(|lane| lane.turn.available_permits() == 0);
            let keeps = std::mem::take(&mut is_first) || is_busy;
            keeps || slot.used.elapsed() < self.idle
        });
    }
}
