//! Last failure of a server, and the ongoing outage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mcpact_engine::time::Moment;

use super::status::ServerFailure;
use crate::error::Explanation;
use mcpact::connection::FailureText;

/// The last failure of a server. It is an outage until a call or a check succeeds.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    last: Option<(Explanation, Moment)>,
    /// Number of calls in a row that did not reach the server.
    pub(super) failed_deliveries: usize,
    pub(super) flag: Arc<OutageFlag>,
    /// Start of the outage, if there is one.
    since: Moment,
}

/// Lock-free view of the outage, read with every call.
#[derive(Debug, Default)]
pub(super) struct OutageFlag {
    is_set: AtomicBool,
    changes: AtomicU64,
}

impl OutageFlag {
    /// Returns true during an outage.
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Returns the number of changes of the outage or its cause.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn set(&self, is_set: bool) {
        self.is_set.store(is_set, Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

impl FailureLog {
    /// Returns the last failure.
    pub(super) fn last(&self, now: Moment) -> Option<ServerFailure> {
        let (why, when) = self.last.as_ref()?;
        Some(ServerFailure::new(why, now.since(*when)))
    }

    /// Returns the last failure with its hint.
    pub(super) fn last_cause(&self) -> Option<&Explanation> {
        self.last.as_ref().map(|(why, _)| why)
    }

    /// Returns the cause of the outage.
    pub(super) fn outage_cause(&self) -> Option<&Explanation> {
        self.last_cause().filter(|_| self.flag.is_set())
    }

    /// Returns the outage and its duration.
    pub(super) fn outage(&self, now: Moment) -> Option<ServerFailure> {
        let why = self.outage_cause()?;
        Some(ServerFailure::new(why, now.since(self.since)))
    }

    /// Records a failure after which the next call may succeed. The cause of an outage is kept.
    pub(super) fn record(&mut self, why: &Explanation, now: Moment) {
        let why = self.outage_cause().unwrap_or(why).clone();
        self.last = Some((why, now));
    }

    /// Records a failure and begins an outage, or updates its cause.
    pub(super) fn begin_outage(&mut self, why: Explanation, now: Moment) {
        let is_new = self.outage_cause() != Some(&why);
        if !self.flag.is_set() {
            self.since = now;
        }
        self.last = Some((why, now));
        if is_new {
            self.flag.set(true);
        }
    }

    /// Turns the last failure into an outage.
    pub(super) fn begin_outage_from_last(&mut self) {
        if let (Some((_, when)), false) = (&self.last, self.flag.is_set()) {
            self.since = *when;
            self.flag.set(true);
        }
    }

    /// Records a call that did not reach the server.
    pub(super) fn delivery_failed(&mut self, why: FailureText, now: Moment) {
        self.failed_deliveries = self.failed_deliveries.saturating_add(1);
        self.begin_outage(why.into(), now);
    }

    /// Records a success. Returns true if it ends an outage.
    pub(super) fn clear(&mut self) -> bool {
        self.failed_deliveries = 0;
        let was_set = self.flag.is_set();
        if was_set {
            self.flag.set(false);
        }
        was_set
    }
}
