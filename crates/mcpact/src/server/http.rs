//! A server on HTTP: both eras at one address, legacy sessions and stateless requests side by side.

mod legacy;
mod modern;
mod running;
mod seen;
mod sockets;
mod sse_transport;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method as Verb;
use http::header::ALLOW;
use mcpact_engine::classify::{CachedPact, Endpoint as Offered, Verb as Kind};
use mcpact_engine::classify::{HeaderField, HttpFacts, Route, SessionFact, TransportFacts, route};
use mcpact_engine::effect::Refused;
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::{Dialect, Misbehaviour, Refusal};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{Era, Feature, Method, Revision};
use mcpact_transport::http::server::{Answer, Arrival, Endpoint};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, EnvelopeError, ShapeFault};
use mcpact_wire::id::{Id, IdRef};

use super::backend::{Backend, Opening, Welcome};
use super::event_log::{EventLog, STANDALONE};
use super::held;
use super::outbox::Outbox;
use super::raw_params::text_of;
use super::session::Session;
use super::visitor::{KEY, Mark, Visitor};
use crate::log::{self, Witness};
use running::Running;
use seen::{METHOD, NAME, SESSION_ID, VERSION, seen_all};
use sockets::Sockets;
use sse_transport::SseSessions;

/// A legacy session.
#[derive(Debug)]
struct HttpSession {
    session: Arc<Session>,
    log: Arc<EventLog>,
    revision: Revision,
    running: Mutex<Running>,
    used: Mutex<Instant>,
}

impl HttpSession {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether its client has let nothing be heard of it for so long, and hears nothing either.
    fn is_idle_for(&self, idle: Duration) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.elapsed() >= idle && self.running().calls.is_empty() && !self.log.is_heard()
    }

    /// Ends its calls and streams. Running calls keep the session, so that forgetting it is not
    /// enough.
    fn end(&self) {
        self.cut_off();
        self.session.close();
        self.log.close();
    }

    /// Ends its calls, which are told so, and the stream that belongs to none; an answer that is on its way
    /// is let through.
    fn stop(&self) {
        self.cut_off();
        self.log.end(STANDALONE);
    }

    fn cut_off(&self) {
        for call in self.running().calls.values() {
            call.abort.abort();
        }
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        self.end();
    }
}

/// Everything behind one address.
#[derive(Debug)]
pub(super) struct HttpEndpoint<B> {
    backend: Arc<B>,
    witness: Witness,
    offered: Offered,
    sessions: Mutex<HashMap<String, Arc<HttpSession>>>,
    sse: SseSessions,
    sockets: Sockets,
    memory: Mutex<Option<Memory>>,
    patience: modern::Patience,
}

/// What the last modern request has agreed on, and with which terms.
#[derive(Clone, Debug)]
struct Memory {
    terms: Arc<ServerTerms>,
    agreed: Arc<CachedPact>,
}

impl<B: Backend> HttpEndpoint<B> {
    pub(super) fn new(backend: Arc<B>) -> Self {
        let terms = backend.terms();
        let offered = Offered::of(&terms.policy.version, terms.sessions);
        Self {
            offered,
            backend,
            witness: Witness::default(),
            sessions: Mutex::default(),
            sse: SseSessions::default(),
            sockets: Sockets::default(),
            memory: Mutex::default(),
            patience: modern::Patience::default(),
        }
    }

    /// How its address begins.
    pub(super) fn scheme(&self) -> &'static str {
        match self.backend.settings().tls {
            Some(_) => "https",
            None => "http",
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.backend.settings().path
    }

    /// Ends every stream, so that nobody waits for a server that wants to go.
    pub(super) fn stop(&self) {
        self.backend.stop();
        let ended = std::mem::take(&mut *self.sessions());
        for session in ended.values() {
            session.stop();
        }
        self.sse.stop();
        self.sockets.stop();
    }

    /// Ends the streams that belong to no request, so that nobody waits for what never ends, the calls that
    /// nobody waits for, and each connection that stays as soon as nobody waits for anything on it.
    pub(super) fn rest(&self) {
        self.backend.stop();
        for session in self.sessions().values() {
            session.log.end(STANDALONE);
            session.running().rest();
        }
        self.sse.rest();
        self.sockets.rest();
    }

    /// As [`rest`](Self::rest), when nobody waits for an answer any more: connections that stay end, too.
    pub(super) fn dismiss(&self) {
        self.rest();
        self.sse.stop();
        self.sockets.stop();
    }

    /// How many clients have a session or a connection that stays.
    pub(super) fn guests(&self) -> usize {
        self.sessions().len() + self.sse.len() + self.sockets.len()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the last modern request has agreed on; most come from the same few clients.
    fn memory(&self) -> MutexGuard<'_, Option<Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a request on these terms need not agree on again.
    fn known(&self, terms: &Arc<ServerTerms>) -> Option<Arc<CachedPact>> {
        let memory = self.memory();
        let memory = memory.as_ref()?;
        Arc::ptr_eq(&memory.terms, terms).then(|| Arc::clone(&memory.agreed))
    }

    /// The terms for what opens a conversation or stands alone.
    async fn welcome(&self, frame: &Frame<'_>, visitor: &Visitor) -> Result<Welcome, Answer> {
        let Some(opening) = Opening::of(frame) else {
            return Ok(Welcome::on(self.backend.terms()));
        };
        let welcome = tokio::select! {
            biased;
            welcome = self.backend.welcome(opening, visitor) => welcome,
            () = self.patience.ended() => Err(held::cut_off()),
        };
        welcome.map_err(|error| {
            let text = codec::error(id_of(frame), &error.encode());
            Answer::json(error.http_status, text)
        })
    }

    /// Lets somebody count what no session has seen.
    fn tell_refused(&self, refusal: &Refusal, method: Option<Method>) {
        if let Some(watch) = &self.backend.settings().watch {
            let refused = Refused::from(refusal);
            let method = refused.method.or(method);
            watch.refused(Refused { method, ..refused });
        }
    }

    /// On whose behalf a request comes.
    fn principal(&self, arrival: &Arrival) -> Arc<str> {
        self.backend.settings().principals.of(&arrival.headers)
    }

    /// The live session that a request names; somebody else's is as unknown as none.
    fn session(
        &self,
        named: HeaderField<'_>,
        arrival: &Arrival,
    ) -> (SessionFact, Option<Arc<HttpSession>>) {
        if self.offered.legacy.is_empty() {
            return (SessionFact::Absent, None);
        }
        let named = match named {
            HeaderField::Absent => return (SessionFact::Absent, None),
            HeaderField::Once(id) => Some(id),
            HeaderField::Repeated => None,
        };
        let found = named
            .and_then(|id| self.sessions().get(id).cloned())
            .filter(|found| found.session.principal() == &*self.principal(arrival));
        match found {
            Some(session) => {
                session.touch();
                (SessionFact::Live(session.revision), Some(session))
            }
            None => (SessionFact::Unknown, None),
        }
    }

    async fn post(&self, arrival: Box<Arrival>) -> Answer {
        let [named, version, method, name, key] =
            seen_all(&arrival, [&SESSION_ID, &VERSION, &METHOD, &NAME, &KEY]);
        let (fact, session) = self.session(named, &arrival);
        let body = match text_of(&arrival.body) {
            Ok(body) => body,
            Err(error) => return self.unreadable(error.into(), &arrival),
        };
        let frame = match Frame::read(&body) {
            Ok(frame) => frame,
            Err(error) => return self.unreadable(error, &arrival),
        };
        // A client that tries 2026-07-28 first would go on as an older one, and not know that its key is none.
        let mark = match Mark::named(key) {
            Ok(mark) => mark,
            Err(error) => {
                let text = codec::error(id_of(&frame), &error.encode());
                return Answer::json(error.http_status, text);
            }
        };
        let facts = TransportFacts::Http(HttpFacts {
            verb: Kind::Post,
            version,
            method,
            name,
            session: fact,
        });
        match route(Some(&frame), &facts, None, &self.offered) {
            // 2026-07-28 basic/transports/streamable-http: clients send no responses.
            Route::Modern if matches!(frame, Frame::Single(Envelope::Response(_))) => {
                let fault = ShapeFault::Parts;
                self.unreadable(EnvelopeError::Shape { fault, id: None }, &arrival)
            }
            Route::Modern => self.modern(&arrival, &body, frame, facts, mark).await,
            Route::LegacyOpen => match session {
                // In a session that lives it is a second one, which the machine refuses.
                Some(session) => self.legacy(&session, &body, frame, facts, &arrival).await,
                None => self.open(&arrival, &body, frame, facts).await,
            },
            Route::Legacy(revision) | Route::Batch(revision) => match session {
                Some(session) => self.legacy(&session, &body, frame, facts, &arrival).await,
                None => self.refuse(&frame, &Misbehaviour::MissingSession.into(), revision),
            },
            Route::Refused(refusal) => {
                let revision = self.likely_revision(&arrival, session.as_deref());
                self.refuse(&frame, &refusal, revision)
            }
            Route::StrayResponse | Route::Unopened => Answer::empty(202),
            Route::LegacyControl | Route::NotAllowed => self.not_allowed(),
        }
    }

    /// In whose words a refusal is told when no revision was agreed on.
    fn likely_revision(&self, arrival: &Arrival, session: Option<&HttpSession>) -> Revision {
        if let Some(session) = session {
            return session.revision;
        }
        let named = arrival.header(VERSION).map(Revision::parse);
        match named {
            Some(Some(revision)) => revision,
            Some(None) => self.offered.newest(Era::Modern),
            None => self.offered.newest(Era::Legacy),
        }
    }

    fn refuse(&self, frame: &Frame<'_>, refusal: &Refusal, revision: Revision) -> Answer {
        let dialect = Dialect {
            revision,
            errors: self.backend.terms().policy.errors,
        };
        let error = refusal.on_wire(dialect);
        self.tell_refused(refusal, method_of(frame));
        if let Frame::Single(Envelope::Request(request)) = frame {
            let terms = self.backend.terms();
            let negotiation = Negotiation::refused(request, refusal, &terms.party, &terms.policy);
            if let Some(watch) = &self.backend.settings().watch {
                watch.negotiated(&negotiation);
            }
            self.witness.tell("http", &negotiation);
        }
        let text = codec::error(id_of(frame), &error.encode());
        Answer::json(error.http_status, text)
    }

    /// The answer to a verb that is not served, with those that are.
    fn not_allowed(&self) -> Answer {
        let verbs = if self.offered.legacy.is_empty() {
            "POST"
        } else {
            "POST, GET, DELETE"
        };
        Answer::empty(405).with(ALLOW, verbs)
    }

    fn unreadable(&self, error: EnvelopeError, arrival: &Arrival) -> Answer {
        let id = match &error {
            EnvelopeError::Shape { id, .. } => id.clone(),
            EnvelopeError::Json(_) => None,
        };
        let revision = self.likely_revision(arrival, None);
        let dialect = Dialect {
            revision,
            errors: self.backend.terms().policy.errors,
        };
        let refusal = Refusal::from(Misbehaviour::from(error));
        self.tell_refused(&refusal, None);
        let error = refusal.on_wire(dialect);
        let text = codec::error(id.as_ref().map(Id::as_ref), &error.encode());
        Answer::json(error.http_status, text)
    }
}

impl<B: Backend> Endpoint for HttpEndpoint<B> {
    async fn handle(&self, arrival: Box<Arrival>) -> Answer {
        let mut offered = self.offered.legacy.iter();
        let has_sse = offered.any(|revision| revision.has(Feature::HttpSse));
        let is_sse = self.backend.settings().http_sse && has_sse;
        match (arrival.path.as_str(), &arrival.verb) {
            (path, verb) if path == self.path() => {
                if verb == Verb::POST {
                    self.post(arrival).await
                } else if self.offered.legacy.is_empty() {
                    self.not_allowed()
                } else if verb == Verb::GET {
                    self.stream(&arrival)
                } else if verb == Verb::DELETE {
                    self.delete(&arrival)
                } else {
                    self.not_allowed()
                }
            }
            ("/sse", &Verb::GET) if is_sse => {
                self.sse.open(&self.backend, self.principal(&arrival))
            }
            ("/messages", &Verb::POST) if is_sse => {
                let principal = self.principal(&arrival);
                self.sse.post(&arrival, &principal).await
            }
            ("/ws", &Verb::GET) if self.backend.settings().websocket => {
                self.sockets.open(&self.backend, self.principal(&arrival))
            }
            _ => Answer::text(404, format!("nothing here; MCP is at {}", self.path())),
        }
    }

    fn cut_off(&self) {
        self.patience.end();
    }
}

fn id_of<'a>(frame: &Frame<'a>) -> Option<IdRef<'a>> {
    match frame {
        Frame::Single(Envelope::Request(request)) => Some(request.id),
        Frame::Single(_) | Frame::Batch(_) => None,
    }
}

fn method_of(frame: &Frame<'_>) -> Option<Method> {
    match frame {
        Frame::Single(Envelope::Request(request)) => Method::parse(&request.method),
        Frame::Single(_) | Frame::Batch(_) => None,
    }
}

/// A session id: 128 bits that nobody can guess.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl<B: Backend> HttpEndpoint<B> {
    /// Makes room, keeps the session, and lets it hear of changes.
    fn keep(&self, id: String, session: Arc<Session>, revision: Revision) -> bool {
        let log = Arc::new(EventLog::default());
        let mut sessions = self.sessions();
        if sessions.len() >= self.backend.settings().session_limit {
            return false;
        }
        let (outbox, parcels) = Outbox::new(64);
        self.backend.opened(&session, outbox);
        legacy::pump_standalone(Arc::clone(&log), parcels);
        sessions.insert(
            id,
            Arc::new(HttpSession {
                session,
                log,
                revision,
                running: Mutex::default(),
                used: Mutex::new(Instant::now()),
            }),
        );
        true
    }

    /// Ends the sessions of clients that went away without a word, as long as anybody is served.
    pub(super) fn watch(self: &Arc<Self>) {
        const SHORTEST: Duration = Duration::from_millis(10);
        const LONGEST: Duration = Duration::from_secs(60);
        let endpoint = Arc::downgrade(self);
        let idle = self.backend.settings().session_idle;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep((idle / 4).clamp(SHORTEST, LONGEST)).await;
                let Some(endpoint) = endpoint.upgrade() else {
                    return;
                };
                endpoint.end_idle(idle);
            }
        });
    }

    fn end_idle(&self, idle: Duration) {
        let is_idle = |_: &String, session: &mut Arc<HttpSession>| session.is_idle_for(idle);
        let ended: Vec<_> = self.sessions().extract_if(is_idle).collect();
        if !ended.is_empty() {
            tracing::info!(
                event = log::event::IDLE_REAP,
                ended = ended.len(),
                "idle sessions were ended"
            );
        }
    }
}

/// The body of a JSON answer.
fn json(text: String) -> Bytes {
    Bytes::from(text)
}

#[cfg(test)]
mod tests;
