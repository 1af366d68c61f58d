//! Timeouts that set no timer for work that is ready at once.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Awaits `work` for at most `limit`; `None` on timeout. The timer is created only if the first poll is pending.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let first = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    match first {
        Poll::Ready(done) => Some(done),
        Poll::Pending => tokio::time::timeout(limit, work).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_lasts_is_timed() {
        let limit = Duration::from_secs(1);
        assert_eq!(within(Duration::ZERO, async { 1 }).await, Some(1));
        let soon = tokio::time::sleep(limit / 2);
        assert_eq!(within(limit, soon).await, Some(()));
        let never = std::future::pending::<()>();
        assert_eq!(within(limit, never).await, None);
    }
}
