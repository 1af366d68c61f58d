//! Line-based connections (stdio, TCP, WebSocket): one background job each, with concurrent requests.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use mcpact_engine::classify::TransportFacts;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::ServerTerms;
use mcpact_spec::Method;
use mcpact_transport::budget::MemoryExhausted;
use mcpact_transport::error::TransportError;
use mcpact_transport::link::{LineSink, Link};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::unreadable::answered;
use mcpact_wire::id::Id;
use smallvec::SmallVec;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::backend;
use super::backend::{Backend, BackendRequest, ClientHello, ClientSetup};
use super::client_identity::{ClientIdentity, Principal};
use super::line_usage::LineUsage;
use super::outbox::{Outbox, OutboxReceiver, Outgoing};
use super::raw_params::utf8_text;
use super::session::{Session, SessionEffect};
use crate::connection::cancelled_id;
use crate::error::Error;
use crate::log::{self, ServerNegotiationLog};

/// Maximum number of queued messages of running requests.
const BACKLOG: u32 = 1024;

/// Size of the output that a client does not read above which nothing more is read from it.
const MAX_UNREAD: usize = 1024 * 1024;

/// Interval of deadline checks.
const TICK: Duration = Duration::from_secs(1);

/// Time for requests in flight after a client probably disconnected.
pub(super) const DISCONNECT_GRACE: Duration = Duration::from_secs(1);

/// Finished request; without outcome it was cancelled.
struct FinishedRequest<S> {
    session: Arc<Session<S>>,
    id: Id,
    outcome: Option<Result<ByteString, WireError>>,
}

/// Request being served.
struct OpenRequest<S> {
    session: Arc<Session<S>>,
    abort: AbortHandle,
    /// `true` if it is a subscription, which has no end of its own.
    is_listening: bool,
}

/// Session and the terms it was opened on.
struct SessionOnTerms<S> {
    terms: Arc<ServerTerms>,
    session: Arc<Session<S>>,
}

/// Maximum number of terms per connection; the oldest are dropped.
const TERMS: usize = 8;

/// Connected client; notifies the backend when dropped.
struct ConnectedClient<B: Backend> {
    backend: Arc<B>,
    identity: ClientIdentity,
}

impl<B: Backend> Drop for ConnectedClient<B> {
    fn drop(&mut self) {
        self.backend.disconnected(&self.identity);
    }
}

struct Connection<B: Backend> {
    transport_id: String,
    negotiation_log: ServerNegotiationLog,
    backend: Arc<B>,
    client: ConnectedClient<B>,
    /// Session of the handshake, or the one waiting for it.
    legacy: Arc<Session<B::State>>,
    is_agreed: bool,
    /// Sessions by terms: one for a server, several for a gateway with per-client terms.
    sessions: VecDeque<SessionOnTerms<B::State>>,
    sink: LineSink,
    outbox: Outbox,
    outgoing: OutboxReceiver,
    running: FuturesUnordered<BoxFuture<'static, FinishedRequest<B::State>>>,
    open: HashMap<Id, OpenRequest<B::State>>,
    is_open: bool,
    session_end: SessionEnd,
}

/// As [`run`], spawned: the future of `main` would be woken across threads for every message. Dropping the future
/// ends the session.
pub(super) async fn run_spawned<B: Backend>(
    backend: Arc<B>,
    link: Link,
    principal: Principal,
    transport: &'static str,
    session_end: SessionEnd,
) -> Result<(), Error> {
    let mut task = JoinSet::new();
    task.spawn(run(backend, link, principal, transport, session_end));
    match task.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(ended)) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        // The runtime is shutting down.
        Some(Err(_)) | None => Ok(()),
    }
}

/// Serves until the client closes its side or the session must end; in-flight requests are answered.
pub(super) async fn run<B: Backend>(
    backend: Arc<B>,
    link: Link,
    principal: Principal,
    transport: &str,
    session_end: SessionEnd,
) -> Result<(), Error> {
    let served = serve(backend, link, principal, transport, session_end).await;
    served.inspect_err(|error| {
        if let Error::Transport(
            error @ (TransportError::Stalled { .. }
            | TransportError::Unfinished
            | TransportError::Memory(_)),
        ) = error
        {
            tracing::warn!(transport, %error, "client disconnected");
        }
    })
}

async fn serve<B: Backend>(
    backend: Arc<B>,
    link: Link,
    principal: Principal,
    transport: &str,
    session_end: SessionEnd,
) -> Result<(), Error> {
    let mut stopped = pin!(session_end.clone().stop_requested());
    let mut drain = pin!(session_end.clone().drain_requested());
    let Link { mut source, sink } = link;
    let (outbox, outgoing) = Outbox::new(BACKLOG);
    let terms = Arc::clone(backend.terms());
    let setup = ClientSetup::with_terms(&terms);
    let settings = backend.settings();
    let identity = ClientIdentity::connected(principal);
    let session = Arc::new(Session::new(setup, &identity, settings));
    let mut connection = Connection {
        transport_id: log::transport_id(transport),
        negotiation_log: ServerNegotiationLog::default(),
        client: ConnectedClient {
            backend: Arc::clone(&backend),
            identity,
        },
        backend,
        legacy: Arc::clone(&session),
        is_agreed: false,
        sessions: VecDeque::from([SessionOnTerms { terms, session }]),
        sink,
        outbox,
        outgoing,
        running: FuturesUnordered::new(),
        open: HashMap::new(),
        is_open: true,
        session_end,
    };
    let mut ticks = tokio::time::interval(TICK);
    while connection.is_open {
        while let Some(line) = source.next_line() {
            let bytes = match line {
                Line::Json(bytes) => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    source.charged(bytes)
                }
                Line::Noise(bytes) => {
                    tracing::warn!(
                        length = bytes.len(),
                        "the client sent a line that is not JSON"
                    );
                    Bytes::copy_from_slice(bytes)
                }
                Line::TooLong { limit, ends } => {
                    let id = answered(ends).map(Id::number);
                    if source.was_short_of_memory() {
                        tracing::warn!("a line of the client was dropped: {MemoryExhausted}");
                        connection.sink.push(&memory_error(id.as_ref()));
                        continue;
                    }
                    tracing::warn!(limit, "the client sent a line that is too long");
                    Bytes::from_static(b"{")
                }
            };
            connection.receive(&bytes).await;
            // Responses to a burst leave in pieces, so that the client reads while we work.
            if connection.sink.is_worth_a_write() {
                connection.write_out().await?;
            }
        }
        connection.write_out().await?;
        if let Some(usage) = &connection.session_end.usage {
            usage.update(connection.open.values().all(|open| open.is_listening));
        }
        tokio::select! {
            written = connection.sink.flush(), if connection.sink.waiting() > 0 => written?,
            more = source.fill() => {
                if !more? {
                    while let Some(Line::Json(bytes)) = source.next_line() {
                        let bytes = Bytes::copy_from_slice(bytes);
                        connection.receive(&bytes).await;
                    }
                    connection.is_open = false;
                }
            }
            Some(item) = connection.outgoing.recv() => connection.write(item),
            Some(finished) = connection.running.next() => connection.finish(finished),
            _ = ticks.tick() => {
                connection.tick().await;
            }
            () = stopped.as_mut() => connection.is_open = false,
            () = drain.as_mut(), if connection.is_idle() => connection.is_open = false,
        }
        connection.write_ready();
    }
    connection.close_input();
    connection.drain().await?;
    connection.cut_off().await?;
    connection.legacy.close();
    connection.sink.close().await?;
    Ok(())
}

impl<B: Backend> Connection<B> {
    async fn receive(&mut self, bytes: &Bytes) {
        if let Some(usage) = &self.session_end.usage {
            usage.received();
        }
        // Invalid UTF-8 is no message either.
        let text = utf8_text(bytes).unwrap_or_default();
        let Ok(frame) = Frame::read(&text) else {
            let effects = self.legacy.bytes(bytes);
            return self.perform(&Arc::clone(&self.legacy), effects).await;
        };
        let session = match self.session(&frame).await {
            Ok(session) => session,
            Err(error) => {
                if let Frame::Single(Envelope::Request(request)) = &frame {
                    let text = codec::error(Some(request.id), &error.encode());
                    self.sink.push(&text);
                }
                return;
            }
        };
        let effects = session.frame(&text, frame, TransportFacts::Stream);
        self.perform(&session, effects).await;
    }

    /// Returns the session that serves this message.
    async fn session(&mut self, frame: &Frame<'_>) -> Result<Arc<Session<B::State>>, WireError> {
        let hello = match ClientHello::of(frame) {
            Some(hello @ ClientHello::Request(_)) => hello,
            Some(hello @ ClientHello::Handshake(_)) if !self.is_agreed => hello,
            Some(ClientHello::Handshake(_)) | None => return Ok(self.session_of(frame)),
        };
        let setup = tokio::select! {
            biased;
            setup = self.backend.accept_client(hello, &self.client.identity) => setup?,
            () = self.session_end.clone().stop_requested() => return Err(backend::cut_off_error()),
        };
        let known = self
            .sessions
            .iter()
            .find(|known| Arc::ptr_eq(&known.terms, &setup.terms))
            .map(|known| Arc::clone(&known.session));
        let session = known.unwrap_or_else(|| {
            let terms = Arc::clone(&setup.terms);
            let settings = self.backend.settings();
            let session = Arc::new(Session::new(setup, &self.client.identity, settings));
            self.sessions.truncate(TERMS - 1);
            self.sessions.push_front(SessionOnTerms {
                terms,
                session: Arc::clone(&session),
            });
            session
        });
        if let ClientHello::Handshake(_) = hello {
            self.legacy = Arc::clone(&session);
        }
        Ok(session)
    }

    /// Returns the session for a message that opens none: a cancellation goes to the session of its request.
    fn session_of(&self, frame: &Frame<'_>) -> Arc<Session<B::State>> {
        let cancelled = match frame {
            Frame::Single(Envelope::Notification(note))
                if note.method == Method::Cancelled.as_str() =>
            {
                cancelled_id(note.params.raw)
            }
            _ => None,
        };
        let open = cancelled.and_then(|id| self.open.get(&id));
        Arc::clone(open.map_or(&self.legacy, |open| &open.session))
    }

    async fn tick(&mut self) {
        let mut all = vec![Arc::clone(&self.legacy)];
        all.extend(self.sessions.iter().map(|known| Arc::clone(&known.session)));
        // A client that uses one session is not silent on the others.
        let has_received = |session: &Arc<Session<B::State>>| session.machine().has_received();
        if all.iter().any(has_received) {
            all.retain(has_received);
        }
        for session in all {
            let effects = session.tick();
            self.perform(&session, effects).await;
        }
    }

    async fn perform(
        &mut self,
        session: &Arc<Session<B::State>>,
        effects: SmallVec<[SessionEffect; 1]>,
    ) {
        for effect in effects {
            match effect {
                SessionEffect::Write(text) | SessionEffect::Reply { text, .. } => {
                    self.sink.push(&text)
                }
                SessionEffect::Serve(request) => self.start(session, request).await,
                SessionEffect::Observe {
                    method: Some(Method::Cancelled),
                    params,
                } => self.abort(params.as_deref()),
                SessionEffect::Negotiated(negotiation) => {
                    self.negotiation_log
                        .record(&self.transport_id, &negotiation);
                }
                SessionEffect::HangUp => self.is_open = false,
                SessionEffect::Observe {
                    method: Some(method),
                    params,
                } => self.backend.observe(session, method, params.as_deref()),
                SessionEffect::Observe { .. } => {}
                SessionEffect::Concluded(_) => {
                    self.is_agreed = true;
                    self.backend.opened(session, self.outbox.clone());
                }
                SessionEffect::Withheld(why) => tracing::debug!(why, "not sent"),
            }
        }
    }

    /// Polls a request once; most finish here, without a queue.
    async fn start(&mut self, session: &Arc<Session<B::State>>, request: BackendRequest) {
        let id = request.id.clone();
        let is_listening = request.method == Some(Method::SubscriptionsListen);
        let outbox = self.outbox.clone();
        let backend = Arc::clone(&self.backend);
        let mut serve = backend::serve(backend, request, Arc::clone(session), outbox).boxed();
        let session = Arc::clone(session);
        match std::future::poll_fn(|cx| Poll::Ready(serve.as_mut().poll(cx))).await {
            Poll::Ready(outcome) => self.finish(FinishedRequest {
                session,
                id,
                outcome: Some(outcome),
            }),
            Poll::Pending => {
                let (abort, registration) = AbortHandle::new_pair();
                let open = OpenRequest {
                    session: Arc::clone(&session),
                    abort,
                    is_listening,
                };
                self.open.insert(id.clone(), open);
                let serve = Abortable::new(serve, registration);
                let finished = serve.map(move |ended| FinishedRequest {
                    session,
                    id,
                    outcome: ended.ok(),
                });
                self.running.push(finished.boxed());
            }
        }
    }

    fn abort(&mut self, params: Option<&str>) {
        if let Some(open) = cancelled_id(params).and_then(|id| self.open.remove(&id)) {
            open.abort.abort();
            // Frees what the request held before the next message.
            self.write_ready();
        }
    }

    /// Writes a response after all messages that its handler sent before.
    fn finish(&mut self, finished: FinishedRequest<B::State>) {
        // Most requests finish before they are registered.
        let open = if self.open.is_empty() {
            None
        } else {
            self.open.remove(&finished.id)
        };
        while let Some(item) = self.outgoing.try_recv() {
            self.write(item);
        }
        let outcome = match finished.outcome {
            Some(outcome) => outcome,
            None if self.is_open => Err(cancelled()),
            // A subscription that ended with its client gets no response.
            None if open.is_some_and(|open| open.is_listening) => return,
            None => Err(backend::cut_off_error()),
        };
        if let Some((text, _)) = finished.session.respond(finished.id, outcome) {
            self.sink.push(&text);
        }
    }

    /// Returns `true` if no request is in flight; subscriptions do not count.
    fn is_idle(&self) -> bool {
        self.open.values().all(|open| open.is_listening)
    }

    /// Handles the end of input: pending questions remain unanswered, and subscriptions end.
    fn close_input(&mut self) {
        self.backend.input_closed(&self.client.identity);
        self.legacy.close_input();
        for SessionOnTerms { session, .. } in &self.sessions {
            session.close_input();
        }
        for open in self.open.values().filter(|open| open.is_listening) {
            open.abort.abort();
        }
    }

    /// Waits for in-flight requests, up to the drain timeout.
    async fn drain(&mut self) -> Result<(), Error> {
        let mut stopped = pin!(self.session_end.clone().stop_requested());
        let mut late = pin!(tokio::time::sleep(self.session_end.drain_timeout));
        while !self.running.is_empty() {
            tokio::select! {
                () = stopped.as_mut() => return Ok(()),
                () = late.as_mut() => return Ok(()),
                Some(item) = self.outgoing.recv() => self.write(item),
                Some(finished) = self.running.next() => self.finish(finished),
            }
            self.write_ready();
            self.sink.flush_or_stall().await?;
        }
        Ok(())
    }

    /// Aborts all requests with an error response.
    async fn cut_off(&mut self) -> Result<(), Error> {
        for open in self.open.values() {
            open.abort.abort();
        }
        while self.write_ready() == Ready::More {
            self.sink.flush_or_stall().await?;
        }
        Ok(self.sink.flush_or_stall().await?)
    }

    /// Writes what the client reads at once. If it leaves too much unread, waits until it has read all of it.
    async fn write_out(&mut self) -> Result<(), TransportError> {
        match self.sink.flush().now_or_never() {
            Some(written) => written,
            None if self.sink.waiting() < MAX_UNREAD => Ok(()),
            None => self.sink.flush_or_stall().await,
        }
    }

    fn write(&mut self, item: Outgoing) {
        match item {
            Outgoing::Message(text) | Outgoing::Response(text, _) => self.sink.push(&text),
            Outgoing::Disconnect(_) => {}
        }
    }

    /// Writes what is ready, so that it leaves in the same write.
    fn write_ready(&mut self) -> Ready {
        while self.sink.waiting() < MAX_UNREAD {
            if let Some(item) = self.outgoing.try_recv() {
                self.write(item);
            } else if let Some(Some(finished)) = self.running.next().now_or_never() {
                self.finish(finished);
            } else {
                return Ready::Nothing;
            }
        }
        Ready::More
    }
}

/// Response to a message that was dropped because there was no memory for it.
fn memory_error(id: Option<&Id>) -> String {
    let error = MemoryExhausted.on_wire().encode();
    match id {
        Some(id) => codec::error(Some(id.as_ref()), &error),
        None => codec::error_with_null_id(&error),
    }
}

/// Output that may be ready after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    Nothing,
    /// More may be ready, but too much is unread.
    More,
}

/// Error of a cancelled request.
fn cancelled() -> WireError {
    WireError {
        code: -32603,
        message: String::from("cancelled"),
        data: None,
        http_status: 200,
    }
}

/// Conditions under which a session ends.
#[derive(Clone, Debug)]
pub struct SessionEnd {
    /// Time for in-flight requests after the client closed its side.
    pub(super) drain_timeout: Duration,
    /// Once true, the session ends as soon as no request is in flight.
    draining: Option<watch::Receiver<bool>>,
    stopping: watch::Receiver<bool>,
    /// Set if the session may be closed to make room.
    usage: Option<Arc<LineUsage>>,
}

impl SessionEnd {
    /// Lets requests continue for `drain_timeout` after the client closed its side. When `stopping` becomes true,
    /// in-flight requests are cut off with an error response.
    #[must_use]
    pub const fn new(drain_timeout: Duration, stopping: watch::Receiver<bool>) -> Self {
        Self {
            drain_timeout,
            draining: None,
            stopping,
            usage: None,
        }
    }

    /// Ends the session only when the client closes its side; requests may then continue for `drain_timeout`.
    #[must_use]
    pub fn after(drain_timeout: Duration) -> Self {
        Self::new(drain_timeout, watch::channel(false).1)
    }

    /// Records the usage of the session.
    pub(super) fn with_usage(self, usage: &Arc<LineUsage>) -> Self {
        Self {
            usage: Some(Arc::clone(usage)),
            ..self
        }
    }

    /// Resolves when all requests must end.
    pub(super) async fn stop_requested(self) {
        is_set(self.stopping).await;
    }

    /// Resolves when idle sessions must end.
    pub(super) async fn drain_requested(self) {
        match self.draining {
            Some(draining) => is_set(draining).await,
            None => std::future::pending().await,
        }
    }
}

/// Switches that end a group of sessions.
#[derive(Debug, Default)]
pub(super) struct SessionSwitches {
    draining: watch::Sender<bool>,
    stopping: watch::Sender<bool>,
}

impl SessionSwitches {
    /// Returns the conditions for a session of the group.
    pub(super) fn session_end(&self, drain_timeout: Duration) -> SessionEnd {
        SessionEnd {
            drain_timeout,
            draining: Some(self.draining.subscribe()),
            stopping: self.stopping.subscribe(),
            usage: None,
        }
    }

    /// Ends each session as soon as it has no request in flight.
    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Ends every session.
    pub(super) fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

/// Resolves when the value becomes true.
async fn is_set(mut flag: watch::Receiver<bool>) {
    if flag.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}
