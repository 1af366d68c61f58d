//! Legacy sessions: opened by `initialize`, used by POST and GET, ended by DELETE.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, join_all};
use futures_util::stream::unfold;
use http::HeaderName;
use http::header::{ACCEPT, CONNECTION};
use mcpact_engine::classify::{SessionFact, TransportFacts};
use mcpact_engine::refusal::{ReasonCode, WireError};
use mcpact_spec::{ErrorCode, Feature, Method};
use mcpact_transport::http::server::{HttpRequest, HttpResponse, KEEP_ALIVE};
use mcpact_transport::within::within;
use mcpact_wire::batch::Frame;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::ObjectWriter;
use tokio::time::sleep;

use super::header_fields::header_field;
use super::{BACKLOG, HttpEndpoint, HttpSession, error_response, id_of, random_id};
use crate::connection::cancelled_id;
use crate::connection::headers::SESSION_ID;
use crate::server::backend;
use crate::server::backend::{Backend, BackendRequest, ResponseMode};
use crate::server::client_identity::ClientIdentity;
use crate::server::outbox::{Outbox, OutboxReceiver, Outgoing};
use crate::server::session::{Session, SessionEffect};
use crate::server::sse_replay_log::{EventId, EventReceiver, STANDALONE, SseReplayLog};
use crate::{lock, log};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Reconnect delay suggested to clients.
const RETRY: Duration = Duration::from_secs(1);

const NO_STORED_EVENTS: &str =
    "no events are stored for this Last-Event-ID; the session is still valid, repeat the request";

impl<B: Backend> HttpEndpoint<B> {
    pub(super) async fn open(
        &self,
        http_request: &HttpRequest,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        identity: ClientIdentity,
    ) -> HttpResponse {
        let per_connection = self.settings().sessions_per_connection;
        let id = id_of(&frame).map(IdRef::to_id);
        let Some(slot) = http_request.account.open_session(per_connection) else {
            let why =
                format!("a connection may open {per_connection} sessions; hint: use another one");
            return too_many_sessions(id.as_ref(), why).with(CONNECTION, "close");
        };
        // The session distinguishes the client; the key is part of its principal.
        let identity = ClientIdentity::of(identity.principal);
        let session = match self.accept_client(&frame, &identity).await {
            Ok(setup) => Arc::new(Session::new(setup, &identity, self.backend.settings())),
            Err(response) => return response,
        };
        let mut response = HttpResponse::empty(202);
        let mut negotiated = None;
        let transport_id = log::transport_id("http");
        for effect in session.frame(body, frame, facts) {
            match effect {
                SessionEffect::Reply { text, status, .. } => {
                    response = HttpResponse::json(status, text)
                }
                SessionEffect::Concluded(pact) => negotiated = Some(pact),
                SessionEffect::Negotiated(negotiation) => {
                    self.negotiation_log.record(&transport_id, &negotiation);
                }
                _ => {}
            }
        }
        let Some(pact) = negotiated else {
            return response;
        };
        match random_id() {
            Some(session_id)
                if self.insert_session(session_id.clone(), session, pact.revision(), slot) =>
            {
                let response = response.with(SESSION_ID, &session_id);
                // A proxy that reuses connections then opens another one.
                match http_request.account.open_sessions() >= per_connection {
                    true => response.with(CONNECTION, "close"),
                    false => response,
                }
            }
            _ => {
                let limit = self.settings().session_limit;
                let why = format!("all {limit} sessions are in use; hint: retry later");
                too_many_sessions(id.as_ref(), why)
            }
        }
    }

    pub(super) async fn legacy(
        &self,
        session: &Arc<HttpSession<B::State>>,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        http_request: &HttpRequest,
    ) -> HttpResponse {
        let response_mode = response_mode(http_request);
        let limit = self.backend.terms().policy.batch_limit;
        // A batch that is too large is refused as a whole.
        let is_batch = matches!(&frame, Frame::Batch(all) if all.len() <= limit);
        let mut replies = Vec::new();
        let mut status = 200;
        let mut requests = Vec::new();
        for effect in session.session.frame(body, frame, facts) {
            match effect {
                SessionEffect::Reply {
                    text,
                    status: given,
                    ..
                } => {
                    status = given;
                    replies.push(text);
                }
                SessionEffect::Serve(request) => requests.push(BackendRequest {
                    response_mode,
                    ..request.traced(http_request)
                }),
                SessionEffect::Observe {
                    method: Some(Method::Cancelled),
                    params,
                } => {
                    if let Some(id) = cancelled_id(params.as_deref()) {
                        lock(&session.running).cancel(&id);
                    }
                }
                SessionEffect::Observe {
                    method: Some(method),
                    params,
                } => self
                    .backend
                    .observe(&session.session, method, params.as_deref()),
                SessionEffect::Negotiated(negotiation) => {
                    self.negotiation_log.record("http", &negotiation)
                }
                _ => {}
            }
        }
        match (replies.pop(), requests.pop()) {
            (None, None) => HttpResponse::empty(202),
            (Some(text), None) if !is_batch => HttpResponse::json(status, text),
            (None, Some(request)) if !is_batch => match response_mode {
                ResponseMode::Stream => self.call(session, request).await,
                ResponseMode::Single => self.call_without_stream(session, request).await,
            },
            (reply, request) => {
                replies.extend(reply);
                requests.extend(request);
                self.call_batch(session, replies, requests).await
            }
        }
    }

    /// Responds with JSON to a call that sends nothing before its response, and with a stream otherwise. A slow call
    /// gets a stream, too: intermediaries may close a silent connection.
    async fn call(
        &self,
        session: &Arc<HttpSession<B::State>>,
        request: BackendRequest,
    ) -> HttpResponse {
        let (outbox, mut outgoing) = Outbox::new(BACKLOG);
        let id = request.id.clone();
        let mut serve = self.serve(session, request, outbox.clone()).boxed();
        let first = std::future::poll_fn(|cx| Poll::Ready(serve.as_mut().poll(cx))).await;
        if let Poll::Ready(outcome) = first {
            let response = session.session.respond(id, outcome);
            return self.finished(session, response, &outbox, outgoing);
        }
        let mut call = DetachableCall::new(session, id, serve, outbox);
        let ended = tokio::select! {
            biased;
            Some(item) = outgoing.recv() => Err(Some(item)),
            response = call.response() => Ok(response),
            () = sleep(KEEP_ALIVE) => Err(None),
        };
        match ended {
            Ok(response) => self.finished(session, response, &call.outbox, outgoing),
            // Further messages go to the stream.
            Err(first) => {
                call.detach();
                self.event_response(session, first, outgoing)
            }
        }
    }

    /// Responds to a finished call, after the messages it has sent.
    fn finished(
        &self,
        session: &Arc<HttpSession<B::State>>,
        response: Option<(String, u16)>,
        outbox: &Outbox,
        mut outgoing: OutboxReceiver,
    ) -> HttpResponse {
        let Some((text, status)) = response else {
            return HttpResponse::empty(202);
        };
        // The call may have filled the queue, which was not read yet.
        match outgoing.try_recv() {
            None => HttpResponse::json(status, text),
            Some(first) => {
                outbox.send_last(Outgoing::Response(text, status));
                self.event_response(session, Some(first), outgoing)
            }
        }
    }

    /// Serves a call of a client that accepts no stream: messages before the response are dropped.
    async fn call_without_stream(
        &self,
        session: &Arc<HttpSession<B::State>>,
        request: BackendRequest,
    ) -> HttpResponse {
        let (outbox, _) = Outbox::new(1);
        let id = request.id.clone();
        let serve = self.serve(session, request, outbox.clone());
        match DetachableCall::new(session, id, serve, outbox)
            .response()
            .await
        {
            Some((text, status)) => HttpResponse::json(status, text),
            None => HttpResponse::empty(202),
        }
    }

    fn serve(
        &self,
        session: &Arc<HttpSession<B::State>>,
        request: BackendRequest,
        outbox: Outbox,
    ) -> impl Future<Output = Result<ByteString, WireError>> + Send + use<B> {
        let backend = Arc::clone(&self.backend);
        backend::serve(backend, request, Arc::clone(&session.session), outbox)
    }

    fn event_response(
        &self,
        session: &Arc<HttpSession<B::State>>,
        first: Option<Outgoing>,
        outgoing: OutboxReceiver,
    ) -> HttpResponse {
        let log = &session.log;
        let stream = log.open();
        let Some(receiver) = log.attach(stream, None) else {
            return HttpResponse::empty(500);
        };
        let is_primed = session.revision.has(Feature::PrimedStreams);
        if is_primed {
            log.publish(stream, "", Some(RETRY));
        }
        let session = Arc::clone(session);
        tokio::spawn(forward(session, stream, first, outgoing, is_primed));
        HttpResponse::events(receive(receiver))
    }

    /// Serves a batch concurrently and responds with one array, after the messages of its calls.
    async fn call_batch(
        &self,
        session: &Arc<HttpSession<B::State>>,
        mut replies: Vec<String>,
        requests: Vec<BackendRequest>,
    ) -> HttpResponse {
        let (outbox, mut outgoing) = Outbox::new(BACKLOG);
        let serving: Vec<_> = requests
            .into_iter()
            .map(|request| {
                let id = request.id.clone();
                let serve = self.serve(session, request, outbox.clone());
                let (_, serving) = start_call(Arc::clone(session), id, serve);
                serving
            })
            .collect();
        tokio::spawn(async move {
            let served = join_all(serving).await;
            replies.extend(served.into_iter().flatten().map(|(text, _)| text));
            if !replies.is_empty() {
                let all = format!("[{}]", replies.join(","));
                let _ = outbox.send_item(Outgoing::Response(all, 200)).await;
            }
        });
        match within(KEEP_ALIVE, outgoing.recv()).await {
            Some(Some(Outgoing::Response(text, status))) => HttpResponse::json(status, text),
            Some(None) => HttpResponse::empty(202),
            Some(first) => self.event_response(session, first, outgoing),
            None => self.event_response(session, None, outgoing),
        }
    }

    fn session_of(
        &self,
        http_request: &HttpRequest,
    ) -> (SessionFact, Option<Arc<HttpSession<B::State>>>) {
        let principal = self.principal(http_request);
        let named = header_field(http_request, &SESSION_ID);
        self.session(named, principal.as_ref())
    }

    /// GET: opens the standalone stream, or resumes an interrupted one.
    pub(super) fn stream(&self, http_request: &HttpRequest) -> HttpResponse {
        let session = match self.session_of(http_request) {
            (SessionFact::Live(_), Some(session)) => session,
            (SessionFact::Unknown, _) => return HttpResponse::empty(404),
            _ => {
                let accept = http_request.header(ACCEPT).unwrap_or_default();
                return HttpResponse::text(
                    400,
                    match accept.contains("text/event-stream") {
                        true => "the Mcp-Session-Id header is missing",
                        false => "this is an MCP endpoint; add it to an MCP client",
                    },
                );
            }
        };
        if http_request.header(ACCEPT).is_none()
            || response_mode(http_request) == ResponseMode::Single
        {
            return HttpResponse::empty(406);
        }
        let event_id = match http_request.header(LAST_EVENT_ID) {
            None => None,
            Some(id) => match EventId::parse(id) {
                Some(event_id) => Some(event_id),
                None => return HttpResponse::text(400, "unknown Last-Event-ID"),
            },
        };
        let stream = event_id.map_or(STANDALONE, |event_id| event_id.stream);
        match session
            .log
            .attach(stream, event_id.map(|event_id| event_id.event))
        {
            Some(receiver) => HttpResponse::events(receive(receiver)),
            // 404 would mean that the session has ended (2025-03-26 basic/transports#session-management).
            None if event_id.is_some() => HttpResponse::text(400, NO_STORED_EVENTS),
            None => HttpResponse::text(409, "this session already has a standalone stream"),
        }
    }

    pub(super) fn delete(&self, http_request: &HttpRequest) -> HttpResponse {
        match self.session_of(http_request) {
            (SessionFact::Live(_), Some(_)) => {
                let id = http_request.header(SESSION_ID).unwrap_or_default();
                let ended = lock(&self.sessions).remove(id);
                if let Some(ended) = ended {
                    ended.end();
                }
                HttpResponse::empty(200)
            }
            (SessionFact::Unknown, _) => HttpResponse::empty(404),
            _ => HttpResponse::text(400, "the Mcp-Session-Id header is missing"),
        }
    }
}

/// Response to `initialize` if there is no room for a session.
fn too_many_sessions(id: Option<&Id>, message: String) -> HttpResponse {
    let data = ObjectWriter::new().text("reason", ReasonCode::TooManySessions.as_str());
    let error = WireError {
        code: ErrorCode::InternalError.code(),
        message,
        data: Some(data.finish()),
        http_status: 503,
    };
    error_response(id.map(Id::as_ref), &error)
}

/// Returns what the client accepts. Protocol clients accept both; a missing `Accept` header accepts anything.
pub(super) fn response_mode(http_request: &HttpRequest) -> ResponseMode {
    const STREAMS: [&str; 3] = ["text/event-stream", "text/*", "*/*"];
    match http_request.header(ACCEPT) {
        Some(accept) if !STREAMS.iter().any(|kind| accept.contains(kind)) => ResponseMode::Single,
        Some(_) | None => ResponseMode::Stream,
    }
}

/// Runs a request until it ends or is cancelled, and returns its number in the session and its response. Most
/// requests end before they get here and cannot be cancelled.
fn start_call<S: Send + Sync>(
    session: Arc<HttpSession<S>>,
    id: Id,
    serve: impl Future<Output = Result<ByteString, WireError>> + Send,
) -> (u64, impl Future<Output = Option<(String, u16)>> + Send) {
    let (abort, registration) = AbortHandle::new_pair();
    let number = lock(&session.running).add(id.clone(), abort.clone());
    // The client may have cancelled it before it was registered.
    if !session.session.machine().is_serving(&id) {
        abort.abort();
    }
    let serving = async move {
        let outcome = Abortable::new(serve, registration).await;
        lock(&session.running).calls.remove(&number);
        // A call cancelled by its client gets no response.
        let outcome = outcome.unwrap_or_else(|_| Err(backend::cut_off_error()));
        session.session.respond(id, outcome)
    };
    (number, serving)
}

/// Call that continues when its client disconnects: before 2026-07-28 a lost connection is no cancellation. It is
/// spawned only then.
struct DetachableCall<S> {
    running: Option<BoxFuture<'static, Option<(String, u16)>>>,
    outbox: Outbox,
    session: Arc<HttpSession<S>>,
    number: u64,
}

impl<S: Send + Sync + 'static> DetachableCall<S> {
    fn new(
        session: &Arc<HttpSession<S>>,
        id: Id,
        serve: impl Future<Output = Result<ByteString, WireError>> + Send + 'static,
        outbox: Outbox,
    ) -> Self {
        let (number, running) = start_call(Arc::clone(session), id, serve);
        Self {
            running: Some(running.boxed()),
            outbox,
            session: Arc::clone(session),
            number,
        }
    }
}

impl<S> DetachableCall<S> {
    /// Returns the response, or `None` if the call was cancelled. Cancel safe.
    async fn response(&mut self) -> Option<(String, u16)> {
        let response = self.running.as_mut()?.await;
        self.running = None;
        response
    }

    /// Continues the call in the background, with its response sent to the outbox. Returns whether it was still
    /// running.
    fn detach(&mut self) -> bool {
        let (Some(running), outbox) = (self.running.take(), self.outbox.clone()) else {
            return false;
        };
        // Outside of a runtime it cannot continue.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some((text, status)) = running.await {
                    let _ = outbox.send_item(Outgoing::Response(text, status)).await;
                }
            });
        }
        true
    }
}

impl<S> Drop for DetachableCall<S> {
    fn drop(&mut self) {
        // Without a stream the client cannot reconnect to it.
        if self.detach() {
            lock(&self.session.running).abandon(self.number);
        }
    }
}

/// Forwards messages that belong to no request to the standalone stream.
pub(super) fn forward_standalone(log: Arc<SseReplayLog>, mut outgoing: OutboxReceiver) {
    tokio::spawn(async move {
        while let Some(item) = outgoing.recv().await {
            if let Outgoing::Message(text) = item {
                log.publish(STANDALONE, &text, None);
            }
        }
    });
}

/// Forwards the messages of a call to its stream, up to the response. The session lives until then.
async fn forward<S>(
    session: Arc<HttpSession<S>>,
    stream: u64,
    first: Option<Outgoing>,
    mut outgoing: OutboxReceiver,
    is_primed: bool,
) {
    let log = &session.log;
    let mut next = match first {
        None => outgoing.recv().await,
        first => first,
    };
    while let Some(item) = next {
        match item {
            Outgoing::Message(text) => log.publish(stream, &text, None),
            Outgoing::Response(text, _) => {
                log.publish(stream, &text, None);
                break;
            }
            Outgoing::Disconnect(retry) if is_primed => {
                log.publish(stream, "", Some(retry));
                log.detach(stream);
            }
            Outgoing::Disconnect(_) => {}
        }
        next = outgoing.recv().await;
    }
    log.end(stream);
}

fn receive(receiver: EventReceiver) -> impl futures_core::Stream<Item = Bytes> + Send {
    unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|bytes| (bytes, receiver))
    })
}

/// Cancellable calls of a session. Ids may repeat.
#[derive(Debug, Default)]
pub(super) struct RunningCalls {
    pub(super) calls: foldhash::HashMap<u64, Call>,
    last: u64,
    /// `true` if abandoned calls are aborted.
    is_draining: bool,
}

/// Running call.
#[derive(Debug)]
pub(super) struct Call {
    id: Id,
    pub(super) abort: AbortHandle,
    /// `true` if the client has disconnected and cannot reconnect for the response.
    is_abandoned: bool,
}

impl RunningCalls {
    /// Adds a call and returns its number.
    pub(super) fn add(&mut self, id: Id, abort: AbortHandle) -> u64 {
        self.last += 1;
        let is_abandoned = false;
        self.calls.insert(
            self.last,
            Call {
                id,
                abort,
                is_abandoned,
            },
        );
        self.last
    }

    /// Marks a call as abandoned by its client.
    pub(super) fn abandon(&mut self, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.is_abandoned = true;
            if self.is_draining {
                call.abort.abort();
            }
        }
    }

    /// Aborts abandoned calls, now and later.
    pub(super) fn drain(&mut self) {
        self.is_draining = true;
        let abandoned = self.calls.values().filter(|call| call.is_abandoned);
        abandoned.for_each(|call| call.abort.abort());
    }

    pub(super) fn cancel(&mut self, id: &Id) {
        let named = self.calls.extract_if(|_, call| call.id == *id);
        for (_, call) in named {
            call.abort.abort();
        }
    }
}
