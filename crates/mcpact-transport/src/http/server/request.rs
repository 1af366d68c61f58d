//! One request: checks, body, handler, response.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::mpsc;

use super::body::ResponseBody;
use super::cors;
use super::guard::Guard;
use super::idle::RequestGuard;
use super::listener::{Endpoint, Limits};
use super::message::{HttpRequest, HttpResponse, HttpResponseBody};
use super::token::Token;
use super::upgrade::{self, UpgradeRequest};
use crate::within::within;

/// Seconds in `Retry-After` of a 503 response.
const RETRY_AFTER_SECONDS: &str = "2";

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
    pub(super) token: Option<Token>,
    pub(super) limits: Limits,
    /// Held by every open WebSocket.
    pub(super) sockets: mpsc::Sender<Infallible>,
}

impl<E: Endpoint> ListenerShared<E> {
    pub(super) async fn serve(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        guard: RequestGuard,
    ) -> Response<ResponseBody> {
        let response = self.respond(request, peer).await;
        response.map(|body| body.guarded(guard))
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Response<ResponseBody> {
        let Admitted {
            message,
            body,
            origin,
            upgrade_request,
        } = match self.admit(request, peer) {
            Ok(admitted) => admitted,
            Err(response) => return *response,
        };
        let mut answer = self.answer(message, body, peer).await;
        if let HttpResponseBody::Socket(run) = answer.body {
            answer = upgrade::respond(upgrade_request, run, self.sockets.clone());
        }
        let mut response = into_response(answer);
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
        peer: SocketAddr,
    ) -> Result<Admitted, Box<Response<ResponseBody>>> {
        let wants_upgrade = request.headers().contains_key(UPGRADE);
        let upgrade_request = wants_upgrade.then(|| Box::new(UpgradeRequest::of(&mut request)));
        let (head, body) = request.into_parts();
        let refuse = |status, why: String| {
            let response = close_after(HttpResponse::text(status, why));
            Err(Box::new(into_response(response)))
        };
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
            peer: Some(peer),
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
        peer: SocketAddr,
    ) -> HttpResponse {
        let token = self.token.as_ref();
        if let Some(Err(refusal)) = token.map(|token| token.check(&message.headers)) {
            tracing::warn!(%peer, ?refusal, "request without the token");
            return close_after(HttpResponse::text(401, "a bearer token is required"))
                .with(WWW_AUTHENTICATE, refusal.challenge());
        }
        if has_other_content_type(&message) {
            return close_after(HttpResponse::text(415, "the body must be application/json"));
        }
        message.body = match self.read(body).await {
            Ok(body) => body,
            Err(fault) => {
                return close_after(HttpResponse::text(fault.status(), fault.to_string()));
            }
        };
        let response = self.endpoint.handle(message).await;
        match response.status {
            503 => response.with(RETRY_AFTER, RETRY_AFTER_SECONDS),
            _ => response,
        }
    }

    /// Reads a body within its limits; a body in one piece is not copied.
    async fn read(&self, body: Incoming) -> Result<Bytes, BodyError> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let limit = self.limits.body;
        if body.size_hint().lower() > limit as u64 {
            return Err(BodyError::TooLarge { limit });
        }
        let collected = within(self.limits.body_timeout, collect(body, limit)).await;
        collected.unwrap_or(Err(BodyError::TooSlow))
    }
}

/// Closes the connection after responding to a request with an unread body, and announces it to the client.
fn close_after(response: HttpResponse) -> HttpResponse {
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
}

impl BodyError {
    const fn status(self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::TooSlow => 408,
            Self::Broken => 400,
        }
    }
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame
            .map_err(drop)
            .and_then(|f| f.into_data().map_err(drop))
        else {
            return Err(BodyError::Broken);
        };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyError::TooLarge { limit });
        }
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
        // With a known length, no further poll is needed to detect the end.
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
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
