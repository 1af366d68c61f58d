//! A server on a carrier of lines: one task per connection, many requests at once.

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
use mcpact_transport::link::{LineSink, Link};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;
use smallvec::SmallVec;
use tokio::task::JoinSet;

use super::backend::{Backend, Opening, Welcome};
use super::ending::Ending;
use super::held;
use super::job::Job;
use super::outbox::{Outbox, Parcel, Parcels};
use super::raw_params::text_of;
use super::session::{Deed, Session};
use super::visitor::Visitor;
use crate::error::Error;
use crate::log::{self, Witness};

/// How many messages of running requests may wait to be written.
const BACKLOG: usize = 1024;

/// How often deadlines are looked at.
const TICK: Duration = Duration::from_secs(1);

/// How long requests may go on whose client has most likely gone.
pub(super) const LEFT: Duration = Duration::from_secs(1);

/// A request that ended: its id, and its outcome unless it was cancelled.
struct Done {
    session: Arc<Session>,
    id: Id,
    outcome: Option<Result<ByteString, WireError>>,
}

/// A request that is being served.
struct OpenRequest {
    session: Arc<Session>,
    abort: AbortHandle,
    /// Whether it lasts as long as its client.
    is_listening: bool,
}

/// How many different terms a connection may be served on; the oldest make room.
const TERMS: usize = 8;

/// A client, for as long as it is there; the backend hears when it goes.
struct Stay<B: Backend> {
    backend: Arc<B>,
    visitor: Visitor,
}

impl<B: Backend> Drop for Stay<B> {
    fn drop(&mut self) {
        self.backend.left(&self.visitor);
    }
}

struct Connection<B: Backend> {
    transport_id: String,
    witness: Witness,
    backend: Arc<B>,
    stay: Stay<B>,
    /// The conversation that a handshake opened, or that waits for one.
    legacy: Arc<Session>,
    is_agreed: bool,
    /// Who serves on which terms; one for a server, some where a gateway knows its clients apart.
    sessions: VecDeque<(Arc<ServerTerms>, Arc<Session>)>,
    sink: LineSink,
    outbox: Outbox,
    parcels: Parcels,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    open: HashMap<Id, OpenRequest>,
    is_open: bool,
    ending: Ending,
}

/// As [`run`], in a task of its own: what `main` awaits is no task, and would be woken across threads
/// for every message. Whoever stops waiting stops the conversation.
pub(super) async fn run_apart<B: Backend>(
    backend: Arc<B>,
    link: Link,
    principal: Arc<str>,
    carrier: &'static str,
    ending: Ending,
) -> Result<(), Error> {
    let mut task = JoinSet::new();
    task.spawn(run(backend, link, principal, carrier, ending));
    match task.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(ended)) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
        // The runtime is shutting down.
        Some(Err(_)) | None => Ok(()),
    }
}

/// Serves until the client closes its side, or nothing may go on any more; what was asked for is answered.
pub(super) async fn run<B: Backend>(
    backend: Arc<B>,
    link: Link,
    principal: Arc<str>,
    carrier: &str,
    ending: Ending,
) -> Result<(), Error> {
    let mut stopped = pin!(ending.clone().stopped());
    let mut rested = pin!(ending.clone().rested());
    let Link { mut source, sink } = link;
    let (outbox, parcels) = Outbox::new(BACKLOG);
    let terms = Arc::clone(backend.terms());
    let welcome = Welcome::on(&terms);
    let settings = backend.settings();
    let visitor = Visitor::connected(principal);
    let session = Arc::new(Session::new(welcome, &visitor, settings));
    let mut connection = Connection {
        transport_id: log::transport_id(carrier),
        witness: Witness::default(),
        stay: Stay {
            backend: Arc::clone(&backend),
            visitor,
        },
        backend,
        legacy: Arc::clone(&session),
        is_agreed: false,
        sessions: VecDeque::from([(terms, session)]),
        sink,
        outbox,
        parcels,
        running: FuturesUnordered::new(),
        open: HashMap::new(),
        is_open: true,
        ending,
    };
    let mut ticks = tokio::time::interval(TICK);
    while connection.is_open {
        while let Some(line) = source.next_line() {
            match line {
                Line::Json(bytes) => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    connection.receive(&bytes).await;
                }
                Line::Noise(bytes) => {
                    tracing::warn!(
                        length = bytes.len(),
                        "the client wrote a line that is not JSON"
                    );
                    let bytes = Bytes::copy_from_slice(bytes);
                    connection.receive(&bytes).await;
                }
                Line::TooLong { limit, .. } => {
                    tracing::warn!(limit, "the client wrote a line that is too long");
                    connection.receive(&Bytes::from_static(b"{")).await;
                }
            }
            // The answers to a burst leave in pieces, so that the client reads while we work.
            if connection.sink.is_worth_a_write() {
                connection.sink.flush().await?;
            }
        }
        connection.sink.flush().await?;
        tokio::select! {
            more = source.fill() => {
                if !more? {
                    while let Some(Line::Json(bytes)) = source.next_line() {
                        let bytes = Bytes::copy_from_slice(bytes);
                        connection.receive(&bytes).await;
                    }
                    connection.is_open = false;
                }
            }
            Some(parcel) = connection.parcels.take() => connection.write(parcel),
            Some(done) = connection.running.next() => connection.finish(done),
            _ = ticks.tick() => {
                connection.tick().await;
            }
            () = stopped.as_mut() => connection.is_open = false,
            () = rested.as_mut(), if connection.is_quiet() => connection.is_open = false,
        }
        connection.gather();
    }
    connection.deafen();
    connection.drain().await?;
    connection.cut_off();
    connection.legacy.close();
    connection.sink.close().await?;
    Ok(())
}

impl<B: Backend> Connection<B> {
    async fn receive(&mut self, bytes: &Bytes) {
        // What is no text is no message either.
        let text = text_of(bytes).unwrap_or_default();
        let Ok(frame) = Frame::read(&text) else {
            let deeds = self.legacy.bytes(bytes);
            return self.perform(&Arc::clone(&self.legacy), deeds).await;
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
        let deeds = session.frame(&text, frame, TransportFacts::Stream);
        self.perform(&session, deeds).await;
    }

    /// Who serves this message.
    async fn session(&mut self, frame: &Frame<'_>) -> Result<Arc<Session>, WireError> {
        let opening = match Opening::of(frame) {
            Some(opening @ Opening::Request(_)) => opening,
            Some(opening @ Opening::Handshake(_)) if !self.is_agreed => opening,
            Some(Opening::Handshake(_)) | None => return Ok(self.addressee(frame)),
        };
        let welcome = tokio::select! {
            biased;
            welcome = self.backend.welcome(opening, &self.stay.visitor) => welcome?,
            () = self.ending.clone().stopped() => return Err(held::cut_off()),
        };
        let known = self
            .sessions
            .iter()
            .find(|(terms, _)| Arc::ptr_eq(terms, &welcome.terms))
            .map(|(_, session)| Arc::clone(session));
        let session = known.unwrap_or_else(|| {
            let terms = Arc::clone(&welcome.terms);
            let settings = self.backend.settings();
            let session = Arc::new(Session::new(welcome, &self.stay.visitor, settings));
            self.sessions.truncate(TERMS - 1);
            self.sessions.push_front((terms, Arc::clone(&session)));
            session
        });
        if let Opening::Handshake(_) = opening {
            self.legacy = Arc::clone(&session);
        }
        Ok(session)
    }

    /// Who is meant by a message that opens nothing: a cancellation is for whoever serves the request.
    fn addressee(&self, frame: &Frame<'_>) -> Arc<Session> {
        let cancelled = match frame {
            Frame::Single(Envelope::Notification(note))
                if note.method == Method::Cancelled.as_str() =>
            {
                named(note.params.raw)
            }
            _ => None,
        };
        let open = cancelled.and_then(|id| self.open.get(&id));
        Arc::clone(open.map_or(&self.legacy, |open| &open.session))
    }

    async fn tick(&mut self) {
        let mut all = vec![Arc::clone(&self.legacy)];
        all.extend(self.sessions.iter().map(|(_, session)| Arc::clone(session)));
        // A client that speaks to one of them is not silent to the others.
        if all.iter().any(|session| session.has_heard()) {
            all.retain(|session| session.has_heard());
        }
        for session in all {
            let deeds = session.tick();
            self.perform(&session, deeds).await;
        }
    }

    async fn perform(&mut self, session: &Arc<Session>, deeds: SmallVec<[Deed; 1]>) {
        for deed in deeds {
            match deed {
                Deed::Write(text) | Deed::Reply { text, .. } => self.sink.push(&text),
                Deed::Serve(job) => self.start(session, job).await,
                Deed::Observe {
                    method: Some(Method::Cancelled),
                    params,
                } => self.abort(params.as_deref()),
                Deed::Negotiated(negotiation) => {
                    self.witness.tell(&self.transport_id, &negotiation);
                }
                Deed::HangUp => self.is_open = false,
                Deed::Observe {
                    method: Some(method),
                    params,
                } => self.backend.observe(session, method, params.as_deref()),
                Deed::Observe { .. } => {}
                Deed::Concluded(_) => {
                    self.is_agreed = true;
                    self.backend.opened(session, self.outbox.clone());
                }
                Deed::Withheld(why) => tracing::debug!(why, "not sent"),
            }
        }
    }

    /// Runs a request as far as it goes at once; most end right here, without a task or a queue.
    async fn start(&mut self, session: &Arc<Session>, job: Job) {
        let id = job.id.clone();
        let is_listening = job.method == Some(Method::SubscriptionsListen);
        let outbox = self.outbox.clone();
        let backend = Arc::clone(&self.backend);
        let mut serve = held::serve(backend, job, Arc::clone(session), outbox).boxed();
        let session = Arc::clone(session);
        match std::future::poll_fn(|cx| Poll::Ready(serve.as_mut().poll(cx))).await {
            Poll::Ready(outcome) => self.finish(Done {
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
                let done = serve.map(move |ended| Done {
                    session,
                    id,
                    outcome: ended.ok(),
                });
                self.running.push(done.boxed());
            }
        }
    }

    fn abort(&mut self, params: Option<&str>) {
        if let Some(open) = named(params).and_then(|id| self.open.remove(&id)) {
            open.abort.abort();
            // What it held is free for the next message.
            self.gather();
        }
    }

    /// Writes an answer behind everything that its handler sent before.
    fn finish(&mut self, done: Done) {
        // Most end before anybody could find them.
        let open = if self.open.is_empty() {
            None
        } else {
            self.open.remove(&done.id)
        };
        while let Some(parcel) = self.parcels.try_take() {
            self.write(parcel);
        }
        let outcome = match done.outcome {
            Some(outcome) => outcome,
            None if self.is_open => Err(cancelled()),
            // Nobody listens any more.
            None if open.is_some_and(|open| open.is_listening) => return,
            None => Err(held::cut_off()),
        };
        for deed in done.session.answer(done.id, outcome) {
            if let Deed::Reply { text, .. } = deed {
                self.sink.push(&text);
            }
        }
    }

    /// Whether the client waits for no answer; whoever listens waits for none.
    fn is_quiet(&self) -> bool {
        self.open.values().all(|open| open.is_listening)
    }

    /// The client says nothing any more: it answers nothing that it was asked, and whoever listens for it need
    /// not go on.
    fn deafen(&mut self) {
        self.backend.fell_silent(&self.stay.visitor);
        self.legacy.deafen();
        for (_, session) in &self.sessions {
            session.deafen();
        }
        for open in self.open.values().filter(|open| open.is_listening) {
            open.abort.abort();
        }
    }

    /// Lets everything end that was asked for, as long as it may.
    async fn drain(&mut self) -> Result<(), Error> {
        let mut stopped = pin!(self.ending.clone().stopped());
        let mut late = pin!(tokio::time::sleep(self.ending.patience));
        while !self.running.is_empty() {
            tokio::select! {
                () = stopped.as_mut() => return Ok(()),
                () = late.as_mut() => return Ok(()),
                Some(parcel) = self.parcels.take() => self.write(parcel),
                Some(done) = self.running.next() => self.finish(done),
            }
            self.gather();
            self.sink.flush().await?;
        }
        Ok(())
    }

    /// Lets nothing go on; whoever waits for an answer is told.
    fn cut_off(&mut self) {
        for open in self.open.values() {
            open.abort.abort();
        }
        self.gather();
    }

    fn write(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Message(text) | Parcel::Answer(text, _) => self.sink.push(&text),
            Parcel::Disconnect(_) => {}
        }
    }

    /// Takes whatever else is ready, so that it leaves in the same write.
    fn gather(&mut self) {
        while let Some(parcel) = self.parcels.try_take() {
            self.write(parcel);
        }
        while let Some(Some(done)) = self.running.next().now_or_never() {
            self.finish(done);
        }
    }
}

/// What is said of a request that was withdrawn.
fn cancelled() -> WireError {
    WireError {
        code: -32603,
        message: String::from("cancelled"),
        data: None,
        http_status: 200,
    }
}

/// The request that a cancellation is about.
fn named(params: Option<&str>) -> Option<Id> {
    let params = Object::parse(params?).ok()?;
    let id = params.get("requestId").and_then(IdRef::from_token)?;
    Some(id.to_id())
}
