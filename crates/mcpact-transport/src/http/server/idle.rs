//! Idle connections and stalled transfers, without a timer per request.
//!
//! A background job counts ticks. A connection that begins to wait for a request stores the current tick. If it still
//! waits too many ticks later, it is closed. A request costs two atomic stores.
//!
//! The same holds for transfers that hold memory: if memory is scarce, connections whose peer makes no progress for some
//! ticks are closed. If there are too many connections, the one that waits longest for a request is closed.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::OwnedSemaphorePermit;

use crate::budget::{ConnectionAccount, MemoryBudget, ScarcityWatch};
use crate::lock;

/// Ticks per timeout; the precision of the timeout.
const TICKS: u64 = 8;

/// Ticks without progress after which a transfer is stalled.
const STALLED_TICKS: u64 = TICKS / 2;

/// Value of the start tick while a request is in flight.
const IN_REQUEST: u64 = u64::MAX;

/// Value of the transfer tick while the peer has nothing to do.
const NO_TRANSFER: u64 = u64::MAX;

/// Idle monitor of all connections of a server.
#[derive(Debug)]
pub(super) struct IdleMonitor {
    tick: AtomicU64,
    registry: Mutex<Registry>,
    scarcity: ScarcityWatch,
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
    /// Tick of the last progress of a transfer.
    progress: AtomicU64,
    /// A [`CloseCause`], or 0.
    closed: AtomicU8,
    is_closing: AtomicBool,
    /// Set if it became a WebSocket.
    is_socket: AtomicBool,
    connection: AtomicWaker,
    account: ConnectionAccount,
}

/// Reason why the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseCause {
    /// No request came in time.
    Idle = 1,
    /// It was the longest idle one, and there was no room for another connection.
    Evicted = 2,
    /// Memory was scarce, and the peer did not continue its transfer.
    Stalled = 3,
}

impl ConnectionState {
    fn close(&self, cause: CloseCause) {
        self.closed.store(cause as u8, Ordering::Release);
        self.connection.wake();
    }

    fn close_cause(&self) -> Option<CloseCause> {
        let causes = [CloseCause::Idle, CloseCause::Evicted, CloseCause::Stalled];
        let closed = self.closed.load(Ordering::Acquire);
        causes.into_iter().find(|cause| *cause as u8 == closed)
    }
}

/// A connection's handle to the monitor; dropping it unregisters the connection, and returns its permit.
#[derive(Debug)]
pub(super) struct MonitoredConnection {
    monitor: Arc<IdleMonitor>,
    state: Arc<ConnectionState>,
    id: u64,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Usage of a WebSocket. While it is idle, its connection may be closed to make room for another one.
#[derive(Debug)]
pub struct SocketUsage(Arc<MonitoredConnection>);

impl SocketUsage {
    /// Records that a request is in flight.
    pub fn begin(&self) {
        self.0.state.since.store(IN_REQUEST, Ordering::Relaxed);
    }

    /// Records that no request is in flight from now on.
    pub fn rest(&self) {
        self.0.wait_for_request();
    }
}

/// Instruction for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    /// Continue.
    Serve,
    /// Finish the request in flight, then close.
    Drain,
    /// Close at once.
    Close(CloseCause),
}

/// Marks a request as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<MonitoredConnection>);

impl IdleMonitor {
    pub(super) fn new(budget: &'static MemoryBudget) -> Self {
        Self {
            tick: AtomicU64::new(0),
            registry: Mutex::default(),
            scarcity: ScarcityWatch::new(budget),
        }
    }

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
        let is_scarce = self.scarcity.is_scarce();
        // The first tick was incomplete.
        let is_over = |since: u64, ticks: u64| since != u64::MAX && tick > since + ticks;
        for state in lock(&self.registry).all.values() {
            let is_socket = state.is_socket.load(Ordering::Relaxed);
            if !is_socket && is_over(state.since.load(Ordering::Relaxed), TICKS) {
                state.close(CloseCause::Idle);
            } else if is_scarce && is_over(state.progress.load(Ordering::Relaxed), STALLED_TICKS) {
                state.close(CloseCause::Stalled);
            }
        }
    }

    /// Closes the connection that waits longest for a request, or else the longest idle WebSocket; none if all have a
    /// request.
    pub(super) fn close_longest_idle(&self) {
        let registry = lock(&self.registry);
        let waiting = registry.all.iter().filter_map(|(id, state)| {
            let since = state.since.load(Ordering::Relaxed);
            let is_open = since != IN_REQUEST && state.closed.load(Ordering::Relaxed) == 0;
            let is_socket = state.is_socket.load(Ordering::Relaxed);
            is_open.then_some(((is_socket, since, *id), state))
        });
        if let Some((_, state)) = waiting.min_by_key(|(age, _)| *age) {
            state.close(CloseCause::Evicted);
        }
    }

    /// Registers a connection that waits for its first request.
    pub(super) fn register(
        self: &Arc<Self>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Arc<MonitoredConnection> {
        let mut registry = lock(&self.registry);
        let state = Arc::new(ConnectionState {
            since: AtomicU64::new(self.tick.load(Ordering::Relaxed)),
            progress: AtomicU64::new(NO_TRANSFER),
            is_closing: AtomicBool::new(registry.is_closing),
            ..ConnectionState::default()
        });
        registry.last += 1;
        let id = registry.last;
        registry.all.insert(id, Arc::clone(&state));
        Arc::new(MonitoredConnection {
            monitor: Arc::clone(self),
            state,
            id,
            _permit: permit,
        })
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
        if let Some(cause) = self.state.close_cause() {
            Directive::Close(cause)
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

    /// Counts the connection as cut.
    pub(super) fn record_cut(&self) {
        self.monitor.scarcity.budget().record_cut();
    }

    /// Marks the start of a request.
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.state.since.store(IN_REQUEST, Ordering::Relaxed);
        RequestGuard(Arc::clone(self))
    }

    fn wait_for_request(&self) {
        let tick = self.monitor.tick.load(Ordering::Relaxed);
        self.state.since.store(tick, Ordering::Relaxed);
    }

    /// Resolves when the server closes the connection.
    pub(super) async fn closed(&self) {
        poll_fn(|context| match self.directive(context) {
            Directive::Close(_) => Poll::Ready(()),
            Directive::Serve | Directive::Drain => Poll::Pending,
        })
        .await;
    }
}

impl RequestGuard {
    /// Records that the peer has to send or read more.
    pub(super) fn transfer_continues(&self) {
        let tick = self.0.monitor.tick.load(Ordering::Relaxed);
        self.0.state.progress.store(tick, Ordering::Relaxed);
    }

    /// Makes the connection a WebSocket, which is idle.
    pub(super) fn become_socket(&self) -> (Arc<MonitoredConnection>, SocketUsage) {
        self.0.state.is_socket.store(true, Ordering::Relaxed);
        self.0.wait_for_request();
        (Arc::clone(&self.0), SocketUsage(Arc::clone(&self.0)))
    }

    /// Records that the peer has nothing to do.
    pub(super) fn transfer_pauses(&self) {
        self.0.state.progress.store(NO_TRANSFER, Ordering::Relaxed);
    }

    /// Returns the account of the connection.
    pub(super) fn account(&self) -> &ConnectionAccount {
        &self.0.state.account
    }

    /// Returns the budget of the server.
    pub(super) fn budget(&self) -> &'static MemoryBudget {
        self.0.monitor.scarcity.budget()
    }
}

impl Drop for MonitoredConnection {
    fn drop(&mut self) {
        lock(&self.monitor.registry).all.remove(&self.id);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.transfer_pauses();
        if !self.0.state.is_socket.load(Ordering::Relaxed) {
            self.0.wait_for_request();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const CLOSE_IDLE: Directive = Directive::Close(CloseCause::Idle);

    fn directive(monitored: &MonitoredConnection) -> Directive {
        monitored.directive(&Context::from_waker(Waker::noop()))
    }

    fn monitor() -> Arc<IdleMonitor> {
        let budget = Box::leak(Box::new(MemoryBudget::new(100)));
        Arc::new(IdleMonitor::new(budget))
    }

    /// A connection without a request makes room for another one, the longest idle one first.
    #[test]
    fn longest_idle_connection_is_closed_first() {
        let monitor = monitor();
        let [first, second, third] = [
            monitor.register(None),
            monitor.register(None),
            monitor.register(None),
        ];
        let guard = second.begin_request();
        monitor.advance();
        drop(first.begin_request());
        let all = || [directive(&first), directive(&second), directive(&third)];
        let evicted = Directive::Close(CloseCause::Evicted);
        monitor.close_longest_idle();
        assert_eq!(all(), [Directive::Serve, Directive::Serve, evicted]);
        monitor.close_longest_idle();
        assert_eq!(all(), [evicted, Directive::Serve, evicted]);
        monitor.close_longest_idle();
        assert_eq!(directive(&second), Directive::Serve);
        drop(guard);
        monitor.close_longest_idle();
        assert_eq!(directive(&second), evicted);
    }

    /// A WebSocket may be idle, and makes room after other connections if it has no request in flight.
    #[test]
    fn idle_socket_makes_room_last() {
        let monitor = monitor();
        let [busy, idle, other] = [(); 3].map(|()| monitor.register(None));
        let sockets = [&busy, &idle].map(|socket| socket.begin_request().become_socket().1);
        sockets[0].begin();
        (0..=TICKS).for_each(|_| monitor.advance());
        let all = || [directive(&busy), directive(&idle), directive(&other)];
        assert_eq!(all(), [Directive::Serve, Directive::Serve, CLOSE_IDLE]);
        drop(other);
        let other = monitor.register(None);
        let evicted = Directive::Close(CloseCause::Evicted);
        let all = || [directive(&busy), directive(&idle), directive(&other)];
        monitor.close_longest_idle();
        assert_eq!(all(), [Directive::Serve, Directive::Serve, evicted]);
        monitor.close_longest_idle();
        monitor.close_longest_idle();
        assert_eq!(all(), [Directive::Serve, evicted, evicted]);
        sockets[0].rest();
        monitor.close_longest_idle();
        assert_eq!(all(), [evicted; 3]);
    }

    /// A transfer without progress is cut only while memory is scarce.
    #[test]
    fn stalled_transfers_are_cut_while_memory_is_scarce() {
        let monitor = monitor();
        let connections = [
            monitor.register(None),
            monitor.register(None),
            monitor.register(None),
        ];
        let [stalled, lively, paused] = &connections;
        let guards = [stalled, lively, paused].map(|connection| connection.begin_request());
        guards.iter().for_each(RequestGuard::transfer_continues);
        guards[2].transfer_pauses();
        let pass = |ticks: u64| {
            for _ in 0..ticks {
                monitor.advance();
                guards[1].transfer_continues();
            }
            [stalled, lively, paused].map(|connection| directive(connection))
        };
        assert_eq!(pass(2 * TICKS), [Directive::Serve; 3]);
        let used = monitor.scarcity.budget().charge(80).unwrap();
        let cut = Directive::Close(CloseCause::Stalled);
        assert_eq!(pass(1), [cut, Directive::Serve, Directive::Serve]);
        drop(used);
        guards[1].transfer_continues();
        assert!(monitor.scarcity.budget().charge(101).is_err(), "a shortage");
        (0..=STALLED_TICKS).for_each(|_| monitor.advance());
        assert_eq!(directive(lively), Directive::Serve, "the shortage is over");
    }

    /// T9: a connection that waits longer than the limit is closed. One with a request in flight is not, nor one that
    /// has just begun to wait.
    #[test]
    fn only_idle_connections_are_closed() {
        let monitor = monitor();
        let [silent, begin_request, lively] = [
            monitor.register(None),
            monitor.register(None),
            monitor.register(None),
        ];
        let answering = begin_request.begin_request();
        for _ in 0..=TICKS {
            assert_eq!(directive(&silent), Directive::Serve);
            monitor.advance();
            drop(lively.begin_request());
        }
        assert_eq!(directive(&silent), CLOSE_IDLE);
        assert_eq!(directive(&begin_request), Directive::Serve);
        assert_eq!(directive(&lively), Directive::Serve);
        drop(answering);
        (0..TICKS).for_each(|_| monitor.advance());
        assert_eq!(directive(&begin_request), Directive::Serve);
        monitor.advance();
        assert_eq!(directive(&begin_request), CLOSE_IDLE);
    }

    #[test]
    fn drain_reaches_every_connection_and_none_is_kept() {
        let monitor = monitor();
        let early = monitor.register(None);
        monitor.drain();
        let late = monitor.register(None);
        assert_eq!([directive(&early), directive(&late)], [Directive::Drain; 2]);
        drop((early, late));
        assert!(lock(&monitor.registry).all.is_empty());
    }
}
