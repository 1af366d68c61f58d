//! What arrives from a server.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::part;

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
    pub(crate) params: Bytes,
}

impl Note {
    /// The question that a legacy server takes back by this.
    pub(crate) fn withdrawn_question(&self) -> Option<Id> {
        if self.method != Method::Cancelled {
            return None;
        }
        let params = Object::parse(text(&self.params)).ok()?;
        IdRef::from_token(params.get("requestId")?).map(IdRef::to_id)
    }
}

/// A request of the server.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) id: Id,
    /// None for a method that no revision knows.
    pub(crate) method: Option<Method>,
    pub(crate) params: Bytes,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A raw result.
    Result(Bytes),
    /// A raw error.
    Error(Bytes),
}

/// Why an answer never comes.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The server has forgotten the session, and did not look at the request.
    Session,
    /// The connection was gone before the request could be sent.
    Unsent(String),
    /// The connection broke; what the server did is not known.
    Connection(String),
    /// The server answered with a status and nothing else.
    Status(u16),
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
    Nothing(&'static str),
}

/// Reads one message.
pub(super) fn sort(bytes: &Bytes) -> Sorted {
    match Envelope::parse(bytes) {
        Ok(Envelope::Notification(note)) => {
            match Method::parse(&note.method).or_else(|| Method::parse_alias(&note.method)) {
                Some(method) => Sorted::Note(Note {
                    method,
                    params: part(bytes, note.params.raw),
                }),
                None => Sorted::Nothing("unknown_method"),
            }
        }
        Ok(Envelope::Request(request)) => Sorted::Ask(Ask {
            id: request.id.to_id(),
            method: Method::parse(&request.method),
            params: part(bytes, request.params.raw),
        }),
        Ok(Envelope::Response(response)) => {
            let reply = match response.outcome {
                Outcome::Result(body) => Reply::Result(part(bytes, Some(body.raw))),
                Outcome::Error(raw) => Reply::Error(part(bytes, Some(raw))),
            };
            Sorted::Reply(response.id.map(IdRef::to_id), reply)
        }
        Err(error) => {
            tracing::warn!(%error, "the server wrote something that is no message");
            Sorted::Nothing("not_a_message")
        }
    }
}

/// Text that came from a message, which is UTF-8 throughout.
pub(crate) fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap_or("{}")
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

/// The letter box of a call.
#[derive(Debug, Default)]
pub(super) struct Mail {
    events: Mutex<VecDeque<Event>>,
    reader: AtomicWaker,
}

impl Mail {
    /// Puts an event in; whether that was at the cost of an older one.
    pub(super) fn put(&self, event: Event) -> bool {
        let mut lost_one = false;
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= ROOM {
            let note = events
                .iter()
                .position(|event| matches!(event, Event::Note(_)));
            if let Some(at) = note {
                lost_one = events.remove(at).is_some();
            }
        }
        events.push_back(event);
        drop(events);
        self.reader.wake();
        lost_one
    }

    pub(super) async fn take(&self) -> Event {
        std::future::poll_fn(|cx| {
            self.reader.register(cx.waker());
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            events.pop_front().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
