//! State of a client that does not depend on the session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use mcpact_engine::client::ClientTerms;
use mcpact_spec::LogLevel;

use super::changes::{Change, ChangeQueue};
use super::handlers::Handlers;
use super::pending::PendingRequests;
use super::session::Sessions;
use crate::connection::ToolHeaders;
use crate::lock;
use crate::validation::Validation;

/// State shared by the handles of a client and the handlers of its sessions. No lock is held across an await.
#[derive(Debug)]
pub(super) struct Shared {
    /// Name of the server in logs and errors.
    pub(super) target: Arc<str>,
    pub(super) terms: ClientTerms,
    pub(super) handlers: Handlers,
    pub(super) limits: Limits,
    pub(super) validation: Validation,
    pub(super) tool_headers: ToolHeaders,
    pub(super) pending: PendingRequests,
    listeners: Mutex<Vec<Weak<ChangeQueue>>>,
    subscribed: Mutex<HashMap<String, usize>>,
    log_level: Mutex<Option<LogLevel>>,
    last_id: AtomicI64,
    sessions: OnceLock<Weak<Sessions>>,
}

/// Limits of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) pages: usize,
    pub(super) rounds: usize,
}

impl Shared {
    pub(super) fn new(
        target: &str,
        terms: ClientTerms,
        handlers: Handlers,
        limits: Limits,
        log_level: Option<LogLevel>,
        validation: Validation,
    ) -> Self {
        Self {
            target: Arc::from(target),
            terms,
            handlers,
            limits,
            validation,
            tool_headers: ToolHeaders::default(),
            pending: PendingRequests::default(),
            listeners: Mutex::default(),
            subscribed: Mutex::default(),
            log_level: Mutex::new(log_level),
            last_id: AtomicI64::new(0),
            sessions: OnceLock::new(),
        }
    }

    /// Returns the id for the next request, unique over all sessions.
    pub(super) fn next_id(&self) -> i64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn set_sessions(&self, sessions: &Arc<Sessions>) {
        self.sessions.get_or_init(|| Arc::downgrade(sessions));
        if self.pending.is_closed() {
            sessions.stop();
        }
    }

    /// Closes the connection because of a message of the server.
    pub(super) fn disconnect(&self) {
        self.pending.close();
        if let Some(sessions) = self.sessions.get().and_then(Weak::upgrade) {
            sessions.stop();
        }
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub(super) fn add_listener(&self, queue: &Arc<ChangeQueue>) {
        let mut all = lock(&self.listeners);
        all.retain(|listener| listener.strong_count() > 0);
        all.push(Arc::downgrade(queue));
    }

    /// Returns the live subscriptions.
    fn listeners(&self) -> Vec<Arc<ChangeQueue>> {
        let all = lock(&self.listeners);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Passes a change on to the subscriptions that want it.
    pub(super) fn push_change(&self, change: &Change) {
        for queue in self.listeners() {
            if queue.wants(change) {
                queue.push(change);
            }
        }
    }

    /// Ends all subscriptions, with the connection.
    pub(super) fn end_changes(&self) {
        for queue in self.listeners() {
            queue.end();
        }
    }

    /// Counts a subscription to a resource; `true` for the first.
    pub(super) fn subscribe(&self, uri: &str) -> bool {
        let mut all = lock(&self.subscribed);
        let count = all.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Removes a subscription to a resource; `true` for the last.
    pub(super) fn unsubscribe(&self, uri: &str) -> bool {
        let mut all = lock(&self.subscribed);
        let Some(count) = all.get_mut(uri) else {
            return false;
        };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            all.remove(uri);
        }
        is_last
    }

    pub(super) fn subscribed(&self) -> Vec<String> {
        lock(&self.subscribed).keys().cloned().collect()
    }
}
