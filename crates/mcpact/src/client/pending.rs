//! Requests in flight: timeouts, progress and subscriptions.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_engine::refusal::ApiMisuse;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::changes::ChangeQueue;
use super::client_error::ClientError;
use crate::lock;
use crate::model::Progress;

/// Callback for progress.
pub(super) type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;

/// Timeout of a request, which progress restarts. No deadline means never.
#[derive(Clone, Copy, Debug)]
struct Timer {
    timeout: RequestTimeout,
    until: Option<Instant>,
    at_most: Option<Instant>,
}

impl Timer {
    fn new(timeout: RequestTimeout, now: Instant) -> Self {
        let at_most = now.checked_add(timeout.maximum);
        let mut timer = Self {
            timeout,
            until: None,
            at_most,
        };
        timer.restart(now);
        timer
    }

    fn restart(&mut self, now: Instant) {
        let until = now.checked_add(self.timeout.timeout);
        self.until = until.into_iter().chain(self.at_most).min();
    }

    fn progress(&mut self, now: Instant) {
        if self.timeout.on_progress == OnProgress::Extend {
            self.restart(now);
        }
    }
}

/// End of a request other than a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingEnd {
    TimedOut,
    /// The server ended the subscription.
    ByServer,
    /// The client is closing.
    Closing,
}

/// A request in flight.
pub(super) struct Pending {
    timer: Mutex<Timer>,
    /// Raw progress token.
    token: Option<String>,
    progress: Option<ProgressCallback>,
    changes: Option<Arc<ChangeQueue>>,
    end: Mutex<Option<PendingEnd>>,
    ended: Notify,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}

impl Pending {
    pub(super) fn new(
        timeout: RequestTimeout,
        token: Option<String>,
        progress: Option<ProgressCallback>,
        changes: Option<Arc<ChangeQueue>>,
    ) -> Self {
        Self {
            timer: Mutex::new(Timer::new(timeout, Instant::now())),
            token,
            progress,
            changes,
            end: Mutex::default(),
            ended: Notify::new(),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        lock(&self.timer).until
    }

    fn end(&self, end: PendingEnd) {
        *lock(&self.end) = Some(end);
        self.ended.notify_one();
    }

    /// Waits until the request times out or is ended.
    pub(super) async fn ended(&self) -> PendingEnd {
        loop {
            let Some(until) = self.deadline() else {
                self.ended.notified().await;
                return lock(&self.end).unwrap_or(PendingEnd::Closing);
            };
            if until <= Instant::now() {
                return PendingEnd::TimedOut;
            }
            // Progress may have moved the deadline by then.
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.ended.notified() => {
                    return lock(&self.end).unwrap_or(PendingEnd::Closing);
                }
            }
        }
    }
}

/// The requests in flight of a client.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    requests: Mutex<Requests>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Requests {
    all: HashMap<i64, Arc<Pending>>,
    is_closed: bool,
}

/// Removes a request when it ends or is dropped.
#[derive(Debug)]
pub(super) struct PendingGuard<'a> {
    requests: &'a PendingRequests,
    id: i64,
    pub(super) pending: Arc<Pending>,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        let mut requests = lock(&self.requests.requests);
        requests.all.remove(&self.id);
        let is_empty = requests.all.is_empty();
        drop(requests);
        if is_empty {
            self.requests.emptied.notify_waiters();
        }
    }
}

impl PendingRequests {
    /// Adds a request, unless the client is closed or the limit is reached.
    pub(super) fn add(
        &self,
        id: i64,
        pending: Pending,
        limit: usize,
    ) -> Result<PendingGuard<'_>, ClientError> {
        let pending = Arc::new(pending);
        let mut requests = lock(&self.requests);
        if requests.is_closed {
            return Err(ClientError::Closed);
        }
        if requests.all.len() >= limit {
            return Err(ApiMisuse::TooMany { limit }.into());
        }
        requests.all.insert(id, Arc::clone(&pending));
        drop(requests);
        Ok(PendingGuard {
            requests: self,
            id,
            pending,
        })
    }

    fn get(&self, id: i64) -> Option<Arc<Pending>> {
        lock(&self.requests).all.get(&id).cloned()
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.get(id).is_some()
    }

    /// Passes progress on to the request with this raw token.
    pub(super) fn progress(&self, token: &str, params: &str) {
        let requests = lock(&self.requests);
        let mut all = requests.all.values();
        let owner = all
            .find(|pending| pending.token.as_deref() == Some(token))
            .cloned();
        drop(requests);
        let Some(owner) = owner else { return };
        lock(&owner.timer).progress(Instant::now());
        if let Some(callback) = &owner.progress
            && let Ok(progress) = serde_json::from_str(params)
        {
            callback(progress);
        }
    }

    /// Returns the changes of a subscription.
    pub(super) fn subscription(&self, id: i64) -> Option<Arc<ChangeQueue>> {
        self.get(id)?.changes.clone()
    }

    /// Ends a subscription that the server has ended.
    pub(super) fn end_subscription(&self, id: i64) {
        let pending = self.get(id).filter(|pending| pending.changes.is_some());
        if let Some(pending) = pending {
            pending.end(PendingEnd::ByServer);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.requests).is_closed
    }

    /// Refuses further requests and cancels subscriptions.
    pub(super) fn close(&self) {
        let mut requests = lock(&self.requests);
        requests.is_closed = true;
        for pending in requests.all.values() {
            if pending.changes.is_some() {
                pending.end(PendingEnd::Closing);
            }
        }
    }

    /// Waits until no request is in flight. A request that is not polled does not remove itself, so the wait ends with
    /// the last deadline.
    pub(super) async fn drained(&self) {
        loop {
            let emptied = self.emptied.notified();
            match self.last_deadline() {
                None => return,
                Some(Some(last)) if last <= Instant::now() => return,
                Some(Some(last)) => tokio::select! {
                    () = emptied => {}
                    () = sleep_until(last) => {}
                },
                Some(None) => emptied.await,
            }
        }
    }

    /// Returns the last deadline, if any request has one; none without requests.
    fn last_deadline(&self) -> Option<Option<Instant>> {
        let requests = lock(&self.requests);
        let all = requests.all.values();
        all.map(|pending| pending.deadline()).max()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Progress restarts the timeout up to the maximum, unless it is ignored; an endless timeout never ends.
    #[test]
    fn progress_restarts_the_timeout_up_to_the_maximum() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let cases = [
            (5, 60, OnProgress::Extend, 3, Some(8)),
            (5, 60, OnProgress::Ignore, 3, Some(5)),
            (5, 6, OnProgress::Extend, 3, Some(6)),
            (9, 6, OnProgress::Extend, 0, Some(6)),
            (u32::MAX, u32::MAX, OnProgress::Ignore, 3, None),
        ];
        for (timeout, maximum, on_progress, progress_at, expected) in cases {
            let length = |seconds| match seconds {
                u32::MAX => Duration::MAX,
                seconds => second * seconds,
            };
            let timeout = RequestTimeout {
                timeout: length(timeout),
                maximum: length(maximum),
                on_progress,
            };
            let mut timer = Timer::new(timeout, now);
            timer.progress(now + second * progress_at);
            assert_eq!(timer.until, expected.map(|at| now + second * at));
        }
    }
}
