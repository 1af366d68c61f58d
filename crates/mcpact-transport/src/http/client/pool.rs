//! Connections to one server: one request at a time on each, driven by whoever waits for the answer.
//!
//! A task of its own for every connection would cost two changes of task for every call.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Uri;

use super::connector::Connector;
use super::open::Open;

/// How many idle connections are kept: fewer than calls in flight would mean to connect anew all the time.
const MAX_IDLE: usize = 256;

/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Those that were used last are at the end.
    all: VecDeque<Rested>,
    is_watched: bool,
}

#[derive(Debug)]
struct Rested {
    open: Box<Open>,
    since: Instant,
}

/// A connection in use; whoever drops it closes it.
#[derive(Debug)]
pub(super) struct Loan {
    pool: Arc<Pool>,
    pub(super) open: Box<Open>,
    /// Whether it was used before, and may have been closed meanwhile.
    pub(super) is_used: bool,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that waits.
    pub(super) fn take(self: &Arc<Self>) -> Option<Loan> {
        loop {
            let Rested { mut open, .. } = self.idle().all.pop_back()?;
            if open.is_ready() {
                return Some(self.lend(open, true));
            }
        }
    }

    /// A new connection.
    pub(super) async fn connect(
        self: &Arc<Self>,
        address: &Uri,
    ) -> Result<Loan, Box<dyn Error + Send + Sync>> {
        let pipe = self.connector.connect(address.clone()).await?;
        let open = Box::new(Open::new(pipe));
        Ok(self.lend(open, false))
    }

    fn lend(self: &Arc<Self>, open: Box<Open>, is_used: bool) -> Loan {
        Loan {
            pool: Arc::clone(self),
            open,
            is_used,
        }
    }

    fn keep(self: &Arc<Self>, open: Box<Open>) {
        let mut idle = self.idle();
        if idle.all.len() >= MAX_IDLE {
            idle.all.pop_front();
        }
        let since = Instant::now();
        idle.all.push_back(Rested { open, since });
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Closes what was not used for long, and tells whether anything is left.
    fn tidy(&self) -> bool {
        let mut idle = self.idle();
        let old = idle.all.iter();
        let old = old.take_while(|one| one.since.elapsed() >= IDLE).count();
        idle.all.drain(..old);
        idle.is_watched = !idle.all.is_empty();
        idle.is_watched
    }
}

/// Closes idle connections in time, for as long as there are any.
async fn watch(pool: std::sync::Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        if !pool.upgrade().is_some_and(|pool| pool.tidy()) {
            return;
        }
    }
}

impl Loan {
    /// Whoever has read an answer to its end gives the connection back.
    pub(super) fn give_back(self) {
        // What comes after the end answers nothing that was asked.
        if self.open.came.is_empty() {
            self.pool.keep(self.open);
        }
    }
}
