//! Connection to one server: negotiation, correlation of messages and calls, resumption of SSE streams.
//!
//! [`connect`] negotiates over any transport. [`Connection`] is one connection or session after that; parameters and
//! results stay raw. A [`Call`] is one request on it and
//! receives everything that belongs to the request. Dropping the call cancels the request.
//! Reconnecting is up to the owner, which learns from [`CallFailure::delivery`] whether a request may be repeated, and from
//! [`Hooks`] what happens to the connection. `mcpact-gateway` builds on this module.

mod error;
pub(crate) mod headers;
mod hooks;
mod http;
mod inbox;
mod negotiate;
mod notification_limit;
mod raw_result;
mod server_request;
mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytestring::ByteString;
use mcpact_engine::pact::Pact;
use mcpact_spec::{Method, Revision};
use mcpact_translate::lifecycle::Introduction;
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::ObjectWriter;

pub use self::error::{ConnectError, Delivery, FailureText, HttpFailure, HttpRefusal};
pub use self::headers::ToolHeaders;
pub use self::hooks::{CallObserver, DeliveryFailure, DropReason, Hooks, MessageHandler};
pub(crate) use self::inbox::cancelled_id;
pub use self::inbox::{
    AmbiguousRefusal, CallEvent, CallFailure, ServerNotification, ServerResponse, Unsolicited,
    UnsolicitedReceiver, related_task,
};
pub use self::negotiate::{Connected, Endpoint, Offer, connect};
pub use self::raw_result::RawResult;
pub use self::server_request::ServerRequest;

use self::http::{HttpCall, HttpConnection};
use self::stdio::{StdioCall, StdioConnection};

/// Connection to a server, with the negotiated pact.
#[derive(Debug)]
pub struct Connection {
    /// The negotiated pact.
    pub pact: Arc<Pact>,
    /// Server info, capabilities and instructions.
    pub introduction: Introduction,
    transport: Transport,
    last_id: AtomicI64,
}

#[derive(Debug)]
enum Transport {
    Stdio(StdioConnection),
    Http(Box<HttpConnection>),
}

/// An in-flight request.
#[derive(Debug)]
pub struct Call {
    kind: Kind,
    /// Event that was read ahead.
    peeked: Option<CallEvent>,
}

#[derive(Debug)]
enum Kind {
    Stdio(StdioCall),
    Http(Box<HttpCall>),
}

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub struct RawRequest<'a> {
    /// None for a method that no revision defines.
    pub method: Option<Method>,
    /// Name of the method.
    pub name: &'a str,
    /// Raw parameters, with the `_meta` of a modern request.
    pub params: Option<&'a str>,
    /// Trace context from `_meta`.
    pub trace: Option<&'a TraceContext>,
}

impl Connection {
    fn new(pact: Arc<Pact>, introduction: Introduction, transport: Transport) -> Self {
        Self {
            pact,
            introduction,
            transport,
            // The handshake uses small ids.
            last_id: AtomicI64::new(100),
        }
    }

    /// Returns the negotiated revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.pact.revision()
    }

    /// Returns true if the connection has ended.
    pub fn is_gone(&self) -> bool {
        match &self.transport {
            Transport::Stdio(connection) => connection.is_gone(),
            Transport::Http(connection) => connection.is_gone(),
        }
    }

    /// Returns the cause of the end of the connection.
    pub fn end(&self) -> Option<FailureText> {
        match &self.transport {
            Transport::Stdio(connection) => connection.end(),
            Transport::Http(connection) => connection
                .is_gone()
                .then(|| "the server no longer knows the session, or was replaced".into()),
        }
    }

    /// Returns true if neither side keeps anything for the connection.
    pub fn is_free(&self) -> bool {
        matches!(&self.transport, Transport::Http(connection) if connection.is_stateless())
    }

    /// Closes the connection.
    pub fn close(&self) {
        match &self.transport {
            Transport::Stdio(connection) => connection.close(),
            Transport::Http(connection) => connection.close(),
        }
    }

    /// Returns true if every call has its own response stream.
    pub const fn has_own_streams(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Returns true if the server can send messages that belong to no call.
    pub fn can_push(&self) -> bool {
        match &self.transport {
            Transport::Stdio(_) => true,
            Transport::Http(connection) => connection.can_push(),
        }
    }

    /// Returns the id for the next request.
    pub fn next_id(&self) -> i64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request.
    pub async fn call(
        &self,
        number: i64,
        request: RawRequest<'_>,
        tool_headers: &ToolHeaders,
    ) -> Call {
        let id = Id::number(number);
        let text = codec::call(Some(id.as_ref()), request.name, request.params);
        let kind = match &self.transport {
            Transport::Stdio(connection) => {
                Kind::Stdio(connection.call(number, request, text).await)
            }
            Transport::Http(connection) => {
                Kind::Http(Box::new(connection.call(&id, request, text, tool_headers)))
            }
        };
        Call { kind, peeked: None }
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<&str>) {
        let text = codec::call(None, method, params);
        match &self.transport {
            Transport::Stdio(connection) => connection.send(text).await,
            Transport::Http(connection) => Box::pin(connection.post(text)).await,
        }
    }
}

impl Call {
    /// Fate of the call if its connection turns out to be stale: not sent, or refused unread because the server
    /// does not know the session. [`Delivery::Unknown`] for every other call.
    ///
    /// Waits for the first event of the call if needed.
    pub async fn refused(&mut self) -> Delivery {
        match &self.kind {
            Kind::Stdio(call) if call.was_unsent() => return Delivery::NotSent,
            Kind::Stdio(_) => return Delivery::Unknown,
            Kind::Http(call) if !call.has_session() => return Delivery::Unknown,
            Kind::Http(_) => {}
        }
        let first = self.next().await;
        let delivery = match &first {
            CallEvent::Failed(loss @ CallFailure::SessionLost) => loss.delivery(),
            _ => Delivery::Unknown,
        };
        self.peeked = Some(first);
        delivery
    }

    /// Returns the details of a failed exchange over HTTP.
    pub fn take_http_failure(&mut self) -> Option<HttpFailure> {
        match &mut self.kind {
            Kind::Stdio(_) => None,
            Kind::Http(call) => call.take_failure(),
        }
    }

    /// Drops the call without cancelling it at the server, which has ended it.
    pub fn forget(mut self) {
        match &mut self.kind {
            Kind::Stdio(call) => call.forget(),
            Kind::Http(call) => call.forget(),
        }
    }

    /// Returns the next event of the call. Cancel safe.
    pub async fn next(&mut self) -> CallEvent {
        if let Some(event) = self.peeked.take() {
            return event;
        }
        match &mut self.kind {
            Kind::Stdio(call) => call.next().await,
            Kind::Http(call) => call.next().await,
        }
    }
}

/// Encodes the cancellation of a request.
fn cancellation(id: &Id) -> String {
    let params = ObjectWriter::new().raw("requestId", id.raw()).finish();
    codec::call(None, Method::Cancelled.as_str(), Some(&params))
}

/// Returns a part of a message; `{}` if it is absent. A small part is copied, so that it does not keep the whole message.
fn part(source: &ByteString, raw: Option<&str>) -> ByteString {
    match raw {
        None => ByteString::from_static("{}"),
        Some(raw) if raw.len() < source.len() / 4 => ByteString::from(raw),
        Some(raw) => source.slice_ref(raw),
    }
}
