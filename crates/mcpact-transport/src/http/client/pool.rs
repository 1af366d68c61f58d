//! Connection pool of one server: one request at a time per connection.
//!
//! Connections have no background job, which would cost two task switches per call; the caller polls them.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Uri;

use super::connection::OpenConnection;
use super::connector::Connector;
use crate::lock;

/// Maximum number of idle connections. With fewer than concurrent calls, connections would be opened all the time.
const MAX_IDLE: usize = 256;

/// Idle time before a connection is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Most recently used last.
    all: VecDeque<IdleConnection>,
    is_watched: bool,
}

#[derive(Debug)]
struct IdleConnection {
    io: Box<OpenConnection>,
    since: Instant,
}

/// A connection in use. Dropping it closes it.
#[derive(Debug)]
pub(super) struct PooledConnection {
    pool: Arc<Pool>,
    pub(super) io: Box<OpenConnection>,
    /// True if it was used before; the server may have closed it meanwhile.
    pub(super) is_used: bool,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
        })
    }

    /// Takes an idle connection.
    pub(super) fn take(self: &Arc<Self>) -> Option<PooledConnection> {
        loop {
            let IdleConnection { mut io, .. } = lock(&self.idle).all.pop_back()?;
            if io.is_ready() {
                return Some(self.pooled(io, true));
            }
        }
    }

    /// Opens a connection.
    pub(super) async fn connect(
        self: &Arc<Self>,
        address: &Uri,
    ) -> Result<PooledConnection, Box<dyn Error + Send + Sync>> {
        let stream = self.connector.connect(address.clone()).await?;
        let io = Box::new(OpenConnection::new(stream));
        Ok(self.pooled(io, false))
    }

    fn pooled(self: &Arc<Self>, io: Box<OpenConnection>, is_used: bool) -> PooledConnection {
        PooledConnection {
            pool: Arc::clone(self),
            io,
            is_used,
        }
    }

    fn keep(self: &Arc<Self>, io: Box<OpenConnection>) {
        let mut idle = lock(&self.idle);
        if idle.all.len() >= MAX_IDLE {
            idle.all.pop_front();
        }
        let since = Instant::now();
        idle.all.push_back(IdleConnection { io, since });
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(expire(Arc::downgrade(self)));
        }
    }

    /// Closes connections that were idle too long; returns whether any are left.
    fn close_expired(&self) -> bool {
        let mut idle = lock(&self.idle);
        let old = idle.all.iter();
        let old = old.take_while(|one| one.since.elapsed() >= IDLE).count();
        idle.all.drain(..old);
        idle.is_watched = !idle.all.is_empty();
        idle.is_watched
    }
}

/// Closes idle connections while there are any.
async fn expire(pool: std::sync::Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_expired()) {
            return;
        }
    }
}

impl PooledConnection {
    /// Returns the connection to the pool after a complete response.
    pub(super) fn release(self) {
        // Unexpected data makes it unusable.
        if self.io.buffer.is_empty() {
            self.pool.keep(self.io);
        }
    }
}
