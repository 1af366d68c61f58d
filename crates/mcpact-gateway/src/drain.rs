//! Graceful shutdown: counts in-flight requests and refuses new ones.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_spec::Method;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::reason::{LogEvent, Reason};

/// Bit of the counter that is set once the gate is closed.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Time to send the errors of requests that are refused at the end.
const REFUSAL_TIME: Duration = Duration::from_millis(250);

/// Counts in-flight requests; refuses new ones once it is closed.
#[derive(Clone, Debug, Default)]
pub struct DrainGate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    /// Number of in-flight requests, and [`CLOSED`].
    count: AtomicUsize,
    closed: OnceLock<Instant>,
    /// Notified when a request finishes after the gate was closed.
    finished: Notify,
}

/// Counts a request as in flight until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightGuard(DrainGate);

impl DrainGate {
    /// Admits a request of this method unless the gate is closed. `subscriptions/listen` is not counted: it lasts until
    /// the gateway ends it.
    pub(crate) fn admit(&self, method: Option<Method>) -> Result<Option<InFlightGuard>, WireError> {
        let before = self.0.count.fetch_add(1, Ordering::AcqRel);
        // A refused request is counted until the guard is dropped, too.
        let guard = InFlightGuard(self.clone());
        if before & CLOSED != 0 {
            return Err(draining_error());
        }
        Ok((method != Some(Method::SubscriptionsListen)).then_some(guard))
    }

    /// Returns true once the gate is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.count.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Returns the time since the gate was closed.
    pub(crate) fn closed_for(&self) -> Option<Duration> {
        self.0.closed.get().map(Instant::elapsed)
    }

    /// Returns the number of in-flight requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.count.load(Ordering::Acquire) & !CLOSED
    }

    /// Refuses new requests from now on.
    pub(crate) fn close(&self) {
        self.0.count.fetch_or(CLOSED, Ordering::AcqRel);
        self.0.closed.get_or_init(Instant::now);
    }

    /// Closes the gate and waits up to `limit` for in-flight requests; returns true if all of them finished.
    ///
    /// Meanwhile `abandon` ends suspended calls, which no client can resume. Shortly before the end `turn_away` refuses
    /// the requests that are still queued for a server and returns their number.
    pub(crate) async fn drain<A: Future>(
        &self,
        limit: Duration,
        abandon: impl Fn() -> A,
        turn_away: impl FnOnce() -> usize,
    ) -> bool {
        self.close();
        let in_flight = self.in_flight();
        tracing::info!(event = LogEvent::Drain.as_str(), in_flight, "drain started");
        let finishing = async {
            let rest = REFUSAL_TIME.min(limit / 10);
            if timeout(limit - rest, self.at_most(0)).await.is_ok() {
                return true;
            }
            let left = self.in_flight().saturating_sub(turn_away());
            let (finished, _) = tokio::join!(
                timeout(rest, self.at_most(0)),
                timeout(REFUSAL_TIME, self.at_most(left))
            );
            finished.is_ok()
        };
        let (has_finished, _) = tokio::join!(finishing, abandon());
        // Requests that finished meanwhile may have been suspended.
        abandon().await;
        has_finished
    }

    /// Waits until at most this number of requests is in flight; the gate must be closed.
    async fn at_most(&self, number: usize) {
        loop {
            let mut finished = pin!(self.0.finished.notified());
            finished.as_mut().enable();
            if self.in_flight() <= number {
                return;
            }
            finished.await;
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let gate = &self.0.0;
        if gate.count.fetch_sub(1, Ordering::AcqRel) & CLOSED != 0 {
            gate.finished.notify_waiters();
        }
    }
}

/// Returns the error of a request that arrives while the gateway drains.
pub(crate) fn draining_error() -> WireError {
    let data = ObjectWriter::new().text("reason", Reason::GatewayDraining.as_str());
    WireError {
        code: -32603,
        message: String::from(
            "the gateway is shutting down and accepts no more requests; try again in a moment",
        ),
        data: Some(data.finish()),
        http_status: 503,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn admitted_requests_finish_and_new_ones_are_refused() {
        let gate = DrainGate::default();
        let (one, other) = (gate.admit(None).unwrap(), gate.admit(None).unwrap());
        assert_eq!(gate.in_flight(), 2);
        gate.close();
        assert_eq!(gate.admit(None).unwrap_err().http_status, 503);
        assert_eq!(gate.in_flight(), 2);
        drop(one);
        let waiting = tokio::spawn({
            let gate = gate.clone();
            async move { gate.at_most(0).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
        // Refused requests do not count.
        gate.at_most(0).await;
        assert!(gate.is_closed());
    }
}
