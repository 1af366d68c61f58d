//! Sessions: opened by `initialize`, spoken to by POST, listened to by GET, ended by DELETE.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, join_all};
use futures_util::stream::unfold;
use http::HeaderName;
use http::header::ACCEPT;
use mcpact_engine::classify::{SessionFact, TransportFacts};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Feature, Method};
use mcpact_transport::http::server::{Answer, Arrival, KEEP_ALIVE};
use mcpact_transport::within::within;
use mcpact_wire::batch::Frame;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::seen::{SESSION_ID, seen};
use super::{HttpEndpoint, HttpSession, json, random_id};
use crate::log;
use crate::server::backend::Backend;
use crate::server::event_log::{EventLog, Place, STANDALONE};
use crate::server::held;
use crate::server::job::{Job, Reach};
use crate::server::outbox::{Outbox, Parcel, Parcels};
use crate::server::session::{Deed, Session};
use crate::server::visitor::Visitor;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How many messages of a running request may wait to be written.
const BACKLOG: usize = 64;

/// How long a client should wait before it comes back for a stream.
const RETRY: Duration = Duration::from_secs(1);

const NOT_KEPT: &str =
    "nothing is kept of the stream of this Last-Event-ID; the session goes on: repeat the request";

impl<B: Backend> HttpEndpoint<B> {
    pub(super) async fn open(
        &self,
        arrival: &Arrival,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
    ) -> Answer {
        let visitor = Visitor::of(self.principal(arrival));
        let session = match self.welcome(&frame, &visitor).await {
            Ok(welcome) => Arc::new(Session::new(welcome, &visitor, self.backend.settings())),
            Err(answer) => return answer,
        };
        let mut answer = Answer::empty(202);
        let mut agreed = None;
        let transport_id = log::transport_id("http");
        for deed in session.frame(body, frame, facts) {
            match deed {
                Deed::Reply { text, status, .. } => answer = Answer::json(status, json(text)),
                Deed::Concluded(pact) => agreed = Some(pact),
                Deed::Negotiated(negotiation) => {
                    self.witness.tell(&transport_id, &negotiation);
                }
                _ => {}
            }
        }
        let Some(pact) = agreed else {
            return answer;
        };
        match random_id() {
            Some(id) if self.keep(id.clone(), session, pact.revision()) => {
                answer.with(SESSION_ID, &id)
            }
            _ => Answer::text(503, "too many sessions"),
        }
    }

    pub(super) async fn legacy(
        &self,
        session: &Arc<HttpSession>,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        arrival: &Arrival,
    ) -> Answer {
        let reach = reach(arrival);
        let limit = self.backend.terms().policy.batch_limit;
        // One that is too large is not looked into, and refused as a whole.
        let is_batch = matches!(&frame, Frame::Batch(all) if all.len() <= limit);
        let mut replies = Vec::new();
        let mut status = 200;
        let mut jobs = Vec::new();
        for deed in session.session.frame(body, frame, facts) {
            match deed {
                Deed::Reply {
                    text,
                    status: given,
                    ..
                } => {
                    status = given;
                    replies.push(text);
                }
                Deed::Serve(job) => jobs.push(Job {
                    reach,
                    ..job.traced(arrival)
                }),
                Deed::Observe {
                    method: Some(Method::Cancelled),
                    params,
                } => {
                    cancel(session, params.as_deref());
                }
                Deed::Observe {
                    method: Some(method),
                    params,
                } => self
                    .backend
                    .observe(&session.session, method, params.as_deref()),
                Deed::Negotiated(negotiation) => self.witness.tell("http", &negotiation),
                _ => {}
            }
        }
        match (replies.pop(), jobs.pop()) {
            (None, None) => Answer::empty(202),
            (Some(text), None) if !is_batch => Answer::json(status, json(text)),
            (None, Some(job)) if !is_batch => match reach {
                Reach::Stream => self.call(session, job).await,
                Reach::Answer => self.call_plainly(session, job).await,
            },
            (reply, job) => {
                replies.extend(reply);
                jobs.extend(job);
                self.call_all(session, replies, jobs).await
            }
        }
    }

    /// A call that has nothing to say before its answer is answered as JSON. One that has gets a stream, and so does
    /// one that takes long: whoever stands between may take silence for the end.
    async fn call(&self, session: &Arc<HttpSession>, job: Job) -> Answer {
        let (outbox, mut parcels) = Outbox::new(BACKLOG);
        let id = job.id.clone();
        let mut serve = self.serve(session, job, outbox.clone()).boxed();
        let first = std::future::poll_fn(|cx| Poll::Ready(serve.as_mut().poll(cx))).await;
        if let Poll::Ready(outcome) = first {
            let answer = answered(session, id, outcome);
            return self.ended(session, answer, &outbox, parcels);
        }
        let mut lasting = Lasting::new(session, id, serve, outbox);
        let ended = tokio::select! {
            biased;
            Some(parcel) = parcels.take() => Err(Some(parcel)),
            answer = lasting.answer() => Ok(answer),
            () = sleep(KEEP_ALIVE) => Err(None),
        };
        match ended {
            Ok(answer) => self.ended(session, answer, &lasting.outbox, parcels),
            // What it has to say next is for the stream.
            Err(first) => {
                lasting.go_on();
                self.event_answer(session, first, parcels)
            }
        }
    }

    /// The answer of a call that has ended, behind whatever it has said.
    fn ended(
        &self,
        session: &Arc<HttpSession>,
        answer: Option<(String, u16)>,
        outbox: &Outbox,
        mut parcels: Parcels,
    ) -> Answer {
        let Some((text, status)) = answer else {
            return Answer::empty(202);
        };
        // It may have filled the queue; nobody has read from it yet.
        match parcels.try_take() {
            None => Answer::json(status, json(text)),
            Some(said) => {
                let _ = outbox.try_put(Parcel::Answer(text, status));
                self.event_answer(session, Some(said), parcels)
            }
        }
    }

    /// A call of a client that takes no stream: whatever is said or asked before the answer finds nobody.
    async fn call_plainly(&self, session: &Arc<HttpSession>, job: Job) -> Answer {
        let (outbox, _) = Outbox::new(1);
        let id = job.id.clone();
        let serve = self.serve(session, job, outbox.clone());
        match Lasting::new(session, id, serve, outbox).answer().await {
            Some((text, status)) => Answer::json(status, json(text)),
            None => Answer::empty(202),
        }
    }

    fn serve(
        &self,
        session: &Arc<HttpSession>,
        job: Job,
        outbox: Outbox,
    ) -> impl Future<Output = Result<ByteString, WireError>> + Send + use<B> {
        let backend = Arc::clone(&self.backend);
        held::serve(backend, job, Arc::clone(&session.session), outbox)
    }

    /// JSON if the answer is the first thing said, a stream if it is not.
    fn first_answer(
        &self,
        session: &Arc<HttpSession>,
        first: Option<Parcel>,
        parcels: Parcels,
    ) -> Answer {
        match first {
            Some(Parcel::Answer(text, status)) => Answer::json(status, json(text)),
            Some(parcel) => self.event_answer(session, Some(parcel), parcels),
            None => Answer::empty(202),
        }
    }

    fn event_answer(
        &self,
        session: &Arc<HttpSession>,
        first: Option<Parcel>,
        parcels: Parcels,
    ) -> Answer {
        let log = &session.log;
        let stream = log.open();
        let Some(receiver) = log.attach(stream, None) else {
            return Answer::empty(500);
        };
        if session.revision.has(Feature::PrimedStreams) {
            log.publish(stream, "", Some(RETRY));
        }
        let is_primed = session.revision.has(Feature::PrimedStreams);
        let session = Arc::clone(session);
        tokio::spawn(pump(session, stream, first, parcels, is_primed));
        Answer::events(receive(receiver))
    }

    /// A batch is served at once and answered by one array, behind whatever its calls say before.
    async fn call_all(
        &self,
        session: &Arc<HttpSession>,
        mut replies: Vec<String>,
        jobs: Vec<Job>,
    ) -> Answer {
        let (outbox, mut parcels) = Outbox::new(BACKLOG);
        let serving: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                let id = job.id.clone();
                let serve = self.serve(session, job, outbox.clone());
                let (_, serving) = finish(Arc::clone(session), id, serve);
                serving
            })
            .collect();
        tokio::spawn(async move {
            let served = join_all(serving).await;
            replies.extend(served.into_iter().flatten().map(|(text, _)| text));
            if !replies.is_empty() {
                let all = format!("[{}]", replies.join(","));
                let _ = outbox.put(Parcel::Answer(all, 200)).await;
            }
        });
        match within(KEEP_ALIVE, parcels.take()).await {
            Some(first) => self.first_answer(session, first, parcels),
            None => self.event_answer(session, None, parcels),
        }
    }

    /// GET: the stream that belongs to no request, or the rest of one that broke.
    pub(super) fn stream(&self, arrival: &Arrival) -> Answer {
        let session = match self.session(seen(arrival, &SESSION_ID), arrival) {
            (SessionFact::Live(_), Some(session)) => session,
            (SessionFact::Unknown, _) => return Answer::empty(404),
            _ => return Answer::text(400, "the Mcp-Session-Id header is missing"),
        };
        if arrival.header(ACCEPT).is_none() || reach(arrival) == Reach::Answer {
            return Answer::empty(406);
        }
        let place = match arrival.header(LAST_EVENT_ID) {
            None => None,
            Some(id) => match Place::parse(id) {
                Some(place) => Some(place),
                None => return Answer::text(400, "unknown Last-Event-ID"),
            },
        };
        let stream = place.map_or(STANDALONE, |place| place.stream);
        match session.log.attach(stream, place.map(|place| place.event)) {
            Some(receiver) => Answer::events(receive(receiver)),
            // 404 would say that the session has ended (2025-03-26 basic/transports#session-management).
            None if place.is_some() => Answer::text(400, NOT_KEPT),
            None => Answer::text(409, "this session has such a stream already"),
        }
    }

    pub(super) fn delete(&self, arrival: &Arrival) -> Answer {
        match self.session(seen(arrival, &SESSION_ID), arrival) {
            (SessionFact::Live(_), Some(_)) => {
                let id = arrival.header(SESSION_ID).unwrap_or_default();
                let ended = self.sessions().remove(id);
                if let Some(ended) = ended {
                    ended.end();
                }
                Answer::empty(200)
            }
            (SessionFact::Unknown, _) => Answer::empty(404),
            _ => Answer::text(400, "the Mcp-Session-Id header is missing"),
        }
    }
}

/// What can be said to whoever sent this. Every client of the protocol says that it takes both kinds of
/// answers; who says nothing takes anything.
pub(super) fn reach(arrival: &Arrival) -> Reach {
    const STREAMS: [&str; 3] = ["text/event-stream", "text/*", "*/*"];
    match arrival.header(ACCEPT) {
        Some(accept) if !STREAMS.iter().any(|kind| accept.contains(kind)) => Reach::Answer,
        Some(_) | None => Reach::Stream,
    }
}

/// Serves a request until it ends or is cancelled, and gives its answer; also its number in the session. Most
/// requests end before they come here, and nobody could have cancelled them.
fn finish(
    session: Arc<HttpSession>,
    id: Id,
    serve: impl Future<Output = Result<ByteString, WireError>> + Send,
) -> (u64, impl Future<Output = Option<(String, u16)>> + Send) {
    let (abort, registration) = AbortHandle::new_pair();
    let number = session.running().add(id.clone(), abort.clone());
    // The client may have cancelled it just before it could be found.
    if !session.session.is_serving(&id) {
        abort.abort();
    }
    let serving = async move {
        let outcome = Abortable::new(serve, registration).await;
        session.running().calls.remove(&number);
        // One that its client has cancelled is told nothing.
        let outcome = outcome.unwrap_or_else(|_| Err(held::cut_off()));
        answered(&session, id, outcome)
    };
    (number, serving)
}

/// A call that goes on when its client leaves: before 2026-07-28 a lost connection is not a cancellation.
/// As long as the client is there, the call needs no task of its own.
struct Lasting {
    running: Option<BoxFuture<'static, Option<(String, u16)>>>,
    outbox: Outbox,
    session: Arc<HttpSession>,
    number: u64,
}

impl Lasting {
    fn new(
        session: &Arc<HttpSession>,
        id: Id,
        serve: impl Future<Output = Result<ByteString, WireError>> + Send + 'static,
        outbox: Outbox,
    ) -> Self {
        let (number, running) = finish(Arc::clone(session), id, serve);
        Self {
            running: Some(running.boxed()),
            outbox,
            session: Arc::clone(session),
            number,
        }
    }

    /// Its answer; none if it was cancelled. Safe to drop at any time.
    async fn answer(&mut self) -> Option<(String, u16)> {
        let answer = self.running.as_mut()?.await;
        self.running = None;
        answer
    }

    /// It goes on by itself, and its answer is for its outbox. Whether it has not ended yet.
    fn go_on(&mut self) -> bool {
        let (Some(running), outbox) = (self.running.take(), self.outbox.clone()) else {
            return false;
        };
        // Without a runtime nothing goes on.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some((text, status)) = running.await {
                    let _ = outbox.put(Parcel::Answer(text, status)).await;
                }
            });
        }
        true
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        // There is no stream by which the client could come back to it.
        if self.go_on() {
            self.session.running().leave(self.number);
        }
    }
}

fn answered(
    session: &HttpSession,
    id: Id,
    outcome: Result<ByteString, WireError>,
) -> Option<(String, u16)> {
    let deeds = session.session.answer(id, outcome);
    deeds.into_iter().find_map(|deed| match deed {
        Deed::Reply { text, status, .. } => Some((text, status)),
        _ => None,
    })
}

fn cancel(session: &HttpSession, params: Option<&str>) {
    let object = Object::parse(params.unwrap_or("{}")).unwrap_or_default();
    let id = object
        .get("requestId")
        .and_then(IdRef::from_token)
        .map(IdRef::to_id);
    if let Some(id) = id {
        session.running().cancel(&id);
    }
}

/// Forwards what belongs to no request to the stream that belongs to none.
pub(super) fn pump_standalone(log: Arc<EventLog>, mut parcels: Parcels) {
    tokio::spawn(async move {
        while let Some(parcel) = parcels.take().await {
            if let Parcel::Message(text) = parcel {
                log.publish(STANDALONE, &text, None);
            }
        }
    });
}

/// Writes what a call has to say into its stream, until its answer: so long the session is kept.
async fn pump(
    session: Arc<HttpSession>,
    stream: u64,
    first: Option<Parcel>,
    mut parcels: Parcels,
    is_primed: bool,
) {
    let log = &session.log;
    let mut next = match first {
        None => parcels.take().await,
        first => first,
    };
    while let Some(parcel) = next {
        match parcel {
            Parcel::Message(text) => log.publish(stream, &text, None),
            Parcel::Answer(text, _) => {
                log.publish(stream, &text, None);
                break;
            }
            Parcel::Disconnect(retry) if is_primed => {
                log.publish(stream, "", Some(retry));
                log.detach(stream);
            }
            Parcel::Disconnect(_) => {}
        }
        next = parcels.take().await;
    }
    log.end(stream);
}

fn receive(receiver: mpsc::Receiver<Bytes>) -> impl futures_core::Stream<Item = Bytes> + Send {
    unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|bytes| (bytes, receiver))
    })
}
