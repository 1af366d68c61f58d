//! Replay buffer for the SSE streams of a legacy HTTP session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock;
use bytes::Bytes;
use mcpact_transport::budget::{Charge, FREE, MemoryBudget};
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::mpsc;

/// Maximum number of events kept per session, over all streams.
const MAX_EVENTS: usize = 256;

/// Maximum bytes of the events kept per session. A larger event is kept alone.
const MAX_BYTES: usize = 1024 * 1024;

/// Maximum number of events queued for a slow client before it is disconnected.
const MAX_QUEUED: usize = 256;

/// Time that an event is kept if memory is scarce.
const SCARCE_KEPT: Duration = Duration::from_secs(10);

/// The stream that belongs to no request.
pub(super) const STANDALONE: u64 = 0;

#[derive(Debug, Default)]
struct Stream {
    last: u64,
    /// Last event sent to a client.
    sent: u64,
    live: Option<EventSender>,
    is_complete: bool,
}

/// Queue of a connected client, bounded in count and bytes.
#[derive(Debug)]
struct EventSender {
    events: mpsc::Sender<Bytes>,
    queued: Arc<AtomicUsize>,
}

/// Reason why an event was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendError {
    Gone,
    TooSlow,
}

/// Receiver of the events of a stream.
#[derive(Debug)]
pub(super) struct EventReceiver {
    events: mpsc::Receiver<Bytes>,
    queued: Arc<AtomicUsize>,
}

/// Event that can be replayed.
#[derive(Debug)]
struct StoredEvent {
    stream: u64,
    number: u64,
    bytes: Bytes,
    stored: Instant,
}

impl EventSender {
    fn channel() -> (Self, EventReceiver) {
        let (sender, receiver) = mpsc::channel(MAX_EVENTS + MAX_QUEUED);
        let queued = Arc::<AtomicUsize>::default();
        let sender = Self {
            events: sender,
            queued: Arc::clone(&queued),
        };
        let receiver = EventReceiver {
            events: receiver,
            queued,
        };
        (sender, receiver)
    }

    /// Queues an event of any size, unless the client is gone, or too much waits for it already.
    fn try_send(&self, bytes: Bytes) -> Result<(), SendError> {
        if self.is_closed() {
            return Err(SendError::Gone);
        }
        if self.queued.load(Ordering::Relaxed) >= MAX_BYTES {
            return Err(SendError::TooSlow);
        }
        self.queued.fetch_add(bytes.len(), Ordering::Relaxed);
        let sent = self.events.try_send(bytes);
        sent.map_err(|_| SendError::TooSlow)
    }

    fn is_closed(&self) -> bool {
        self.events.is_closed()
    }
}

impl EventReceiver {
    /// Returns the next event; `None` at the end of the stream.
    pub(super) async fn recv(&mut self) -> Option<Bytes> {
        let bytes = self.events.recv().await?;
        self.queued.fetch_sub(bytes.len(), Ordering::Relaxed);
        Some(bytes)
    }
}

/// Step in which small events are charged.
const CHARGE_STEP: usize = 16 * 1024;

#[derive(Debug)]
struct Inner {
    streams: BTreeMap<u64, Stream>,
    events: VecDeque<StoredEvent>,
    /// Bytes of the events.
    bytes: usize,
    /// Bytes of the events that have no charge of their own.
    small_bytes: usize,
    charge: Charge,
    opened: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            streams: BTreeMap::default(),
            events: VecDeque::default(),
            bytes: 0,
            small_bytes: 0,
            charge: MemoryBudget::process().empty_charge(),
            opened: 0,
        }
    }
}

/// Streams and recent events of a session.
#[derive(Debug, Default)]
pub(super) struct SseReplayLog {
    inner: Mutex<Inner>,
}

/// Position in a stream, as encoded in an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl EventId {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (stream, event) = id.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            event: event.parse().ok()?,
        })
    }
}

impl SseReplayLog {
    /// Opens a stream for a request.
    pub(super) fn open(&self) -> u64 {
        let mut inner = lock(&self.inner);
        inner.opened += 1;
        let number = inner.opened;
        inner.streams.insert(number, Stream::default());
        number
    }

    /// Connects a client to a stream. A client that names its last event receives the events after it and takes the
    /// stream over: the loss of its previous connection may be unnoticed. Without `after` it receives the events not
    /// sent yet. Returns `None` for an unknown stream, or if another client is connected and `after` is missing.
    pub(super) fn attach(&self, stream: u64, after: Option<u64>) -> Option<EventReceiver> {
        let mut inner = lock(&self.inner);
        let Inner {
            streams, events, ..
        } = &mut *inner;
        let entry = entry(streams, stream)?;
        let is_connected = entry.live.as_ref().is_some_and(|live| !live.is_closed());
        if is_connected && after.is_none() {
            return None;
        }
        let (sender, receiver) = EventSender::channel();
        let after = after.unwrap_or(entry.sent);
        let missed = events
            .iter()
            .filter(|event| event.stream == stream && event.number > after);
        for event in missed {
            let _ = sender.try_send(event.bytes.clone());
        }
        entry.sent = entry.last;
        entry.live = (!entry.is_complete).then_some(sender);
        Some(receiver)
    }

    /// Returns `true` if a client is connected to any stream.
    pub(super) fn is_connected(&self) -> bool {
        let inner = lock(&self.inner);
        let mut live = inner.streams.values().filter_map(|of| of.live.as_ref());
        live.any(|live| !live.is_closed())
    }

    /// Publishes an event; empty `data` primes a stream.
    pub(super) fn publish(&self, stream: u64, data: &str, retry: Option<Duration>) {
        let mut inner = lock(&self.inner);
        let Some(entry) = entry(&mut inner.streams, stream) else {
            return;
        };
        entry.last += 1;
        let event = entry.last;
        let bytes = sse_event(Some(&format!("{stream}-{event}")), data, retry);
        match entry.live.as_ref().map(|live| live.try_send(bytes.clone())) {
            Some(Ok(())) => entry.sent = event,
            // It may reconnect and replay from here.
            Some(Err(why)) => {
                entry.live = None;
                if why == SendError::TooSlow {
                    MemoryBudget::process().record_cut();
                    tracing::warn!("client disconnected: it does not read its event stream");
                }
            }
            None => {}
        }
        inner.count(&bytes, usize::saturating_add);
        inner.events.push_back(StoredEvent {
            stream,
            number: event,
            stored: Instant::now(),
            bytes,
        });
        while inner.events.len() > MAX_EVENTS || (inner.bytes > MAX_BYTES && inner.events.len() > 1)
        {
            inner.drop_oldest();
        }
        inner.charge();
    }

    /// Drops events that are not recent, because memory is scarce.
    pub(super) fn drop_old(&self) {
        let mut inner = lock(&self.inner);
        let is_old = |event: &StoredEvent| event.stored.elapsed() > SCARCE_KEPT;
        while inner.events.front().is_some_and(is_old) {
            inner.drop_oldest();
        }
        inner.charge();
    }

    /// Marks a stream as complete.
    pub(super) fn end(&self, stream: u64) {
        let mut inner = lock(&self.inner);
        if let Some(entry) = inner.streams.get_mut(&stream) {
            entry.is_complete = true;
            entry.live = None;
        }
        inner.forget(stream);
    }

    /// Disconnects the client of a stream without completing the stream.
    pub(super) fn detach(&self, stream: u64) {
        if let Some(entry) = lock(&self.inner).streams.get_mut(&stream) {
            entry.live = None;
        }
    }

    /// Drops everything at the end of the session.
    pub(super) fn close(&self) {
        *lock(&self.inner) = Inner::default();
    }
}

/// Finds a stream. The standalone stream exists from the first event on, possibly before a client connects to it.
fn entry(streams: &mut BTreeMap<u64, Stream>, stream: u64) -> Option<&mut Stream> {
    if stream == STANDALONE {
        return Some(streams.entry(STANDALONE).or_default());
    }
    streams.get_mut(&stream)
}

impl Inner {
    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.count(&event.bytes, usize::saturating_sub);
            self.forget(event.stream);
        }
    }

    fn count(&mut self, bytes: &Bytes, step: fn(usize, usize) -> usize) {
        self.bytes = step(self.bytes, bytes.len());
        if bytes.len() <= FREE {
            self.small_bytes = step(self.small_bytes, bytes.len());
        }
    }

    /// Charges the small events together; a few of them cost nothing.
    fn charge(&mut self) {
        let bytes = self.small_bytes / CHARGE_STEP * CHARGE_STEP;
        if bytes != self.charge.bytes() {
            self.charge.cover(bytes);
        }
    }

    /// Removes a complete stream once its last event is gone.
    fn forget(&mut self, stream: u64) {
        let has_events = self.events.iter().any(|event| event.stream == stream);
        if !has_events
            && self
                .streams
                .get(&stream)
                .is_some_and(|entry| entry.is_complete)
        {
            self.streams.remove(&stream);
        }
    }
}

/// Encodes an SSE event. A large one is charged to the memory budget.
pub(super) fn sse_event(id: Option<&str>, data: &str, retry: Option<Duration>) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 64);
    let parts = EventParts {
        id,
        name: (!data.is_empty()).then_some("message"),
        data: Some(data),
        retry: retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
    };
    // Own ids consist of digits and a dash, so encoding cannot fail.
    let _ = write_event(&mut out, &parts);
    let bytes = Bytes::from(out);
    match bytes.len() {
        0..=FREE => bytes,
        length => {
            let charge = MemoryBudget::process().charge_existing(length);
            charge.hold(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(receiver: &mut EventReceiver) -> String {
        let mut all = String::new();
        while let Ok(bytes) = receiver.events.try_recv() {
            all.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        all
    }

    /// T3: events published before the client connects are delivered, once.
    #[test]
    fn late_client_receives_earlier_events_once() {
        let log = SseReplayLog::default();
        log.publish(STANDALONE, "early", None);
        let mut first = log.attach(STANDALONE, None).unwrap();
        log.publish(STANDALONE, "now", None);
        let seen = drain(&mut first);
        assert!(seen.contains("early") && seen.contains("now"), "{seen}");
        drop(first);
        log.publish(STANDALONE, "late", None);
        let seen = drain(&mut log.attach(STANDALONE, None).unwrap());
        assert!(seen.contains("late") && !seen.contains("now"), "{seen}");
    }

    /// T3: a reconnecting client receives the missed events of its own stream only.
    #[test]
    fn reconnecting_client_resumes_its_own_stream() {
        let log = SseReplayLog::default();
        let (one, two) = (log.open(), log.open());
        let mut first = log.attach(one, None).unwrap();
        log.publish(one, "a", None);
        log.publish(two, "other", None);
        assert!(
            log.attach(one, None).is_none(),
            "a client without an event id cannot take a stream over"
        );
        assert!(drain(&mut first).contains("data: a") || drain(&mut first).is_empty());
        drop(first);
        log.publish(one, "b", None);
        log.end(one);
        let event_id = EventId::parse(&format!("{one}-1")).unwrap();
        let mut again = log.attach(event_id.stream, Some(event_id.event)).unwrap();
        let seen = drain(&mut again);
        assert!(seen.contains('b') && !seen.contains("other"), "{seen}");
        assert!(
            again
                .events
                .try_recv()
                .is_err_and(|e| e == mpsc::error::TryRecvError::Disconnected)
        );
    }

    /// T3: a client that names its last event takes over the stream, and the old connection ends.
    #[test]
    fn client_with_event_id_takes_over_the_stream() {
        let log = SseReplayLog::default();
        for stream in [log.open(), STANDALONE] {
            let mut old = log.attach(stream, None).unwrap();
            log.publish(stream, "a", None);
            let mut new = log.attach(stream, Some(0)).unwrap();
            log.publish(stream, "b", None);
            let (old_saw, new_saw) = (drain(&mut old), drain(&mut new));
            assert!(
                old.events.is_closed() && !new.events.is_closed(),
                "{stream}"
            );
            assert!(!old_saw.contains("data: b"), "{old_saw}");
            let is_whole = new_saw.contains("data: a") && new_saw.contains("data: b");
            assert!(is_whole, "{new_saw}");
        }
    }

    /// T9: the bytes of the buffer and of the queue are bounded; a larger event is kept alone.
    #[test]
    fn bytes_are_bounded() {
        let log = SseReplayLog::default();
        let stream = log.open();
        let receiver = log.attach(stream, None).unwrap();
        for _ in 0..20 {
            log.publish(stream, &"x".repeat(MAX_BYTES / 10), None);
        }
        assert!(lock(&log.inner).bytes <= MAX_BYTES);
        assert!(receiver.events.len() <= 10, "{}", receiver.events.len());
        assert!(!log.is_connected(), "the slow client is disconnected");
        log.publish(stream, &"y".repeat(2 * MAX_BYTES), None);
        assert_eq!(lock(&log.inner).events.len(), 1);
        let mut again = log.attach(stream, None).unwrap();
        assert!(drain(&mut again).contains('y'));
        log.drop_old();
        assert_eq!(lock(&log.inner).events.len(), 1, "it is recent");
    }

    /// T9: many small events count towards the memory budget.
    #[test]
    fn small_events_are_charged_together() {
        let log = SseReplayLog::default();
        let charged = |log: &SseReplayLog| lock(&log.inner).charge.bytes();
        log.publish(STANDALONE, "x", None);
        assert_eq!(charged(&log), 0);
        for _ in 0..MAX_EVENTS {
            log.publish(STANDALONE, &"x".repeat(FREE / 2), None);
        }
        let inner = lock(&log.inner);
        assert!(inner.charge.bytes() + CHARGE_STEP > inner.bytes);
        drop(inner);
        log.publish(STANDALONE, &"y".repeat(2 * MAX_BYTES), None);
        assert_eq!(
            charged(&log),
            0,
            "only the large event is left, with its own charge"
        );
    }

    /// A large result is not lost if the client has not read the progress before it yet.
    #[test]
    fn large_event_is_queued_behind_unread_events() {
        let log = SseReplayLog::default();
        let stream = log.open();
        let mut receiver = log.attach(stream, None).unwrap();
        log.publish(stream, "progress", None);
        log.publish(stream, &"y".repeat(2 * MAX_BYTES), None);
        let seen = drain(&mut receiver);
        assert!(seen.contains("progress") && seen.contains("yyy"));
        assert!(log.is_connected());
    }

    /// T9: the buffer is bounded.
    #[test]
    fn buffer_is_bounded() {
        let log = SseReplayLog::default();
        for _ in 0..10 {
            let stream = log.open();
            for _ in 0..100 {
                log.publish(stream, "x", None);
            }
            log.end(stream);
        }
        let inner = lock(&log.inner);
        assert_eq!(inner.events.len(), MAX_EVENTS);
        assert!(inner.streams.len() <= 4, "{}", inner.streams.len());
    }
}
