//! Who is inside, and whether anybody else may come in.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_spec::Method;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::stable::{LogEvent, Reason};

/// The bit that says that nobody comes in any more; the rest is a count.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// How long those may take to hear of it who are refused at the end.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Counts the requests that are being answered, and can be closed to others.
#[derive(Clone, Debug, Default)]
pub struct Turnstile(Arc<Gate>);

#[derive(Debug, Default)]
struct Gate {
    inside: AtomicUsize,
    closed: OnceLock<Instant>,
    /// Told when somebody leaves after it was closed.
    left: Notify,
}

/// A request that is inside for as long as this is held.
#[derive(Debug)]
pub(crate) struct Pass(Turnstile);

impl Turnstile {
    /// Lets a request in, unless it is closed.
    fn enter(&self) -> Result<Pass, WireError> {
        let before = self.0.inside.fetch_add(1, Ordering::AcqRel);
        // Leaving is the same for somebody who was not let in.
        let pass = Pass(self.clone());
        if before & CLOSED == 0 {
            Ok(pass)
        } else {
            Err(closed())
        }
    }

    /// Lets a request of this method in, unless it is closed. Whoever listens stays until told to go, and is
    /// not waited for.
    pub(crate) fn admit(&self, method: Option<Method>) -> Result<Option<Pass>, WireError> {
        let pass = self.enter()?;
        Ok((method != Some(Method::SubscriptionsListen)).then_some(pass))
    }

    /// Whether nobody is let in any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.inside.load(Ordering::Acquire) & CLOSED != 0
    }

    /// For how long nobody has been let in any more.
    pub(crate) fn closed_for(&self) -> Option<Duration> {
        self.0.closed.get().map(Instant::elapsed)
    }

    /// How many requests are inside.
    pub(crate) fn inside(&self) -> usize {
        self.0.inside.load(Ordering::Acquire) & !CLOSED
    }

    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.0.inside.fetch_or(CLOSED, Ordering::AcqRel);
        self.0.closed.get_or_init(Instant::now);
    }

    /// Lets nobody in any more, and those who are inside finish for so long, while `abandon` gives up what
    /// nobody can come back to; shortly before the end `turn_away` refuses those who still wait for a server, and says how many.
    /// Whether all who were inside have finished.
    pub(crate) async fn drain<A: Future>(
        &self,
        limit: Duration,
        abandon: impl Fn() -> A,
        turn_away: impl FnOnce() -> usize,
    ) -> bool {
        self.close();
        let in_flight = self.inside();
        tracing::info!(
            event = LogEvent::Drain.as_str(),
            in_flight,
            "drain started"
        );
        let finishing = async {
            let rest = LAST_WORDS.min(limit / 10);
            if timeout(limit - rest, self.at_most(0)).await.is_ok() {
                return true;
            }
            let left = self.inside().saturating_sub(turn_away());
            let (finished, _) = tokio::join!(
                timeout(rest, self.at_most(0)),
                timeout(LAST_WORDS, self.at_most(left))
            );
            finished.is_ok()
        };
        let (has_finished, _) = tokio::join!(finishing, abandon());
        // Some of those who were inside have been asked something on their way out.
        abandon().await;
        has_finished
    }

    /// Until so many are inside, once it is closed.
    async fn at_most(&self, number: usize) {
        loop {
            let mut left = pin!(self.0.left.notified());
            left.as_mut().enable();
            if self.inside() <= number {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let gate = &self.0.0;
        if gate.inside.fetch_sub(1, Ordering::AcqRel) & CLOSED != 0 {
            gate.left.notify_waiters();
        }
    }
}

/// What a request is told that comes too late.
pub(crate) fn closed() -> WireError {
    let data = ObjectWriter::new().text("reason", Reason::GatewayDraining.as_str());
    WireError {
        code: -32603,
        message: String::from(
            "the gateway is about to stop and takes no more requests; try again in a moment",
        ),
        data: Some(data.finish()),
        http_status: 503,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_inside_may_finish_and_nobody_else_comes_in() {
        let turnstile = Turnstile::default();
        let (one, other) = (turnstile.enter().unwrap(), turnstile.enter().unwrap());
        assert_eq!(turnstile.inside(), 2);
        turnstile.close();
        assert_eq!(turnstile.enter().unwrap_err().http_status, 503);
        assert_eq!(turnstile.inside(), 2);
        drop(one);
        let waiting = tokio::spawn({
            let turnstile = turnstile.clone();
            async move { turnstile.at_most(0).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(other);
        waiting.await.unwrap();
        // Whoever was turned away does not count.
        turnstile.at_most(0).await;
        assert!(turnstile.is_closed());
    }
}
