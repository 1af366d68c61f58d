//! One request: let in, read within limits, answered.

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

use super::answer::{Answer, AnswerBody, Arrival};
use super::body::ReplyBody;
use super::cors;
use super::guard::Guard;
use super::listener::{Endpoint, Limits};
use super::token::Token;
use super::upgrade::{self, Switch};
use super::watch::Busy;
use crate::within::within;

/// After how many seconds somebody may come back who was turned away for the moment.
const SOON: &str = "2";

/// A request that was let in and is not read yet.
struct Admitted {
    /// Without its body.
    arrival: Box<Arrival>,
    body: Incoming,
    origin: Option<HeaderValue>,
    switch: Option<Box<Switch>>,
}

/// What every request needs.
pub(super) struct Shop<E> {
    pub(super) endpoint: Arc<E>,
    pub(super) guard: Guard,
    pub(super) token: Option<Token>,
    pub(super) limits: Limits,
    /// Held by every WebSocket that is open.
    pub(super) sockets: mpsc::Sender<Infallible>,
}

impl<E: Endpoint> Shop<E> {
    pub(super) async fn serve(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        busy: Busy,
    ) -> Response<ReplyBody> {
        let response = self.respond(request, peer).await;
        response.map(|body| body.ending(busy))
    }

    async fn respond(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<ReplyBody> {
        let Admitted {
            arrival,
            body,
            origin,
            switch,
        } = match self.admitted(request, peer) {
            Ok(admitted) => admitted,
            Err(response) => return *response,
        };
        let mut response = match self.answer(arrival, body, peer).await {
            Answer {
                body: AnswerBody::Socket(run),
                ..
            } => respond(upgrade::answer(switch, run, self.sockets.clone())),
            answer => respond(answer),
        };
        if let Some(origin) = origin {
            cors::grant(origin, response.headers_mut());
        }
        response
    }

    /// What is to be answered; otherwise the answer. Apart from what waits, which would keep room for everything
    /// here for as long as the request is served.
    fn admitted(
        &self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Admitted, Box<Response<ReplyBody>>> {
        let has_wish = request.headers().contains_key(UPGRADE);
        let switch = has_wish.then(|| Box::new(Switch::of(&mut request)));
        let (head, body) = request.into_parts();
        if size(&head) > self.limits.header_bytes {
            let answer = unread(Answer::text(431, "the headers are too large"));
            return Err(Box::new(respond(answer)));
        }
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        if let Err(fault) = self.guard.check(authority, &head.headers) {
            tracing::warn!(%peer, %fault, "request turned away");
            let answer = unread(Answer::text(403, fault.to_string()));
            return Err(Box::new(respond(answer)));
        }
        let origin = head.headers.get(ORIGIN).cloned();
        if cors::is_preflight(&head.method, &head.headers) {
            let mut response = respond(Answer::empty(204));
            cors::permit(&head.headers, self.guard.headers(), response.headers_mut());
            if let Some(origin) = origin {
                cors::grant(origin, response.headers_mut());
            }
            return Err(Box::new(response));
        }
        let arrival = Box::new(Arrival {
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            verb: head.method,
            headers: head.headers,
            body: Bytes::new(),
            peer: Some(peer),
        });
        Ok(Admitted {
            arrival,
            body,
            origin,
            switch,
        })
    }

    async fn answer(&self, mut arrival: Box<Arrival>, body: Incoming, peer: SocketAddr) -> Answer {
        let token = self.token.as_ref();
        if let Some(Err(refusal)) = token.map(|token| token.check(&arrival.headers)) {
            tracing::warn!(%peer, ?refusal, "request without the token");
            return unread(Answer::text(401, "a bearer token is needed"))
                .with(WWW_AUTHENTICATE, refusal.challenge());
        }
        if is_foreign_content(&arrival) {
            return unread(Answer::text(415, "the body must be application/json"));
        }
        arrival.body = match self.read(body).await {
            Ok(body) => body,
            Err(fault) => return unread(Answer::text(fault.status(), fault.to_string())),
        };
        let answer = self.endpoint.handle(arrival).await;
        match answer.status {
            503 => answer.with(RETRY_AFTER, SOON),
            _ => answer,
        }
    }

    /// Reads a body within its limits; the common body in one piece is not copied.
    async fn read(&self, body: Incoming) -> Result<Bytes, BodyFault> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        let limit = self.limits.body;
        if body.size_hint().lower() > limit as u64 {
            return Err(BodyFault::TooLarge { limit });
        }
        let gathered = within(self.limits.body_timeout, gather(body, limit)).await;
        gathered.unwrap_or(Err(BodyFault::TooSlow))
    }
}

/// The answer to a request whose body nobody has read to its end: the connection ends with it, and the
/// client is told, so that it does not send the next request into nothing.
fn unread(answer: Answer) -> Answer {
    answer.with(CONNECTION, "close")
}

/// The bytes of a head. What parses it looks only after every read, so that its own limit is not exact.
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

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum BodyFault {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body took too long")]
    TooSlow,
    #[error("the body is broken")]
    Broken,
}

impl BodyFault {
    const fn status(self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::TooSlow => 408,
            Self::Broken => 400,
        }
    }
}

async fn gather(mut body: Incoming, limit: usize) -> Result<Bytes, BodyFault> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame
            .map_err(drop)
            .and_then(|f| f.into_data().map_err(drop))
        else {
            return Err(BodyFault::Broken);
        };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyFault::TooLarge { limit });
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
        // Where the length is known, nobody has to come back to say that this was all.
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

/// A body of another kind is refused unread: browsers may send `text/plain` anywhere without asking.
fn is_foreign_content(arrival: &Arrival) -> bool {
    if arrival.verb != http::Method::POST {
        return false;
    }
    let kind = arrival.headers.get(CONTENT_TYPE);
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

fn respond(answer: Answer) -> Response<ReplyBody> {
    let (kind, body, is_stream) = match answer.body {
        AnswerBody::Empty => (None, ReplyBody::whole(Bytes::new()), false),
        AnswerBody::Json(bytes) => (Some(JSON), ReplyBody::whole(bytes), false),
        AnswerBody::Text(bytes) => (Some(TEXT), ReplyBody::whole(bytes), false),
        AnswerBody::Events(stream) => (Some(EVENTS), ReplyBody::events(stream), true),
        AnswerBody::Socket(_) => (None, ReplyBody::whole(Bytes::new()), false),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    if is_stream {
        headers.insert(CACHE_CONTROL, NO_CACHE);
        headers.insert(NO_BUFFERING.0, NO_BUFFERING.1);
    }
    for (name, value) in answer.headers {
        headers.insert(name, value);
    }
    response
}
