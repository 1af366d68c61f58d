//! Idle timeout of connections, without a timer per request.
//!
//! A background job counts ticks. A connection that begins to wait for a request stores the current tick. If it still
//! waits too many ticks later, it is closed. A request costs two atomic stores.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;

use crate::lock;

/// Ticks per timeout; the precision of the timeout.
const TICKS: u64 = 8;

/// Value of the start tick while a request is in flight.
const IN_REQUEST: u64 = u64::MAX;

/// Idle monitor of all connections of a server.
#[derive(Debug, Default)]
pub(super) struct IdleMonitor {
    tick: AtomicU64,
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    all: HashMap<u64, Arc<ConnectionState>>,
    last: u64,
    is_closing: bool,
}

/// State of one connection.
#[derive(Debug, Default)]
struct ConnectionState {
    /// Tick at which it began to wait.
    since: AtomicU64,
    is_late: AtomicBool,
    is_closing: AtomicBool,
    connection: AtomicWaker,
}

/// A connection's handle to the monitor; dropping it unregisters the connection.
#[derive(Debug)]
pub(super) struct MonitoredConnection {
    monitor: Arc<IdleMonitor>,
    state: Arc<ConnectionState>,
    id: u64,
}

/// Instruction for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    /// Continue.
    Serve,
    /// Finish the request in flight, then close.
    Drain,
    /// Close at once: the connection was idle for too long.
    Close,
}

/// Marks a request as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard {
    monitor: Arc<IdleMonitor>,
    state: Arc<ConnectionState>,
}

impl IdleMonitor {
    /// Runs forever; connections that are idle for longer than `limit` are closed.
    pub(super) async fn run(self: Arc<Self>, limit: Duration) {
        let pause = limit.div_f64(TICKS as f64).max(Duration::from_millis(1));
        loop {
            tokio::time::sleep(pause).await;
            self.advance();
        }
    }

    fn advance(&self) {
        let tick = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        for state in lock(&self.registry).all.values() {
            let since = state.since.load(Ordering::Relaxed);
            // The first tick was incomplete.
            if since != IN_REQUEST && tick > since + TICKS {
                state.is_late.store(true, Ordering::Release);
                state.connection.wake();
            }
        }
    }

    /// Registers a connection that waits for its first request.
    pub(super) fn register(self: &Arc<Self>) -> MonitoredConnection {
        let mut registry = lock(&self.registry);
        let state = Arc::new(ConnectionState {
            since: AtomicU64::new(self.tick.load(Ordering::Relaxed)),
            is_closing: AtomicBool::new(registry.is_closing),
            ..ConnectionState::default()
        });
        registry.last += 1;
        let id = registry.last;
        registry.all.insert(id, Arc::clone(&state));
        MonitoredConnection {
            monitor: Arc::clone(self),
            state,
            id,
        }
    }

    /// Drains every connection, including later ones.
    pub(super) fn drain(&self) {
        let mut registry = lock(&self.registry);
        registry.is_closing = true;
        for state in registry.all.values() {
            state.is_closing.store(true, Ordering::Release);
            state.connection.wake();
        }
    }
}

impl MonitoredConnection {
    /// Returns the current instruction; the task of `context` is woken when it changes.
    pub(super) fn directive(&self, context: &Context<'_>) -> Directive {
        self.state.connection.register(context.waker());
        if self.state.is_late.load(Ordering::Acquire) {
            Directive::Close
        } else if self.is_closing() {
            Directive::Drain
        } else {
            Directive::Serve
        }
    }

    /// Returns whether the server is shutting down. Requests are not woken for it one by one.
    pub(super) fn is_closing(&self) -> bool {
        self.state.is_closing.load(Ordering::Acquire)
    }

    /// Marks the start of a request.
    pub(super) fn begin_request(&self) -> RequestGuard {
        self.state.since.store(IN_REQUEST, Ordering::Relaxed);
        RequestGuard {
            monitor: Arc::clone(&self.monitor),
            state: Arc::clone(&self.state),
        }
    }
}

impl Drop for MonitoredConnection {
    fn drop(&mut self) {
        lock(&self.monitor.registry).all.remove(&self.id);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let tick = self.monitor.tick.load(Ordering::Relaxed);
        self.state.since.store(tick, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn directive(monitored: &MonitoredConnection) -> Directive {
        monitored.directive(&Context::from_waker(Waker::noop()))
    }

    /// T9: a connection that waits longer than the limit is closed. One with a request in flight is not, nor one that
    /// has just begun to wait.
    #[test]
    fn only_idle_connections_are_closed() {
        let monitor = Arc::new(IdleMonitor::default());
        let [silent, begin_request, lively] =
            [monitor.register(), monitor.register(), monitor.register()];
        let answering = begin_request.begin_request();
        for _ in 0..=TICKS {
            assert_eq!(directive(&silent), Directive::Serve);
            monitor.advance();
            drop(lively.begin_request());
        }
        assert_eq!(directive(&silent), Directive::Close);
        assert_eq!(directive(&begin_request), Directive::Serve);
        assert_eq!(directive(&lively), Directive::Serve);
        drop(answering);
        (0..TICKS).for_each(|_| monitor.advance());
        assert_eq!(directive(&begin_request), Directive::Serve);
        monitor.advance();
        assert_eq!(directive(&begin_request), Directive::Close);
    }

    #[test]
    fn drain_reaches_every_connection_and_none_is_kept() {
        let monitor = Arc::new(IdleMonitor::default());
        let early = monitor.register();
        monitor.drain();
        let late = monitor.register();
        assert_eq!([directive(&early), directive(&late)], [Directive::Drain; 2]);
        drop((early, late));
        assert!(lock(&monitor.registry).all.is_empty());
    }
}
