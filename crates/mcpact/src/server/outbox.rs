//! What a running request hands to its carrier before its answer.
//!
//! Most requests say nothing, so that a queue costs one small piece of memory until something is put in.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What a running request hands to its carrier.
#[derive(Debug)]
pub(super) enum Parcel {
    /// A message.
    Message(String),
    /// The last message: the answer, and the status that goes with it.
    Answer(String, u16),
    /// Let go of the stream; the client will come back for the rest.
    Disconnect(Duration),
}

/// The client has gone away.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the client went away")]
pub struct Gone;

#[derive(Debug)]
struct Queue {
    parcels: Mutex<VecDeque<Parcel>>,
    /// One permit for every parcel that has room; closed when nobody takes any more.
    room: Semaphore,
    outboxes: AtomicUsize,
    carrier: AtomicWaker,
}

impl Queue {
    fn parcels(&self) -> MutexGuard<'_, VecDeque<Parcel>> {
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, parcel: Parcel) {
        self.parcels().push_back(parcel);
        self.carrier.wake();
    }

    fn pop(&self) -> Option<Parcel> {
        let parcel = self.parcels().pop_front()?;
        self.room.add_permits(1);
        Some(parcel)
    }
}

/// Where the messages go that belong to one request.
#[derive(Debug)]
pub struct Outbox(Arc<Queue>);

/// The other end, which the carrier of a request has.
#[derive(Debug)]
pub(super) struct Parcels(Arc<Queue>);

/// Room for one parcel.
pub(super) struct Place<'a> {
    queue: &'a Queue,
    permit: SemaphorePermit<'a>,
}

impl Place<'_> {
    pub(super) fn put(self, parcel: Parcel) {
        self.permit.forget();
        self.queue.push(parcel);
    }
}

impl Outbox {
    /// A queue in which so many parcels may wait.
    pub(super) fn new(limit: usize) -> (Self, Parcels) {
        let queue = Arc::new(Queue {
            parcels: Mutex::default(),
            room: Semaphore::new(limit),
            outboxes: AtomicUsize::new(1),
            carrier: AtomicWaker::new(),
        });
        (Self(Arc::clone(&queue)), Parcels(queue))
    }

    /// Sends a message, once there is room for it.
    ///
    /// # Errors
    /// The client has gone away.
    pub async fn send(&self, text: String) -> Result<(), Gone> {
        self.put(Parcel::Message(text)).await
    }

    /// Sends a message if there is room for it at once; whether it was sent.
    #[must_use]
    pub fn offer(&self, text: String) -> bool {
        self.try_put(Parcel::Message(text))
    }

    pub(super) async fn put(&self, parcel: Parcel) -> Result<(), Gone> {
        self.place().await?.put(parcel);
        Ok(())
    }

    pub(super) fn try_put(&self, parcel: Parcel) -> bool {
        let Ok(permit) = self.0.room.try_acquire() else {
            return false;
        };
        let queue = &self.0;
        Place { queue, permit }.put(parcel);
        true
    }

    /// Room for one parcel, once there is some.
    pub(super) async fn place(&self) -> Result<Place<'_>, Gone> {
        let queue = &self.0;
        let permit = queue.room.acquire().await.map_err(|_| Gone)?;
        Ok(Place { queue, permit })
    }

    /// Whether nobody takes anything any more.
    pub(super) fn is_closed(&self) -> bool {
        self.0.room.is_closed()
    }
}

impl Clone for Outbox {
    fn clone(&self) -> Self {
        self.0.outboxes.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        if self.0.outboxes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.carrier.wake();
        }
    }
}

impl Parcels {
    /// What was put in and not taken yet.
    pub(super) fn try_take(&mut self) -> Option<Parcel> {
        self.0.pop()
    }

    /// The next parcel; none when it is certain that there will be none. Safe to drop at any time.
    pub(super) async fn take(&mut self) -> Option<Parcel> {
        poll_fn(|context| self.poll_take(context)).await
    }

    fn poll_take(&mut self, context: &Context<'_>) -> Poll<Option<Parcel>> {
        self.0.carrier.register(context.waker());
        // Counted first: whoever is the last may have put something in before it went.
        let is_over = self.0.outboxes.load(Ordering::Acquire) == 0;
        match self.0.pop() {
            None if !is_over => Poll::Pending,
            parcel => Poll::Ready(parcel),
        }
    }
}

impl Drop for Parcels {
    fn drop(&mut self) {
        self.0.room.close();
        // Nobody is to be woken by the end of the outboxes any more, least of all by oneself.
        drop(self.0.carrier.take());
        // What nobody takes may hold on to much.
        let left = std::mem::take(&mut *self.0.parcels());
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn text(parcel: Option<Parcel>) -> Option<String> {
        match parcel? {
            Parcel::Message(text) | Parcel::Answer(text, _) => Some(text),
            Parcel::Disconnect(_) => None,
        }
    }

    #[tokio::test]
    async fn parcels_come_in_order_and_wait_for_room() {
        let (outbox, mut parcels) = Outbox::new(2);
        assert!(outbox.offer("a".to_owned()) && outbox.offer("b".to_owned()));
        assert!(!outbox.offer("x".to_owned()), "no room");
        let other = outbox.clone();
        let mut sending = Box::pin(async move { other.send("c".to_owned()).await });
        assert!(sending.as_mut().now_or_never().is_none(), "no room either");
        assert_eq!(text(parcels.take().await).as_deref(), Some("a"));
        sending.await.unwrap();
        assert_eq!(text(parcels.try_take()).as_deref(), Some("b"));
        assert_eq!(text(parcels.take().await).as_deref(), Some("c"));
        assert!(parcels.try_take().is_none());
    }

    #[tokio::test]
    async fn what_was_put_in_arrives_before_the_end() {
        let (outbox, mut parcels) = Outbox::new(2);
        let last = outbox.clone();
        drop(outbox);
        let taking = tokio::spawn(async move {
            let first = text(parcels.take().await);
            (first, text(parcels.take().await))
        });
        tokio::task::yield_now().await;
        last.send("a".to_owned()).await.unwrap();
        drop(last);
        assert_eq!(taking.await.unwrap(), (Some("a".to_owned()), None));
    }

    #[tokio::test]
    async fn whoever_waits_learns_that_nobody_takes_anything() {
        let (outbox, parcels) = Outbox::new(1);
        assert!(outbox.offer("a".to_owned()) && !outbox.is_closed());
        let waiting = outbox.clone();
        let waiting = tokio::spawn(async move { waiting.send("b".to_owned()).await });
        tokio::task::yield_now().await;
        drop(parcels);
        assert!(waiting.await.unwrap().is_err());
        assert!(outbox.is_closed() && !outbox.offer("c".to_owned()));
    }
}
