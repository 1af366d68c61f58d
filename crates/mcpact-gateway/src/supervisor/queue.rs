//! Queue of calls that wait for an instance: bounded in length and waiting time.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;
use tokio::time::Instant;

use super::driver::Supervisor;
use super::instance_set::Refusal;
use super::placement::{SharingPolicy, max_instances, sharing_policy};
use crate::error::{CapacityLimits, UpstreamErrorKind};

/// Place in the queue; dropping it leaves the queue.
struct Queued<'a>(&'a Supervisor);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.instances().dequeue();
        // The minimum number of instances is not kept while calls are queued.
        self.0.wake.notify_one();
    }
}

impl Supervisor {
    /// Repeats an attempt after every change, in the queue, until it breaks or `queue_seconds` have passed. An attempt
    /// gets true if the caller is in the queue already. It continues with a time at which it is repeated at the latest.
    pub(super) async fn queue_until<T>(
        &self,
        mut attempt: impl FnMut(bool) -> Result<ControlFlow<T, Option<Moment>>, Refusal>,
    ) -> Result<T, UpstreamErrorKind> {
        let timeout = self.instances().settings.queue_wait;
        let deadline = Instant::now() + timeout;
        let mut queued = None;
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if queued.is_some() && self.instances().is_closed {
                return Err(UpstreamErrorKind::Retired);
            }
            let attempted = attempt(queued.is_some()).map_err(|refusal| self.refuse(refusal))?;
            let until = match attempted {
                ControlFlow::Break(outcome) => return Ok(outcome),
                ControlFlow::Continue(until) => until,
            };
            if queued.is_none() {
                let place = self.enqueue();
                queued = Some(place.map_err(|refusal| self.refuse(self.cause(refusal, until)))?);
            }
            let until = until.map_or(deadline, |until| {
                deadline.min(Instant::now() + until.since(self.now()))
            });
            let has_timed_out = tokio::time::timeout_at(until, changed).await.is_err();
            if has_timed_out && Instant::now() >= deadline {
                return Err(self.queue_timeout(timeout));
            }
        }
    }

    fn enqueue(&self) -> Result<Queued<'_>, Refusal> {
        self.instances().enqueue()?;
        Ok(Queued(self))
    }

    /// Returns the reason to refuse a caller that finds the queue full: the backoff it would have waited for, if any.
    fn cause(&self, refusal: Refusal, until: Option<Moment>) -> Refusal {
        match (until, self.instances().policy.failures()) {
            (None, _) | (Some(_), 0) => refusal,
            (Some(until), failures) => Refusal::Suspended {
                failures,
                wait: until.since(self.now()),
            },
        }
    }

    /// Waits for a future in the queue, for at most `queue_seconds`.
    pub(crate) async fn wait_in_queue<T>(
        &self,
        turn: impl Future<Output = T>,
    ) -> Result<T, UpstreamErrorKind> {
        let mut turn = pin!(turn);
        if let Some(turn) = turn.as_mut().now_or_never() {
            return Ok(turn);
        }
        let timeout = self.instances().settings.queue_wait;
        let _queued = self.enqueue().map_err(|refusal| self.refuse(refusal))?;
        tokio::select! {
            turn = &mut turn => Ok(turn),
            () = tokio::time::sleep(timeout) => Err(self.queue_timeout(timeout)),
            () = self.closed() => Err(UpstreamErrorKind::Retired),
        }
    }

    fn queue_timeout(&self, waited: Duration) -> UpstreamErrorKind {
        UpstreamErrorKind::QueueTimeout {
            state: self.status().busy_word(),
            limits: capacity_limits(&self.instances().settings),
            waited,
        }
    }
}

/// Returns the limits that the error of a call without an instance names.
pub(super) fn capacity_limits(settings: &RunSettings) -> CapacityLimits {
    CapacityLimits {
        is_exclusive: sharing_policy(settings.strategy) == SharingPolicy::Exclusive,
        takes_turns: false,
        instances: max_instances(settings),
        calls: settings.max_concurrent,
        queue: settings.queue,
    }
}
