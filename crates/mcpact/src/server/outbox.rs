//! Queue of messages that a running request sends before its response.
//!
//! Most requests send none, so an empty queue is cheap.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::byte_budget::{ByteBudget, Reservation};
use crate::lock;
use futures_util::task::AtomicWaker;

/// Item of the queue.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A message.
    Message(String),
    /// Last message: the response and its HTTP status.
    Response(String, u16),
    /// Closes the stream; the client reconnects for the rest after this time.
    Disconnect(Duration),
}

impl Outgoing {
    const fn size(&self) -> usize {
        match self {
            Self::Message(text) | Self::Response(text, _) => text.len(),
            Self::Disconnect(_) => 0,
        }
    }
}

/// The client disconnected.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the client disconnected")]
pub struct ClientGone;

#[derive(Debug)]
struct Queue {
    items: Mutex<VecDeque<(Outgoing, Option<Reservation>)>>,
    /// Closed when the receiver is gone.
    budget: ByteBudget,
    outboxes: AtomicUsize,
    receiver: AtomicWaker,
}

impl Queue {
    fn push(&self, item: Outgoing, reservation: Option<Reservation>) {
        lock(&self.items).push_back((item, reservation));
        self.receiver.wake();
    }

    fn pop(&self) -> Option<Outgoing> {
        let (item, _reservation) = lock(&self.items).pop_front()?;
        Some(item)
    }
}

/// Sender of messages that belong to one request.
#[derive(Debug)]
pub struct Outbox(Arc<Queue>);

/// Receiver of the messages of a request.
#[derive(Debug)]
pub(super) struct OutboxReceiver(Arc<Queue>);

/// Reserved space in the queue.
pub(super) struct Permit<'a> {
    queue: &'a Queue,
    reservation: Reservation,
}

impl Permit<'_> {
    pub(super) fn send(self, item: Outgoing) {
        self.queue.push(item, Some(self.reservation));
    }
}

impl Outbox {
    /// Creates a queue for this number of messages.
    pub(super) fn new(limit: u32) -> (Self, OutboxReceiver) {
        let queue = Arc::new(Queue {
            items: Mutex::default(),
            budget: ByteBudget::new(limit),
            outboxes: AtomicUsize::new(1),
            receiver: AtomicWaker::new(),
        });
        (Self(Arc::clone(&queue)), OutboxReceiver(queue))
    }

    /// Sends a message, waiting for capacity.
    ///
    /// # Errors
    /// The client disconnected.
    pub async fn send(&self, text: String) -> Result<(), ClientGone> {
        self.send_item(Outgoing::Message(text)).await
    }

    /// Sends a message without waiting; returns `false` if the queue is full or closed.
    #[must_use]
    pub fn try_send(&self, text: String) -> bool {
        self.try_send_item(Outgoing::Message(text))
    }

    pub(super) async fn send_item(&self, item: Outgoing) -> Result<(), ClientGone> {
        self.reserve(item.size()).await?.send(item);
        Ok(())
    }

    pub(super) fn try_send_item(&self, item: Outgoing) -> bool {
        let queue = &self.0;
        let Some(reservation) = queue.budget.try_reserve(item.size()) else {
            return false;
        };
        Permit { queue, reservation }.send(item);
        true
    }

    /// Sends the last item, which needs no space.
    pub(super) fn send_last(&self, item: Outgoing) {
        if !self.is_closed() {
            self.0.push(item, None);
        }
    }

    /// Waits for space for an item of this size.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<Permit<'_>, ClientGone> {
        let queue = &*self.0;
        let reservation = queue.budget.reserve(bytes).await.ok_or(ClientGone)?;
        Ok(Permit { queue, reservation })
    }

    /// Returns `true` if the receiver is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.0.budget.is_closed()
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
            self.0.receiver.wake();
        }
    }
}

impl OutboxReceiver {
    /// Returns the next queued item, if any.
    pub(super) fn try_recv(&mut self) -> Option<Outgoing> {
        self.0.pop()
    }

    /// Returns the next item, or `None` when all outboxes are dropped. Cancel safe.
    pub(super) async fn recv(&mut self) -> Option<Outgoing> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&mut self, context: &Context<'_>) -> Poll<Option<Outgoing>> {
        self.0.receiver.register(context.waker());
        // Loaded first: the last outbox may have sent something before it was dropped.
        let is_closed = self.0.outboxes.load(Ordering::Acquire) == 0;
        match self.0.pop() {
            None if !is_closed => Poll::Pending,
            item => Poll::Ready(item),
        }
    }
}

impl Drop for OutboxReceiver {
    fn drop(&mut self) {
        self.0.budget.close();
        // The end of the outboxes must not wake this receiver any longer.
        drop(self.0.receiver.take());
        // Unread items may hold much memory.
        let unread = std::mem::take(&mut *lock(&self.0.items));
        drop(unread);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn text(item: Option<Outgoing>) -> Option<String> {
        match item? {
            Outgoing::Message(text) | Outgoing::Response(text, _) => Some(text),
            Outgoing::Disconnect(_) => None,
        }
    }

    #[tokio::test]
    async fn items_are_ordered_and_wait_for_capacity() {
        let (outbox, mut items) = Outbox::new(2);
        assert!(outbox.try_send("a".to_owned()) && outbox.try_send("b".to_owned()));
        assert!(!outbox.try_send("x".to_owned()), "no room");
        let other = outbox.clone();
        let mut sending = Box::pin(async move { other.send("c".to_owned()).await });
        assert!(sending.as_mut().now_or_never().is_none(), "no room either");
        assert_eq!(text(items.recv().await).as_deref(), Some("a"));
        sending.await.unwrap();
        assert_eq!(text(items.try_recv()).as_deref(), Some("b"));
        assert_eq!(text(items.recv().await).as_deref(), Some("c"));
        assert!(items.try_recv().is_none());
    }

    #[tokio::test]
    async fn queued_items_arrive_before_the_end() {
        let (outbox, mut items) = Outbox::new(2);
        let last = outbox.clone();
        drop(outbox);
        let taking = tokio::spawn(async move {
            let first = text(items.recv().await);
            (first, text(items.recv().await))
        });
        tokio::task::yield_now().await;
        last.send("a".to_owned()).await.unwrap();
        drop(last);
        assert_eq!(taking.await.unwrap(), (Some("a".to_owned()), None));
    }

    #[tokio::test]
    async fn waiting_sender_fails_when_the_receiver_is_dropped() {
        let (outbox, items) = Outbox::new(1);
        assert!(outbox.try_send("a".to_owned()) && !outbox.is_closed());
        let waiting = outbox.clone();
        let waiting = tokio::spawn(async move { waiting.send("b".to_owned()).await });
        tokio::task::yield_now().await;
        drop(items);
        assert!(waiting.await.unwrap().is_err());
        assert!(outbox.is_closed() && !outbox.try_send("c".to_owned()));
    }
}
