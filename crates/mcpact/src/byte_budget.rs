//! Limit of waiting messages, in count and bytes.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum size of all waiting messages. A larger message waits alone.
const MAX_BYTES: u32 = 4 * 1024 * 1024;

/// Limit of waiting messages. Clones share it.
///
/// Each message reserves its size, but at least the share of one message of the maximum number. This limits both.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    free: Arc<Semaphore>,
    least: u32,
}

/// Space of one message, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl ByteBudget {
    /// Creates a limit for this number of messages.
    pub(crate) fn new(messages: u32) -> Self {
        Self {
            free: Arc::new(Semaphore::new(MAX_BYTES as usize)),
            least: (MAX_BYTES / messages.max(1)).max(1),
        }
    }

    fn size(&self, bytes: usize) -> u32 {
        let bytes = u32::try_from(bytes).unwrap_or(MAX_BYTES);
        bytes.clamp(self.least, MAX_BYTES)
    }

    /// Reserves space for a message without waiting. Returns `None` if there is none, or if the budget is closed.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let permit = Arc::clone(&self.free).try_acquire_many_owned(self.size(bytes));
        permit.ok().map(|_permit| Reservation { _permit })
    }

    /// Waits for space for a message. Returns `None` if the budget is closed.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let permit = Arc::clone(&self.free).acquire_many_owned(self.size(bytes));
        permit.await.ok().map(|_permit| Reservation { _permit })
    }

    /// Ends all waiting; nothing can be reserved any longer.
    pub(crate) fn close(&self) {
        self.free.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.free.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn messages_are_limited_in_count_and_bytes() {
        let budget = ByteBudget::new(2);
        let small = [budget.try_reserve(0), budget.try_reserve(1)];
        assert!(small.iter().all(Option::is_some) && budget.try_reserve(0).is_none());
        drop(small);
        let huge = budget.try_reserve(usize::MAX);
        assert!(huge.is_some() && budget.try_reserve(0).is_none());
        let mut waiting = Box::pin(budget.reserve(1));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(huge);
        assert!(waiting.now_or_never().flatten().is_some());
        budget.close();
        assert!(budget.try_reserve(0).is_none() && budget.is_closed());
    }
}
