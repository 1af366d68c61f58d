//! The upstream side: connections to servers, and calls on them.
//!
//! [`Upstream`] is one connection or session with an agreement. A [`Call`] is one request on it; what
//! belongs to the request arrives there, and dropping the call cancels the request.

mod ask;
mod exit;
mod headers;
mod http;
mod lines;
mod mail;
mod negotiate;
mod sse_link;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytestring::ByteString;
use mcpact_engine::pact::Pact;
use mcpact_spec::{Method, Revision};
use mcpact_translate::lifecycle::Introduction;
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::model::trace::TraceContext;

pub(crate) use self::ask::Ask;
pub(crate) use self::headers::HeaderBook;
pub(crate) use self::mail::{Doubt, Event, Loss, Note, Reply, Stray, related_task};
pub(crate) use self::negotiate::{Met, Wish, connect};

use self::http::{HttpCall, HttpWire};
use self::lines::{LinesCall, LinesWire};
use crate::error::{Delivery, FailureText};

/// A connection to a server, with what was agreed on.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) pact: Arc<Pact>,
    pub(crate) introduction: Introduction,
    wire: Wire,
    last_id: AtomicI64,
}

#[derive(Debug)]
enum Wire {
    Lines(LinesWire),
    Http(Box<HttpWire>),
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Call {
    kind: Kind,
    /// What was looked at before its time.
    seen: Option<Event>,
}

#[derive(Debug)]
enum Kind {
    Lines(LinesCall),
    Http(Box<HttpCall>),
}

/// A request to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ordered<'a> {
    pub(crate) method: Option<Method>,
    pub(crate) name: &'a str,
    /// Its raw parameters, stamped if the server is modern.
    pub(crate) params: &'a str,
    /// The place in a trace that its `_meta` names.
    pub(crate) trace: Option<&'a TraceContext>,
}

impl Upstream {
    fn new(pact: Arc<Pact>, introduction: Introduction, wire: Wire) -> Self {
        Self {
            pact,
            introduction,
            wire,
            // The handshake used small numbers.
            last_id: AtomicI64::new(100),
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.pact.revision()
    }

    /// Whether the connection is gone for good.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.wire {
            Wire::Lines(wire) => wire.is_gone(),
            Wire::Http(wire) => wire.is_gone(),
        }
    }

    /// Why the connection is gone for good, if it is.
    pub(crate) fn end(&self) -> Option<FailureText> {
        match &self.wire {
            Wire::Lines(wire) => wire.end(),
            Wire::Http(wire) => wire
                .is_gone()
                .then(|| "the server forgot the session, or has become another one".into()),
        }
    }

    /// Whether nothing is kept for it, here or at the server.
    pub(crate) fn costs_nothing(&self) -> bool {
        matches!(&self.wire, Wire::Http(wire) if wire.is_stateless())
    }

    /// Ends the connection, whoever uses it.
    pub(crate) fn close(&self) {
        match &self.wire {
            Wire::Lines(wire) => wire.close(),
            Wire::Http(wire) => wire.close(),
        }
    }

    /// Whether everything that a call causes arrives on a stream of its own.
    pub(crate) const fn has_own_streams(&self) -> bool {
        matches!(self.wire, Wire::Http(_))
    }

    /// Whether the server can say something without being asked.
    pub(crate) fn can_push(&self) -> bool {
        match &self.wire {
            Wire::Lines(_) => true,
            Wire::Http(wire) => wire.can_push(),
        }
    }

    /// The number of the next request.
    pub(crate) fn next_id(&self) -> i64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request.
    pub(crate) async fn call(&self, number: i64, order: Ordered<'_>, book: &HeaderBook) -> Call {
        let id = Id::number(number);
        let text = codec::call(Some(id.as_ref()), order.name, Some(order.params));
        let kind = match &self.wire {
            Wire::Lines(wire) => Kind::Lines(wire.call(number, order, text).await),
            Wire::Http(wire) => Kind::Http(Box::new(wire.call(&id, order, text, book))),
        };
        Call { kind, seen: None }
    }

    /// Tells the server something.
    pub(crate) async fn notify(&self, method: Method, params: Option<&str>) {
        let text = codec::call(None, method.as_str(), params);
        match &self.wire {
            Wire::Lines(wire) => wire.send(text).await,
            Wire::Http(wire) => Box::pin(wire.post(text)).await,
        }
    }
}

impl Call {
    /// Fate of the call if its connection turns out to be stale: not sent, or refused unread because the server
    /// does not know the session. [`Delivery::Unknown`] for every other call.
    ///
    /// Waits for the first event of the call where only that tells.
    pub(crate) async fn refused(&mut self) -> Delivery {
        match &self.kind {
            Kind::Lines(call) if call.was_unsent() => return Delivery::NotSent,
            Kind::Lines(_) => return Delivery::Unknown,
            Kind::Http(call) if !call.has_session() => return Delivery::Unknown,
            Kind::Http(_) => {}
        }
        let first = self.next().await;
        let delivery = match &first {
            Event::Lost(loss @ Loss::Session) => loss.delivery(),
            _ => Delivery::Unknown,
        };
        self.seen = Some(first);
        delivery
    }

    /// What happens next to this call. Safe to drop at any time.
    pub(crate) async fn next(&mut self) -> Event {
        if let Some(event) = self.seen.take() {
            return event;
        }
        match &mut self.kind {
            Kind::Lines(call) => call.next().await,
            Kind::Http(call) => call.next().await,
        }
    }
}

/// A part of a message, as bytes that share its memory.
fn part(source: &ByteString, raw: Option<&str>) -> ByteString {
    raw.map_or_else(
        || ByteString::from_static("{}"),
        |raw| source.slice_ref(raw),
    )
}
