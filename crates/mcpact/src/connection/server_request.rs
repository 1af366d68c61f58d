//! Requests of a server to the client, and the path of the reply.

use bytestring::ByteString;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::Outcome;
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::model::error;

use super::http::HttpReplyPath;
use super::stdio::StdioReplyPath;
use crate::byte_budget::{ByteBudget, Reservation};

/// Error message for a request that was dropped without a reply.
const DROPPED: &str = "no reply is possible: the call to which this request belongs has ended";

/// Maximum number of open requests of a connection. Further ones are refused.
const MAX_REQUESTS: u32 = 1024;

/// Error message for a request above the limit.
const REFUSED: &str = "too many requests of this server are open";

/// Limit of the requests of a connection that are not answered yet.
#[derive(Clone, Debug)]
pub(super) struct RequestLimit(ByteBudget);

/// Space of an open request. It is held until the reply is queued or sent.
#[derive(Debug)]
pub(super) struct OpenRequest {
    _reservation: Reservation,
}

impl Default for RequestLimit {
    fn default() -> Self {
        Self(ByteBudget::new(MAX_REQUESTS))
    }
}

impl RequestLimit {
    /// Admits a request, unless too many are open.
    pub(super) fn admit(&self, request: &ServerRequest) -> Option<OpenRequest> {
        let size = request.name.len() + request.params.len();
        let reservation = self.0.try_reserve(size);
        reservation.map(|_reservation| OpenRequest { _reservation })
    }
}

/// A request of the server.
///
/// A server may block until it gets a reply, so dropping the request replies with an error.
#[derive(Debug)]
pub struct ServerRequest {
    /// Id that the server chose.
    pub id: Id,
    /// None for a method that no revision defines.
    pub method: Option<Method>,
    /// Name of the method.
    pub name: Box<str>,
    /// Raw parameters.
    pub params: ByteString,
    /// None if no reply is due.
    path: Option<ReplyPath>,
}

/// Path of a reply.
#[derive(Debug)]
pub(super) enum ReplyPath {
    Stdio(StdioReplyPath),
    Http(HttpReplyPath),
}

impl ServerRequest {
    /// Creates a request to which no reply is due.
    pub(super) fn new(id: Id, name: Box<str>, params: ByteString) -> Self {
        Self {
            id,
            method: Method::parse(&name),
            name,
            params,
            path: None,
        }
    }

    /// Sets the path of the reply.
    pub(super) fn reply_to(mut self, path: ReplyPath) -> Self {
        self.path = Some(path);
        self
    }

    /// Returns the response to a request above the limit.
    pub(super) fn refusal(&self) -> String {
        let error = error::encode(ErrorCode::InternalError.code(), REFUSED, None);
        codec::error(Some(self.id.as_ref()), &error)
    }

    /// Replies.
    pub async fn answer(mut self, outcome: &Outcome) {
        let text = match outcome {
            Outcome::Result(result) => codec::result(self.id.as_ref(), result),
            Outcome::Error(error) => codec::error(Some(self.id.as_ref()), error),
        };
        if let Some(ReplyPath::Stdio(path)) = &self.path {
            // A cancelled send replies with an error, in `drop`.
            path.send(text).await;
            self.path = None;
        } else if let Some(ReplyPath::Http(path)) = self.path.take()
            && let Some(posting) = path.post(text)
        {
            // The background job continues if this future is dropped.
            let _ = posting.await;
        }
    }

    /// Drops the request without a reply, after the server has cancelled it.
    pub fn cancelled(mut self) {
        self.path = None;
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else {
            return;
        };
        let refusal = error::encode(ErrorCode::InternalError.code(), DROPPED, None);
        let text = codec::error(Some(self.id.as_ref()), &refusal);
        match path {
            ReplyPath::Stdio(path) => path.push(text),
            ReplyPath::Http(path) => drop(path.post(text)),
        }
    }
}
