//! The streams of a legacy HTTP session, kept for clients that come back for what they missed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpact_wire::frame::sse::{EventParts, write_event};
use tokio::sync::mpsc;

/// How many events a session keeps, over all of its streams.
const KEPT: usize = 256;

/// How many events may wait for a client that reads slowly before it is let go.
const WAITING: usize = 256;

/// The stream that belongs to no request.
pub(super) const STANDALONE: u64 = 0;

#[derive(Debug, Default)]
struct Stream {
    last: u64,
    /// The last event that was handed to a client.
    handed: u64,
    live: Option<mpsc::Sender<Bytes>>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Inner {
    streams: BTreeMap<u64, Stream>,
    events: VecDeque<(u64, u64, Bytes)>,
    opened: u64,
}

/// Every stream of a session.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    inner: Mutex<Inner>,
}

/// A place in a stream, as it stands in an event's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl Place {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (stream, event) = id.split_once('-')?;
        Some(Self {
            stream: stream.parse().ok()?,
            event: event.parse().ok()?,
        })
    }
}

impl EventLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new stream for a request.
    pub(super) fn open(&self) -> u64 {
        let mut inner = self.inner();
        inner.opened += 1;
        let number = inner.opened;
        inner.streams.insert(number, Stream::default());
        number
    }

    /// Connects a client to a stream. One that names the last event that it has seen gets what it missed after that,
    /// and takes the stream over: that its last connection broke may not have been seen here yet, or ever. One that
    /// names none gets what nobody was handed yet. None when there is no such stream, or when one that names nothing
    /// finds somebody connected to it.
    pub(super) fn attach(&self, stream: u64, after: Option<u64>) -> Option<mpsc::Receiver<Bytes>> {
        let mut inner = self.inner();
        let Inner {
            streams, events, ..
        } = &mut *inner;
        let entry = entry(streams, stream)?;
        let is_heard = entry.live.as_ref().is_some_and(|live| !live.is_closed());
        if is_heard && after.is_none() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(KEPT + WAITING);
        let after = after.unwrap_or(entry.handed);
        let missed = events
            .iter()
            .filter(|(of, event, _)| *of == stream && *event > after);
        for (_, _, bytes) in missed {
            let _ = sender.try_send(bytes.clone());
        }
        entry.handed = entry.last;
        entry.live = (!entry.is_over).then_some(sender);
        Some(receiver)
    }

    /// Whether a client is connected to any of the streams.
    pub(super) fn is_heard(&self) -> bool {
        let inner = self.inner();
        let mut live = inner.streams.values().filter_map(|of| of.live.as_ref());
        live.any(|live| !live.is_closed())
    }

    /// Writes an event; `data` empty primes a stream.
    pub(super) fn publish(&self, stream: u64, data: &str, retry: Option<Duration>) {
        let mut inner = self.inner();
        let Some(entry) = entry(&mut inner.streams, stream) else {
            return;
        };
        entry.last += 1;
        let event = entry.last;
        let bytes = frame(Some(&format!("{stream}-{event}")), data, retry);
        match entry.live.as_ref().map(|live| live.try_send(bytes.clone())) {
            Some(Ok(())) => entry.handed = event,
            // Too slow or gone: it may come back and will find everything here.
            Some(Err(_)) => entry.live = None,
            None => {}
        }
        inner.events.push_back((stream, event, bytes));
        while inner.events.len() > KEPT {
            if let Some((of, _, _)) = inner.events.pop_front() {
                inner.forget(of);
            }
        }
    }

    /// Nothing more will come on this stream.
    pub(super) fn end(&self, stream: u64) {
        let mut inner = self.inner();
        if let Some(entry) = inner.streams.get_mut(&stream) {
            entry.is_over = true;
            entry.live = None;
        }
        inner.forget(stream);
    }

    /// Lets the client of a stream go without ending the stream.
    pub(super) fn detach(&self, stream: u64) {
        if let Some(entry) = self.inner().streams.get_mut(&stream) {
            entry.live = None;
        }
    }

    /// Drops everything: the session is over.
    pub(super) fn close(&self) {
        *self.inner() = Inner::default();
    }
}

/// The stream of that number. The one that belongs to no request is there from the first event on:
/// a client may be told something before it has come to listen.
fn entry(streams: &mut BTreeMap<u64, Stream>, stream: u64) -> Option<&mut Stream> {
    if stream == STANDALONE {
        return Some(streams.entry(STANDALONE).or_default());
    }
    streams.get_mut(&stream)
}

impl Inner {
    /// A stream that is over is forgotten with its last event.
    fn forget(&mut self, stream: u64) {
        let has_events = self.events.iter().any(|(of, _, _)| *of == stream);
        if !has_events && self.streams.get(&stream).is_some_and(|entry| entry.is_over) {
            self.streams.remove(&stream);
        }
    }
}

/// An event as bytes.
pub(super) fn frame(id: Option<&str>, data: &str, retry: Option<Duration>) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 64);
    let parts = EventParts {
        id,
        name: (!data.is_empty()).then_some("message"),
        data: Some(data),
        retry: retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
    };
    // Our own ids hold digits and a dash, so there is nothing that could not be written.
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

    /// T3: what was said before the client came to listen is not lost, and not said twice.
    #[test]
    fn a_client_that_comes_late_has_missed_nothing() {
        let log = EventLog::default();
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

    /// T3: a client that comes back gets what it missed, of its own stream only.
    #[test]
    fn a_client_resumes_its_own_stream() {
        let log = EventLog::default();
        let (one, two) = (log.open(), log.open());
        let mut first = log.attach(one, None).unwrap();
        log.publish(one, "a", None);
        log.publish(two, "other", None);
        assert!(
            log.attach(one, None).is_none(),
            "nobody takes a stream over without having heard it"
        );
        assert!(drain(&mut first).contains("data: a") || drain(&mut first).is_empty());
        drop(first);
        log.publish(one, "b", None);
        log.end(one);
        let place = Place::parse(&format!("{one}-1")).unwrap();
        let mut again = log.attach(place.stream, Some(place.event)).unwrap();
        let seen = drain(&mut again);
        assert!(seen.contains('b') && !seen.contains("other"), "{seen}");
        assert!(
            again
                .try_recv()
                .is_err_and(|e| e == mpsc::error::TryRecvError::Disconnected)
        );
    }

    /// T3: whoever has heard a stream takes it over from a connection that nobody has seen break, which ends.
    #[test]
    fn a_stream_is_taken_over() {
        let log = EventLog::default();
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

    /// T9: what is kept is bounded.
    #[test]
    fn old_events_make_room() {
        let log = EventLog::default();
        for _ in 0..10 {
            let stream = log.open();
            for _ in 0..100 {
                log.publish(stream, "x", None);
            }
            log.end(stream);
        }
        let inner = log.inner();
        assert_eq!(inner.events.len(), KEPT);
        assert!(inner.streams.len() <= 4, "{}", inner.streams.len());
    }
}
