//! State shared by the handles of a client and its driver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::pact::Pact;
use mcpact_engine::transcript::Transcript;
use mcpact_spec::LogLevel;

use super::changes::ChangeQueue;
use super::handlers::Handlers;
use crate::validation::Validation;

/// Result of a negotiation.
#[derive(Debug)]
pub(super) struct Agreement {
    pub(super) pact: Arc<Pact>,
    pub(super) instructions: Option<String>,
    pub(super) transcript: Transcript,
}

/// State shared by the handles of a client and its driver. No lock is held across an await.
#[derive(Debug)]
pub(super) struct Shared {
    /// Name of the server in logs and errors.
    pub(super) target: String,
    pub(super) handlers: Handlers,
    pub(super) timeout: Duration,
    pub(super) page_limit: usize,
    pub(super) round_limit: usize,
    pub(super) is_http: bool,
    pub(super) validation: Validation,
    agreement: RwLock<Option<Arc<Agreement>>>,
    listeners: Mutex<Vec<Weak<ChangeQueue>>>,
    annotations: Mutex<HashMap<String, Arc<[Annotation]>>>,
    subscribed: Mutex<HashMap<String, usize>>,
    log_level: Mutex<Option<LogLevel>>,
    tickets: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        target: String,
        handlers: Handlers,
        limits: Limits,
        is_http: bool,
        log_level: Option<LogLevel>,
        validation: Validation,
    ) -> Self {
        Self {
            target,
            handlers,
            timeout: limits.timeout,
            page_limit: limits.pages,
            round_limit: limits.rounds,
            is_http,
            validation,
            agreement: RwLock::new(None),
            listeners: Mutex::default(),
            annotations: Mutex::default(),
            subscribed: Mutex::default(),
            log_level: Mutex::new(log_level),
            tickets: AtomicU64::new(1),
        }
    }

    /// Returns a unique number for a call.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn agreement(&self) -> Option<Arc<Agreement>> {
        self.agreement
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn agree(&self, agreement: Agreement) {
        *self
            .agreement
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(agreement));
    }

    pub(super) fn log_level(&self) -> Option<LogLevel> {
        *lock(&self.log_level)
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        *lock(&self.log_level) = Some(level);
    }

    pub(super) fn add_listener(&self, queue: &Arc<ChangeQueue>) {
        lock(&self.listeners).push(Arc::downgrade(queue));
    }

    /// Returns the live subscriptions.
    pub(super) fn listeners(&self) -> Vec<Arc<ChangeQueue>> {
        let mut all = lock(&self.listeners);
        all.retain(|listener| listener.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn annotations(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        lock(&self.annotations).get(tool).cloned()
    }

    pub(super) fn remember_annotations(&self, all: HashMap<String, Arc<[Annotation]>>) {
        *lock(&self.annotations) = all;
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
