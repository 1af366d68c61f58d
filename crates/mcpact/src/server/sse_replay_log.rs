//! Replay buffer for the SSE streams of a legacy HTTP session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use crate::lock;
use bytes::Bytes;
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::mpsc;

/// Maximum number of events kept per session, over all streams.
const MAX_EVENTS: usize = 256;

/// Maximum number of events queued for a slow client before it is disconnected.
const MAX_QUEUED: usize = 256;

/// The stream that belongs to no request.
pub(super) const STANDALONE: u64 = 0;

#[derive(Debug, Default)]
struct Stream {
    last: u64,
    /// Last event sent to a client.
    sent: u64,
    live: Option<mpsc::Sender<Bytes>>,
    is_complete: bool,
}

#[derive(Debug, Default)]
struct Inner {
    streams: BTreeMap<u64, Stream>,
    events: VecDeque<(u64, u64, Bytes)>,
    opened: u64,
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
    pub(super) fn attach(&self, stream: u64, after: Option<u64>) -> Option<mpsc::Receiver<Bytes>> {
        let mut inner = lock(&self.inner);
        let Inner {
            streams, events, ..
        } = &mut *inner;
        let entry = entry(streams, stream)?;
        let is_connected = entry.live.as_ref().is_some_and(|live| !live.is_closed());
        if is_connected && after.is_none() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(MAX_EVENTS + MAX_QUEUED);
        let after = after.unwrap_or(entry.sent);
        let missed = events
            .iter()
            .filter(|(of, event, _)| *of == stream && *event > after);
        for (_, _, bytes) in missed {
            let _ = sender.try_send(bytes.clone());
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
            // Too slow or disconnected: it may reconnect and replay from here.
            Some(Err(_)) => entry.live = None,
            None => {}
        }
        inner.events.push_back((stream, event, bytes));
        while inner.events.len() > MAX_EVENTS {
            if let Some((of, _, _)) = inner.events.pop_front() {
                inner.forget(of);
            }
        }
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
    /// Removes a complete stream once its last event is gone.
    fn forget(&mut self, stream: u64) {
        let has_events = self.events.iter().any(|(of, _, _)| *of == stream);
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

/// Encodes an SSE event.
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
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(receiver: &mut mpsc::Receiver<Bytes>) -> String {
        let mut all = String::new();
        while let Ok(bytes) = receiver.try_recv() {
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
            assert!(old.is_closed() && !new.is_closed(), "{stream}");
            assert!(!old_saw.contains("data: b"), "{old_saw}");
            let is_whole = new_saw.contains("data: a") && new_saw.contains("data: b");
            assert!(is_whole, "{new_saw}");
        }
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
