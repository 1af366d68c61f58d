//! One request: checks, body, handler, response.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName,
    HeaderValue, ORIGIN, RETRY_AFTER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use mcpact_wire::codec;
use tokio::sync::mpsc;

use super::body::ResponseBody;
use super::cors;
use super::guard::Guard;
use super::idle::RequestGuard;
use super::listener::{Endpoint, Limits};
use super::message::{HttpRequest, HttpResponse, HttpResponseBody};
use super::peer::{LocalClients, Peer};
use super::rejections;
use super::token::Tokens;
use super::upgrade::{self, UpgradeRequest};
use crate::budget::{Charge, FREE, MIN_PROGRESS, MemoryExhausted, REQUEST_COPIES};
use crate::within::within;

/// Seconds in `Retry-After` of a 503 response.
const RETRY_AFTER_SECONDS: &str = "2";

/// The same if the memory is exhausted.
const MEMORY_RETRY_AFTER_SECONDS: &str = "1";

/// Size of the smallest block of a body that is being read.
const LEAST_BLOCK: usize = 4 * 1024;

/// Size of the largest block of a body that is being read.
const BLOCK: usize = 256 * 1024;

/// An admitted request with an unread body.
struct Admitted {
    /// Without its body.
    message: Box<HttpRequest>,
    body: Incoming,
    origin: Option<HeaderValue>,
    upgrade_request: Option<Box<UpgradeRequest>>,
}

/// State shared by all connections of a listener.
pub(super) struct ListenerShared<E> {
    pub(super) endpoint: Arc<E>,
    pub(super) guard: Guard,
    pub(super) tokens: Tokens,
    pub(super) clients: LocalClients,
    pub(super) limits: Limits,
    /// Held by every open WebSocket.
    pub(super) sockets: mpsc::Sender<Infallible>,
}

impl<E: Endpoint> ListenerShared<E> {
    pub(super) async fn serve(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        guard: RequestGuard,
    ) -> Response<ResponseBody> {
        let response = self.respond(request, peer, &guard).await;
        response.map(|body| body.guarded(guard))
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        peer: Peer,
        guard: &RequestGuard,
    ) -> Response<ResponseBody> {
        let Admitted {
            message,
            body,
            origin,
            upgrade_request,
        } = match self.admit(request, peer, guard) {
            Ok(admitted) => admitted,
            Err(response) => return *response,
        };
        let mut answer = self.answer(message, body, peer, guard).await;
        if let HttpResponseBody::Socket(run) = answer.body {
            answer = upgrade::respond(upgrade_request, run, self.sockets.clone(), guard);
        }
        let mut response = into_response(charged(answer, guard));
        if let Some(origin) = origin {
            cors::grant(origin, response.headers_mut());
        }
        response
    }

    /// Checks a request; the error is its response. A separate function, so that the future of the request does not
    /// hold these values.
    fn admit(
        &self,
        mut request: Request<Incoming>,
        peer: Peer,
        guard: &RequestGuard,
    ) -> Result<Admitted, Box<Response<ResponseBody>>> {
        let wants_upgrade = request.headers().contains_key(UPGRADE);
        let upgrade_request = wants_upgrade.then(|| Box::new(UpgradeRequest::of(&mut request)));
        let (head, body) = request.into_parts();
        let refuse = |status, why: String| {
            let response = rejected(HttpResponse::text(status, why));
            Err(Box::new(into_response(response)))
        };
        if let Err(foreign) = self.clients.check(peer.uid) {
            tracing::warn!(%peer, uid = ?peer.uid, "request of another user rejected");
            return refuse(403, foreign.to_string());
        }
        if size(&head) > self.limits.header_bytes {
            return refuse(431, String::from("the headers are too large"));
        }
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        if let Err(fault) = self.guard.check(authority, &head.headers) {
            tracing::warn!(%peer, %fault, "request rejected");
            return refuse(403, fault.to_string());
        }
        let origin = head.headers.get(ORIGIN).cloned();
        if cors::is_preflight(&head.method, &head.headers) {
            let mut response = into_response(HttpResponse::empty(204));
            cors::permit(&head.headers, self.guard.headers(), response.headers_mut());
            if let Some(origin) = origin {
                cors::grant(origin, response.headers_mut());
            }
            return Err(Box::new(response));
        }
        let message = Box::new(HttpRequest {
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            verb: head.method,
            headers: head.headers,
            body: Bytes::new(),
            peer: peer.address,
            peer_uid: peer.uid,
            token_name: None,
            account: guard.account().clone(),
        });
        Ok(Admitted {
            message,
            body,
            origin,
            upgrade_request,
        })
    }

    async fn answer(
        &self,
        mut message: Box<HttpRequest>,
        body: Incoming,
        peer: Peer,
        guard: &RequestGuard,
    ) -> HttpResponse {
        message.token_name = match self.tokens.check(&message.headers) {
            Ok(name) => name,
            Err(refusal) => {
                tracing::warn!(%peer, ?refusal, "request without the token");
                return rejected(HttpResponse::text(401, refusal.body()))
                    .with(WWW_AUTHENTICATE, refusal.challenge());
            }
        };
        if has_other_content_type(&message) {
            return rejected(HttpResponse::text(415, "the body must be application/json"));
        }
        if let Some(response) = unknown_coding(&message.headers) {
            return rejected(response);
        }
        message.body = match self.read(body, guard).await {
            Ok(body) => body,
            Err(BodyError::Memory(exhausted)) => {
                tracing::warn!(%peer, "request refused: {exhausted}");
                return rejected(refused(guard));
            }
            Err(fault) => {
                return rejected(HttpResponse::text(fault.status(), fault.to_string()));
            }
        };
        let response = self.endpoint.handle(message).await;
        match response.status {
            503 => response.with(RETRY_AFTER, RETRY_AFTER_SECONDS),
            _ => response,
        }
    }

    /// Reads a body within its limits; a body in one piece is not copied.
    async fn read(&self, body: Incoming, guard: &RequestGuard) -> Result<Bytes, BodyError> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let limit = self.limits.body;
        let announced = body.size_hint().lower();
        if announced > limit as u64 {
            return Err(BodyError::TooLarge { limit });
        }
        let gathering = Gathering {
            first: Bytes::new(),
            blocks: Vec::new(),
            len: 0,
            next_progress: 0,
            charge: guard.account().empty_charge(guard.budget()),
            limit,
        };
        let announced = usize::try_from(announced).unwrap_or(limit);
        if announced > FREE && !gathering.charge.has_room(REQUEST_COPIES * announced) {
            return Err(MemoryExhausted.into());
        }
        let collected = within(self.limits.body_timeout, gathering.collect(body, guard)).await;
        guard.transfer_pauses();
        collected.unwrap_or(Err(BodyError::TooSlow))
    }
}

/// Counts a rejection. Closes the connection, because the body is unread, and announces it to the client.
fn rejected(response: HttpResponse) -> HttpResponse {
    rejections::count(response.status);
    response.with(CONNECTION, "close")
}

/// Returns the size of a request head. hyper checks its own limit only after each read, so it is not exact.
fn size(head: &http::request::Parts) -> usize {
    let headers = head.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    headers
        + head
            .uri
            .path_and_query()
            .map_or(0, |path| path.as_str().len())
}

/// Error while reading a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BodyError {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("reading the body timed out")]
    TooSlow,
    #[error("the body is malformed")]
    Broken,
    #[error(transparent)]
    Memory(#[from] MemoryExhausted),
}

impl BodyError {
    const fn status(self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::TooSlow => 408,
            Self::Broken => 400,
            Self::Memory(_) => 503,
        }
    }
}

/// A body that is being read. It is kept in blocks: a single buffer would exist twice whenever it grows.
struct Gathering {
    /// The first piece, while it is the only one.
    first: Bytes,
    /// All pieces, if there are several.
    blocks: Vec<Vec<u8>>,
    len: usize,
    /// Length that counts as progress.
    next_progress: usize,
    charge: Charge,
    limit: usize,
}

impl Gathering {
    async fn collect(
        mut self,
        mut body: Incoming,
        guard: &RequestGuard,
    ) -> Result<Bytes, BodyError> {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame
                .map_err(drop)
                .and_then(|f| f.into_data().map_err(drop))
            else {
                return Err(BodyError::Broken);
            };
            self.push(data)?;
            // With a known length, no further poll is needed to detect the end.
            if body.is_end_stream() {
                break;
            }
            // A trickle is no progress.
            if self.charge.bytes() > 0 && self.len >= self.next_progress {
                self.next_progress = self.len + MIN_PROGRESS;
                guard.transfer_continues();
            }
        }
        self.finish()
    }

    fn push(&mut self, data: Bytes) -> Result<(), BodyError> {
        self.len += data.len();
        if self.len > self.limit {
            return Err(BodyError::TooLarge { limit: self.limit });
        }
        if self.len == data.len() {
            self.first = data;
            return Ok(());
        }
        let first = std::mem::take(&mut self.first);
        self.copy(&first)?;
        self.copy(&data)
    }

    /// Copies data into blocks; memory is charged before it is allocated.
    fn copy(&mut self, mut data: &[u8]) -> Result<(), BodyError> {
        while !data.is_empty() {
            let room = self
                .blocks
                .last()
                .map_or(0, |block| block.capacity() - block.len());
            if room == 0 {
                let size = self.len.next_power_of_two().clamp(LEAST_BLOCK, BLOCK);
                if self.len > FREE {
                    self.charge.grow_to(self.charge.bytes() + size)?;
                }
                self.blocks.push(Vec::with_capacity(size));
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            if let Some(block) = self.blocks.last_mut() {
                block.extend_from_slice(now);
            }
            data = later;
        }
        Ok(())
    }

    /// Returns the whole body, charged for the copies that are made of it.
    fn finish(mut self) -> Result<Bytes, BodyError> {
        if self.len > FREE {
            self.charge.grow_to(REQUEST_COPIES * self.len)?;
        }
        let body = match self.blocks.len() {
            0 => self.first,
            1 => self.blocks.pop().map(Bytes::from).unwrap_or_default(),
            _ => Bytes::from(self.blocks.concat()),
        };
        Ok(self.charge.hold(body))
    }
}

/// Charges the body of a response until it is written, also above the limit: its request has taken effect.
fn charged(mut response: HttpResponse, guard: &RequestGuard) -> HttpResponse {
    if let HttpResponseBody::Json(bytes) | HttpResponseBody::Text(bytes) = &mut response.body
        && bytes.len() > FREE
    {
        let mut charge = guard.account().empty_charge(guard.budget());
        charge.cover(bytes.len());
        *bytes = charge.hold(std::mem::take(bytes));
    }
    response
}

/// Response to a request for which there is no memory.
fn refused(guard: &RequestGuard) -> HttpResponse {
    guard.budget().record_refused();
    let error = MemoryExhausted.on_wire();
    let text = codec::error_with_null_id(&error.encode());
    HttpResponse::json(error.http_status, text).with(RETRY_AFTER, MEMORY_RETRY_AFTER_SECONDS)
}

/// Returns whether a body is not JSON. It is rejected unread: browsers may send `text/plain` to any origin without a
/// preflight.
fn has_other_content_type(message: &HttpRequest) -> bool {
    if message.verb != http::Method::POST {
        return false;
    }
    let kind = message.headers.get(CONTENT_TYPE);
    if kind.is_some_and(|kind| kind == JSON) {
        return false;
    }
    let kind = kind.and_then(|value| value.to_str().ok());
    let essence = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim());
    !essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// Returns the refusal of a body whose coding this server does not know.
fn unknown_coding(headers: &HeaderMap) -> Option<HttpResponse> {
    let is_other = |name: &HeaderName, known: &str| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| {
            !value
                .as_bytes()
                .trim_ascii()
                .eq_ignore_ascii_case(known.as_bytes())
        })
    };
    // hyper decodes `chunked`, and refuses other codings unless `chunked` is the last one.
    if is_other(&TRANSFER_ENCODING, "chunked") {
        let why = "the only supported Transfer-Encoding is chunked";
        return Some(HttpResponse::text(501, why));
    }
    if is_other(&CONTENT_ENCODING, "identity") {
        let why = "Content-Encoding is not supported; send the body uncompressed";
        return Some(HttpResponse::text(415, why).with(ACCEPT_ENCODING, "identity"));
    }
    None
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

fn into_response(message: HttpResponse) -> Response<ResponseBody> {
    let is_stream = matches!(message.body, HttpResponseBody::Events(_));
    let (kind, body) = match message.body {
        HttpResponseBody::Empty | HttpResponseBody::Socket(_) => {
            (None, ResponseBody::full(Bytes::new()))
        }
        HttpResponseBody::Json(bytes) => (Some(JSON), ResponseBody::full(bytes)),
        HttpResponseBody::Text(bytes) => (Some(TEXT), ResponseBody::full(bytes)),
        HttpResponseBody::Events(stream) => (Some(EVENTS), ResponseBody::events(stream)),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(message.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    if is_stream {
        headers.insert(CACHE_CONTROL, NO_CACHE);
        headers.insert(NO_BUFFERING.0, NO_BUFFERING.1);
    }
    for (name, value) in message.headers {
        headers.insert(name, value);
    }
    response
}
