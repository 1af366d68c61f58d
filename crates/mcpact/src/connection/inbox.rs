//! Messages from a server, and the inbox of a call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::task::AtomicWaker;
use mcpact_spec::Method;
use mcpact_spec::tables::meta;
use mcpact_transport::error::TransportError;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::{Object, elements};

use tokio::sync::mpsc;

use super::raw_result::RawResult;
use super::server_request::ServerRequest;
use super::{Delivery, DropReason, FailureText, MessageHandler, part};
use crate::byte_budget::{ByteBudget, Reservation};
use crate::lock;

/// Event of a call.
#[derive(Debug)]
pub enum CallEvent {
    /// Notification that belongs to the call.
    Notification(ServerNotification),
    /// Request of the server on behalf of the call.
    Request(ServerRequest),
    /// The response; the last event.
    Response(ServerResponse),
    /// No response will come; the last event.
    Failed(CallFailure),
}

/// A notification of the server.
#[derive(Clone, Debug)]
pub struct ServerNotification {
    /// Method.
    pub method: Method,
    /// Raw parameters.
    pub params: ByteString,
}

impl ServerNotification {
    /// Returns the id of the request that a legacy server cancels.
    pub fn cancelled_request(&self) -> Option<Id> {
        match self.method {
            Method::Cancelled => cancelled_id(Some(&self.params)),
            _ => None,
        }
    }
}

/// Returns the request id in the parameters of a cancellation.
pub(crate) fn cancelled_id(params: Option<&str>) -> Option<Id> {
    let params = Object::parse(params?).ok()?;
    let id = params.get("requestId").and_then(IdRef::from_token)?;
    Some(id.to_id())
}

/// A response of the server.
#[derive(Clone, Debug)]
pub enum ServerResponse {
    /// Raw result.
    Result(RawResult),
    /// Raw error.
    Error(ByteString),
}

/// Reason for a call without a response.
#[derive(Clone, Debug)]
pub enum CallFailure {
    /// The server does not know the session; it did not process the request.
    SessionLost,
    /// The server rejects the negotiated revision; it did not process the request.
    RevisionRefused,
    /// The refusal may concern the session or revision, or only this request.
    Ambiguous(AmbiguousRefusal),
    /// The connection ended before the request was sent.
    NotSent(FailureText),
    /// The server could not be reached.
    Unreachable(Arc<TransportError>),
    /// The request would come back to its sender (HTTP 508).
    LoopDetected,
    /// The connection was lost; the server may have run the request.
    ConnectionLost(FailureText),
    /// The response violates the protocol; the server may have run the request.
    ProtocolViolation(String),
    /// The server answered with an HTTP status and no message.
    HttpStatus(u16),
    /// The response exceeds this number of bytes.
    ResponseTooLarge(usize),
    /// There was no memory for the response.
    MemoryExhausted,
}

impl CallFailure {
    /// Fate of the request: the only fact that may decide a resend.
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::NotSent(_) | Self::Unreachable(_) | Self::LoopDetected => Delivery::NotSent,
            Self::SessionLost | Self::RevisionRefused => Delivery::RefusedUnread,
            Self::Ambiguous(_)
            | Self::ConnectionLost(_)
            | Self::ProtocolViolation(_)
            | Self::HttpStatus(_)
            | Self::ResponseTooLarge(_)
            | Self::MemoryExhausted => Delivery::Unknown,
        }
    }
}

/// A refusal with unclear cause.
#[derive(Clone, Debug)]
pub struct AmbiguousRefusal {
    /// HTTP status.
    pub status: u16,
    /// Raw error; none if there was only a status.
    pub error: Option<ByteString>,
}

/// A message that belongs to no call.
#[derive(Debug)]
pub enum Unsolicited {
    /// A notification.
    Notification(ServerNotification),
    /// A request.
    Request(ServerRequest),
}

/// Maximum number of queued messages that belong to no call.
const MAX_UNSOLICITED: u32 = 256;

/// Sender of messages that belong to no call.
#[derive(Clone, Debug)]
pub(super) struct UnsolicitedSender {
    sender: mpsc::UnboundedSender<(Unsolicited, Reservation)>,
    budget: ByteBudget,
}

/// Receiver of messages that belong to no call.
#[derive(Debug)]
pub struct UnsolicitedReceiver(mpsc::UnboundedReceiver<(Unsolicited, Reservation)>);

/// Creates the queue of messages that belong to no call.
pub(super) fn unsolicited() -> (UnsolicitedSender, UnsolicitedReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let budget = ByteBudget::new(MAX_UNSOLICITED);
    (
        UnsolicitedSender { sender, budget },
        UnsolicitedReceiver(receiver),
    )
}

/// The message does not fit, or nothing receives it.
#[derive(Debug)]
pub(super) struct Undelivered;

impl UnsolicitedSender {
    /// Queues a message without waiting.
    pub(super) fn try_send(&self, message: Unsolicited) -> Result<(), Undelivered> {
        let reservation = self.budget.try_reserve(message.size());
        self.put(message, reservation)
    }

    /// Queues a message, waiting for space.
    pub(super) async fn send(&self, message: Unsolicited) -> Result<(), Undelivered> {
        let reservation = tokio::select! {
            reservation = self.budget.reserve(message.size()) => reservation,
            () = self.sender.closed() => None,
        };
        self.put(message, reservation)
    }

    fn put(
        &self,
        message: Unsolicited,
        reservation: Option<Reservation>,
    ) -> Result<(), Undelivered> {
        let item = (message, reservation.ok_or(Undelivered)?);
        self.sender.send(item).map_err(|_| Undelivered)
    }
}

impl UnsolicitedReceiver {
    /// Returns the next message, or `None` after the end of the connection. Cancel safe.
    pub async fn recv(&mut self) -> Option<Unsolicited> {
        let (message, _reservation) = self.0.recv().await?;
        Some(message)
    }
}

impl Unsolicited {
    fn size(&self) -> usize {
        match self {
            Self::Notification(notification) => notification.params.len(),
            Self::Request(request) => request.params.len(),
        }
    }
}

/// A parsed message.
pub(super) enum Incoming {
    Notification(ServerNotification),
    Request(ServerRequest),
    Response(Option<Id>, ServerResponse),
    /// The handler of the owner took the message.
    Handled,
    /// A message that cannot be passed on.
    Invalid(DropReason),
}

/// Parses one message. A handler takes notifications; the caller passes it requests, with their reply path.
pub(super) fn parse(bytes: &Bytes, handler: Option<&dyn MessageHandler>) -> Incoming {
    let Ok(bytes) = &ByteString::try_from(bytes.clone()) else {
        tracing::warn!("invalid message from the server: not UTF-8");
        return Incoming::Invalid(DropReason::NotAMessage);
    };
    match Envelope::read(bytes) {
        Ok(Envelope::Notification(notification)) => {
            if let Some(handler) = handler {
                handler.notification(&notification);
                return Incoming::Handled;
            }
            match Method::parse(&notification.method)
                .or_else(|| Method::parse_alias(&notification.method))
            {
                Some(method) => Incoming::Notification(ServerNotification {
                    method,
                    params: part(bytes, notification.params.raw),
                }),
                None => Incoming::Invalid(DropReason::UnknownMethod),
            }
        }
        Ok(Envelope::Request(request)) => Incoming::Request(ServerRequest::new(
            request.id.to_id(),
            Box::from(request.method.as_ref()),
            part(bytes, request.params.raw),
        )),
        Ok(Envelope::Response(response)) => {
            let reply = match response.outcome {
                Outcome::Result(body) => {
                    let text = part(bytes, Some(body.raw));
                    ServerResponse::Result(RawResult::scanned(text, body.seen))
                }
                Outcome::Error(raw) => ServerResponse::Error(part(bytes, Some(raw))),
            };
            Incoming::Response(response.id.map(IdRef::to_id), reply)
        }
        Err(error) => {
            tracing::warn!(%error, "invalid message from the server");
            Incoming::Invalid(DropReason::NotAMessage)
        }
    }
}

/// Returns the messages of a batch, which 2025-03-26 servers may send; none for a single message.
pub(super) fn batch(bytes: &Bytes) -> Option<Vec<Bytes>> {
    if bytes.first() != Some(&b'[') {
        return None;
    }
    let all = elements(std::str::from_utf8(bytes).ok()?).unwrap_or_default();
    // Copies, so that a queued message does not keep the whole batch.
    let copy = |one: &str| Bytes::copy_from_slice(one.as_bytes());
    Some(all.into_iter().map(copy).collect())
}

/// Returns the server's task id that a message of 2025-11-25 belongs to.
pub fn related_task(params: &str) -> Option<String> {
    let meta = Object::parse(params).ok()?.get("_meta")?;
    let related = Object::parse(meta).ok()?.get(meta::RELATED_TASK)?;
    let task = Object::parse(related).ok()?.get_str("taskId")?;
    Some(task.into_owned())
}

/// Maximum number of queued notifications of a call. The oldest are dropped; other events never are.
const MAX_NOTIFICATIONS: usize = 1024;
/// Maximum bytes of queued notifications. A larger notification is queued alone.
const MAX_BYTES: usize = 256 * 1024;

/// Event queue of a call.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    reader: AtomicWaker,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<CallEvent>,
    notifications: usize,
    /// Size of the notifications.
    bytes: usize,
}

impl Waiting {
    fn push(&mut self, event: CallEvent) {
        self.count(&event, usize::saturating_add);
        self.events.push_back(event);
    }

    fn pop(&mut self) -> Option<CallEvent> {
        let event = self.events.pop_front()?;
        self.count(&event, usize::saturating_sub);
        Some(event)
    }

    fn count(&mut self, event: &CallEvent, step: fn(usize, usize) -> usize) {
        if let CallEvent::Notification(notification) = event {
            self.notifications = step(self.notifications, 1);
            self.bytes = step(self.bytes, notification.params.len());
        }
    }

    /// Drops the oldest notifications until the event fits. Returns their number.
    fn drop_oldest(&mut self, event: &CallEvent) -> usize {
        let CallEvent::Notification(new) = event else {
            return 0;
        };
        let mut dropped = 0;
        while self.notifications >= MAX_NOTIFICATIONS
            || (self.notifications > 0 && self.bytes + new.params.len() > MAX_BYTES)
        {
            let is_notification = |event: &CallEvent| matches!(event, CallEvent::Notification(_));
            let oldest = self.events.iter().position(is_notification);
            let Some(old) = oldest.and_then(|at| self.events.remove(at)) else {
                break;
            };
            self.count(&old, usize::saturating_sub);
            dropped += 1;
        }
        dropped
    }
}

impl Inbox {
    /// Adds an event. Returns the number of older events that were dropped for it.
    pub(super) fn put(&self, event: CallEvent) -> usize {
        let mut waiting = lock(&self.waiting);
        let dropped = waiting.drop_oldest(&event);
        waiting.push(event);
        drop(waiting);
        self.reader.wake();
        dropped
    }

    pub(super) async fn take(&self) -> CallEvent {
        std::future::poll_fn(|cx| {
            self.reader.register(cx.waker());
            lock(&self.waiting).pop().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Removes the id of an error response. It belongs to the POST that it answers, and some servers send an arbitrary id.
pub(super) fn without_error_id(answer: Bytes) -> Bytes {
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

    fn notification(length: usize) -> CallEvent {
        CallEvent::Notification(ServerNotification {
            method: Method::Progress,
            params: " ".repeat(length).into(),
        })
    }

    /// Takes all events and returns the lengths of the notifications.
    fn lengths(inbox: &Inbox) -> Vec<usize> {
        let mut lengths = Vec::new();
        while let Some(event) = inbox.take().now_or_never() {
            if let CallEvent::Notification(notification) = event {
                lengths.push(notification.params.len());
            }
        }
        lengths
    }

    #[test]
    fn oldest_notifications_are_dropped_and_responses_are_kept() {
        let inbox = Inbox::default();
        let half = MAX_BYTES / 2;
        assert_eq!(inbox.put(notification(half)), 0);
        assert_eq!(inbox.put(notification(half - 1)), 0);
        assert_eq!(
            inbox.put(CallEvent::Response(ServerResponse::Result("".into()))),
            0
        );
        assert_eq!(inbox.put(notification(2)), 1);
        assert_eq!(inbox.put(notification(2 * MAX_BYTES)), 2, "queued alone");
        assert_eq!(lock(&inbox.waiting).events.len(), 2);
        assert_eq!(lengths(&inbox), [2 * MAX_BYTES]);
        for _ in 0..MAX_NOTIFICATIONS {
            assert_eq!(inbox.put(notification(0)), 0);
        }
        assert_eq!(inbox.put(notification(0)), 1);
        assert_eq!(lengths(&inbox).len(), MAX_NOTIFICATIONS);
        let waiting = lock(&inbox.waiting);
        assert_eq!((waiting.notifications, waiting.bytes), (0, 0));
    }
}
