//! What arrives from a server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::task::AtomicWaker;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::ask::Ask;
use super::part;
use crate::error::{Delivery, FailureText, Trouble};
use crate::stable::DropReason;

/// What happens to a call.
#[derive(Debug)]
pub(crate) enum Event {
    /// The server tells something that belongs to it.
    Note(Note),
    /// The server asks something for it.
    Ask(Ask),
    /// It is answered.
    Done(Reply),
    /// It never will be.
    Lost(Loss),
}

/// A notification.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) method: Method,
    pub(crate) params: ByteString,
}

impl Note {
    /// The question that a legacy server takes back by this.
    pub(crate) fn withdrawn_question(&self) -> Option<Id> {
        if self.method != Method::Cancelled {
            return None;
        }
        let params = Object::parse(&self.params).ok()?;
        IdRef::from_token(params.get("requestId")?).map(IdRef::to_id)
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A raw result.
    Result(ByteString),
    /// A raw error.
    Error(ByteString),
}

/// Why an answer never comes.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The server has forgotten the session, and did not look at the request.
    Session,
    /// The server does not go along with what was agreed any more, and did not look at the request.
    Agreement,
    /// The server refused the request in a way that may mean the same, or be about the request.
    Doubt(Doubt),
    /// The connection was gone before the request could be sent.
    Unsent(FailureText),
    /// There was no way to the server, for this reason.
    Unreached(Arc<Trouble>),
    /// The connection broke; what the server did is not known.
    Connection(FailureText),
    /// What the server answered breaks a rule; what it did is not known.
    Misbehaved(String),
    /// The server answered with a status and nothing else.
    Status(u16),
    /// The answer was longer than this many bytes.
    TooLong(usize),
}

impl Loss {
    /// Fate of the request: the only fact that may decide a resend.
    pub(crate) const fn delivery(&self) -> Delivery {
        match self {
            Self::Unsent(_) | Self::Unreached(_) => Delivery::NotSent,
            Self::Session | Self::Agreement => Delivery::RefusedUnread,
            Self::Doubt(_)
            | Self::Connection(_)
            | Self::Misbehaved(_)
            | Self::Status(_)
            | Self::TooLong(_) => Delivery::Unknown,
        }
    }
}

/// A refusal of which it is not known what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    pub(crate) status: u16,
    /// The raw error that came with it; none if the status is everything.
    pub(crate) error: Option<ByteString>,
}

/// What belongs to no call that we know of.
#[derive(Debug)]
pub(crate) enum Stray {
    Note(Note),
    Ask(Ask),
}

/// A message, sorted.
pub(super) enum Sorted {
    Note(Note),
    Ask(Ask),
    Reply(Option<Id>, Reply),
    /// Nothing that could be passed on, and why.
    Nothing(DropReason),
}

/// Reads one message.
pub(super) fn sort(bytes: &Bytes) -> Sorted {
    let Ok(bytes) = &ByteString::try_from(bytes.clone()) else {
        tracing::warn!("invalid message from the server: not UTF-8");
        return Sorted::Nothing(DropReason::NotAMessage);
    };
    match Envelope::read(bytes) {
        Ok(Envelope::Notification(note)) => {
            match Method::parse(&note.method).or_else(|| Method::parse_alias(&note.method)) {
                Some(method) => Sorted::Note(Note {
                    method,
                    params: part(bytes, note.params.raw),
                }),
                None => Sorted::Nothing(DropReason::UnknownMethod),
            }
        }
        Ok(Envelope::Request(request)) => Sorted::Ask(Ask::new(
            request.id.to_id(),
            Method::parse(&request.method),
            part(bytes, request.params.raw),
        )),
        Ok(Envelope::Response(response)) => {
            let reply = match response.outcome {
                Outcome::Result(body) => Reply::Result(part(bytes, Some(body.raw))),
                Outcome::Error(raw) => Reply::Error(part(bytes, Some(raw))),
            };
            Sorted::Reply(response.id.map(IdRef::to_id), reply)
        }
        Err(error) => {
            tracing::warn!(%error, "invalid message from the server");
            Sorted::Nothing(DropReason::NotAMessage)
        }
    }
}

/// The server's name for the task that a message of 2025-11-25 belongs to.
pub(crate) fn related_task(params: &str) -> Option<String> {
    let meta = Object::parse(params).ok()?.get("_meta")?;
    let related = Object::parse(meta).ok()?.get(meta::RELATED_TASK)?;
    let task = Object::parse(related).ok()?.get_str("taskId")?;
    Some(task.into_owned())
}

/// How many notifications may wait for a call; the oldest make room, an answer is never lost.
const ROOM: usize = 1024;
/// How many bytes of them may wait; a longer one waits alone.
const BYTES: usize = 256 * 1024;

/// The letter box of a call.
#[derive(Debug, Default)]
pub(super) struct Mail {
    waiting: Mutex<Waiting>,
    reader: AtomicWaker,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    notes: usize,
    /// Of the notes.
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, event: Event) {
        self.count(&event, usize::saturating_add);
        self.events.push_back(event);
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.count(&event, usize::saturating_sub);
        Some(event)
    }

    fn count(&mut self, event: &Event, step: fn(usize, usize) -> usize) {
        if let Event::Note(note) = event {
            self.notes = step(self.notes, 1);
            self.bytes = step(self.bytes, note.params.len());
        }
    }

    /// Takes the oldest notes out until there is room for this event; how many those were.
    fn make_room(&mut self, event: &Event) -> usize {
        let Event::Note(coming) = event else { return 0 };
        let mut lost = 0;
        while self.notes >= ROOM || (self.notes > 0 && self.bytes + coming.params.len() > BYTES) {
            let is_note = |event: &Event| matches!(event, Event::Note(_));
            let oldest = self.events.iter().position(is_note);
            let Some(old) = oldest.and_then(|at| self.events.remove(at)) else {
                break;
            };
            self.count(&old, usize::saturating_sub);
            lost += 1;
        }
        lost
    }
}

impl Mail {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in; how many older ones that cost.
    pub(super) fn put(&self, event: Event) -> usize {
        let mut waiting = self.waiting();
        let lost = waiting.make_room(&event);
        waiting.push(event);
        drop(waiting);
        self.reader.wake();
        lost
    }

    pub(super) async fn take(&self) -> Event {
        std::future::poll_fn(|cx| {
            self.reader.register(cx.waker());
            self.waiting().pop().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// An error as one that names no request: it belongs to the POST that it answers, and servers in the
/// field give it an id of their own.
pub(super) fn readdressed(answer: Bytes) -> Bytes {
    if let Ok(Envelope::Response(response)) = Envelope::parse(&answer)
        && let Outcome::Error(raw) = response.outcome
    {
        return Bytes::from(codec::error(None, raw));
    }
    answer
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn note(length: usize) -> Event {
        Event::Note(Note {
            method: Method::Progress,
            params: " ".repeat(length).into(),
        })
    }

    /// How long the notes are that wait.
    fn lengths(mail: &Mail) -> Vec<usize> {
        let mut lengths = Vec::new();
        while let Some(event) = mail.take().now_or_never() {
            if let Event::Note(note) = event {
                lengths.push(note.params.len());
            }
        }
        lengths
    }

    #[test]
    fn the_oldest_notes_make_room_and_answers_stay() {
        let mail = Mail::default();
        let half = BYTES / 2;
        assert_eq!(mail.put(note(half)), 0);
        assert_eq!(mail.put(note(half - 1)), 0);
        assert_eq!(mail.put(Event::Done(Reply::Result(ByteString::new()))), 0);
        assert_eq!(mail.put(note(2)), 1);
        assert_eq!(mail.put(note(2 * BYTES)), 2, "a long one waits alone");
        assert_eq!(mail.waiting().events.len(), 2);
        assert_eq!(lengths(&mail), [2 * BYTES]);
        for _ in 0..ROOM {
            assert_eq!(mail.put(note(0)), 0);
        }
        assert_eq!(mail.put(note(0)), 1);
        assert_eq!(lengths(&mail).len(), ROOM);
        let waiting = mail.waiting();
        assert_eq!((waiting.notes, waiting.bytes), (0, 0));
    }
}
