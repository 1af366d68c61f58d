//! HTTP server: legacy sessions and stateless modern requests at one endpoint.

mod header_fields;
mod legacy;
mod line_transports;
mod modern;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::Method as Verb;
use http::header::ALLOW;
use mcpact_engine::classify::{
    CachedPact, Endpoint as Offered, HeaderField, HttpFacts, Route, SessionFact, TransportFacts,
    Verb as Kind, route,
};
use mcpact_engine::effect::Refused;
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::refusal::{Dialect, Misbehaviour, Refusal, WireError};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{Era, Feature, Method, Revision};
use mcpact_transport::budget::{MemoryBudget, ScarcityWatch, SessionSlot};
use mcpact_transport::http::server::{Endpoint, HttpRequest, HttpResponse};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, EnvelopeError, ShapeFault};
use mcpact_wire::id::{Id, IdRef};

use super::backend;
use super::backend::{Backend, ClientHello, ClientSetup};
use super::builder::Settings;
use super::client_identity::{ClientIdentity, ClientKey, KEY, Principal};
use super::outbox::Outbox;
use super::raw_params::utf8_text;
use super::router::ErasedEndpoint;
use super::session::Session;
use super::sse_replay_log::{STANDALONE, SseReplayLog};
use crate::connection::headers::{METHOD, NAME, SESSION_ID, VERSION};
use crate::lock;
use crate::log::{self, ServerNegotiationLog};
use header_fields::{header_field, header_fields};
use legacy::RunningCalls;
use line_transports::{SseSessions, WebSockets};

/// Maximum number of queued messages of a running request.
const BACKLOG: u32 = 64;

/// Legacy session.
#[derive(Debug)]
struct HttpSession<S> {
    session: Arc<Session<S>>,
    log: Arc<SseReplayLog>,
    revision: Revision,
    running: Mutex<RunningCalls>,
    usage: Mutex<Usage>,
    /// Slot of the session at the connection that opened it.
    _slot: SessionSlot,
}

/// Last message of a session. Sessions that no message followed come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Usage {
    is_started: bool,
    last: Instant,
}

impl<S> HttpSession<S> {
    fn touch(&self) {
        *lock(&self.usage) = Usage {
            is_started: true,
            last: Instant::now(),
        };
    }

    /// Returns the last message, if no request is in flight and no stream is connected.
    fn idle_since(&self) -> Option<Usage> {
        let usage = *lock(&self.usage);
        let is_idle = lock(&self.running).calls.is_empty() && !self.log.is_connected();
        is_idle.then_some(usage)
    }

    /// Returns `true` if the session was idle for longer than allowed.
    fn is_expired(&self, settings: &Settings) -> bool {
        self.idle_since().is_some_and(|usage| {
            let limit = match usage.is_started {
                true => settings.session_idle,
                false => settings.session_start.min(settings.session_idle),
            };
            usage.last.elapsed() >= limit
        })
    }

    /// Ends its calls and streams. Running calls hold the session, so dropping it is not enough.
    fn end(&self) {
        self.cut_off();
        self.session.close();
        self.log.close();
    }

    /// Cuts off its calls with an error response, and ends the standalone stream. Responses on their way are
    /// delivered.
    fn stop(&self) {
        self.cut_off();
        self.log.end(STANDALONE);
    }

    fn cut_off(&self) {
        for call in lock(&self.running).calls.values() {
            call.abort.abort();
        }
    }
}

impl<S> Drop for HttpSession<S> {
    fn drop(&mut self) {
        self.end();
    }
}

/// HTTP endpoint of one backend.
#[derive(Debug)]
pub(super) struct HttpEndpoint<B: Backend> {
    backend: Arc<B>,
    negotiation_log: ServerNegotiationLog,
    offered: Offered,
    sessions: Mutex<HashMap<String, Arc<HttpSession<B::State>>>>,
    sse: SseSessions,
    websockets: WebSockets,
    pact_cache: Mutex<Option<CachedTerms>>,
    cut_off_flag: modern::CutOffFlag,
}

/// Pact of the last modern request, with its terms.
#[derive(Clone, Debug)]
struct CachedTerms {
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
            negotiation_log: ServerNegotiationLog::default(),
            sessions: Mutex::default(),
            sse: SseSessions::default(),
            websockets: WebSockets::default(),
            pact_cache: Mutex::default(),
            cut_off_flag: modern::CutOffFlag::default(),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        self.backend.settings()
    }

    /// Ends all sessions and streams for shutdown.
    pub(super) fn stop(&self) {
        self.backend.stop();
        let ended = std::mem::take(&mut *lock(&self.sessions));
        for session in ended.values() {
            session.stop();
        }
        self.sse.switches.stop();
        self.websockets.switches.stop();
    }

    /// Returns the cached pact for these terms.
    fn cached_pact(&self, terms: &Arc<ServerTerms>) -> Option<Arc<CachedPact>> {
        let pact_cache = lock(&self.pact_cache);
        let pact_cache = pact_cache.as_ref()?;
        Arc::ptr_eq(&pact_cache.terms, terms).then(|| Arc::clone(&pact_cache.agreed))
    }

    /// Returns the setup for a hello message.
    async fn accept_client(
        &self,
        frame: &Frame<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup<B::State>, HttpResponse> {
        let Some(hello) = ClientHello::of(frame) else {
            return Ok(ClientSetup::with_terms(self.backend.terms()));
        };
        let setup = tokio::select! {
            biased;
            setup = self.backend.accept_client(hello, identity) => setup,
            () = self.cut_off_flag.wait() => Err(backend::cut_off_error()),
        };
        setup.map_err(|error| error_response(id_of(frame), &error))
    }

    /// Reports a refusal that no session has seen, and encodes it.
    fn refusal_response(
        &self,
        refusal: &Refusal,
        method: Option<Method>,
        id: Option<IdRef<'_>>,
        revision: Revision,
    ) -> HttpResponse {
        if let Some(observer) = &self.settings().observer {
            let refused = Refused::from(refusal);
            let method = refused.method.or(method);
            observer.refused(Refused { method, ..refused });
        }
        let errors = self.backend.terms().policy.errors;
        error_response(id, &refusal.on_wire(Dialect { revision, errors }))
    }

    /// Returns the identity of a request with this key header.
    fn identity(
        &self,
        http_request: &HttpRequest,
        key: HeaderField<'_>,
    ) -> Result<ClientIdentity, WireError> {
        let key = ClientKey::parse(key)?;
        let principals = &self.backend.settings().principals;
        let principal = principals.principal(http_request, &key);
        Ok(ClientIdentity { principal, key })
    }

    /// Returns the principal of a request.
    fn principal(&self, http_request: &HttpRequest) -> Result<Principal, WireError> {
        let identity = self.identity(http_request, header_field(http_request, &KEY))?;
        Ok(identity.principal)
    }

    /// Finds the live session with this id; sessions of other principals are unknown.
    fn session(
        &self,
        named: HeaderField<'_>,
        principal: Result<&Principal, &WireError>,
    ) -> (SessionFact, Option<Arc<HttpSession<B::State>>>) {
        if self.offered.legacy.is_empty() {
            return (SessionFact::Absent, None);
        }
        let named = match named {
            HeaderField::Absent => return (SessionFact::Absent, None),
            HeaderField::Once(id) => Some(id),
            HeaderField::Repeated => None,
        };
        let found = named
            .and_then(|id| lock(&self.sessions).get(id).cloned())
            .filter(|found| Ok(found.session.principal()) == principal);
        match found {
            Some(session) => {
                session.touch();
                (SessionFact::Live(session.revision), Some(session))
            }
            None => (SessionFact::Unknown, None),
        }
    }

    async fn post(&self, http_request: Box<HttpRequest>) -> HttpResponse {
        let [named, version, method, name, key] =
            header_fields(&http_request, [&SESSION_ID, &VERSION, &METHOD, &NAME, &KEY]);
        let identity = self.identity(&http_request, key);
        let principal = identity.as_ref().map(|identity| &identity.principal);
        let (fact, session) = self.session(named, principal);
        let body = match utf8_text(&http_request.body) {
            Ok(body) => body,
            Err(error) => return self.unreadable(error.into(), &http_request),
        };
        let frame = match Frame::read(&body) {
            Ok(frame) => frame,
            Err(error) => return self.unreadable(error, &http_request),
        };
        // A client that tries 2026-07-28 first would fall back to an older revision without noticing the invalid key.
        let identity = match identity {
            Ok(identity) => identity,
            Err(error) => return error_response(id_of(&frame), &error),
        };
        let facts = TransportFacts::Http(HttpFacts {
            verb: Kind::Post,
            version,
            method,
            name,
            session: fact,
        });
        match (route(Some(&frame), &facts, None, &self.offered), session) {
            // 2026-07-28 basic/transports/streamable-http: clients send no responses.
            (Route::Modern, _) if matches!(frame, Frame::Single(Envelope::Response(_))) => {
                let fault = ShapeFault::Parts;
                self.unreadable(EnvelopeError::Shape { fault, id: None }, &http_request)
            }
            (Route::Modern, _) => {
                self.modern(&http_request, &body, frame, facts, identity)
                    .await
            }
            // A second `initialize` in a live session is refused by the engine.
            (Route::LegacyOpen | Route::Legacy(_) | Route::Batch(_), Some(session)) => {
                self.legacy(&session, &body, frame, facts, &http_request)
                    .await
            }
            (Route::LegacyOpen, None) => {
                self.open(&http_request, &body, frame, facts, identity)
                    .await
            }
            (Route::Legacy(revision) | Route::Batch(revision), None) => {
                self.refuse(&frame, &Misbehaviour::MissingSession.into(), revision)
            }
            (Route::Refused(refusal), session) => {
                let revision = self.likely_revision(&http_request, session.as_deref());
                self.refuse(&frame, &refusal, revision)
            }
            (Route::StrayResponse | Route::Unopened, _) => HttpResponse::empty(202),
            (Route::LegacyControl | Route::NotAllowed, _) => self.not_allowed(),
        }
    }

    /// Returns the revision for a refusal before a revision is negotiated.
    fn likely_revision(
        &self,
        http_request: &HttpRequest,
        session: Option<&HttpSession<B::State>>,
    ) -> Revision {
        if let Some(session) = session {
            return session.revision;
        }
        let named = http_request.header(VERSION).map(Revision::parse);
        match named {
            Some(Some(revision)) => revision,
            Some(None) => self.offered.newest(Era::Modern),
            None => self.offered.newest(Era::Legacy),
        }
    }

    fn refuse(&self, frame: &Frame<'_>, refusal: &Refusal, revision: Revision) -> HttpResponse {
        let response = self.refusal_response(refusal, method_of(frame), id_of(frame), revision);
        if let Frame::Single(Envelope::Request(request)) = frame {
            let terms = self.backend.terms();
            let negotiation = Negotiation::refused(request, refusal, &terms.party, &terms.policy);
            if let Some(observer) = &self.settings().observer {
                observer.negotiated(&negotiation);
            }
            self.negotiation_log.record("http", &negotiation);
        }
        response
    }

    /// Returns 405 with the allowed methods.
    fn not_allowed(&self) -> HttpResponse {
        let verbs = if self.offered.legacy.is_empty() {
            "POST"
        } else {
            "POST, GET, DELETE"
        };
        HttpResponse::empty(405).with(ALLOW, verbs)
    }

    fn unreadable(&self, error: EnvelopeError, http_request: &HttpRequest) -> HttpResponse {
        let id = match &error {
            EnvelopeError::Shape { id, .. } => id.clone(),
            EnvelopeError::Json(_) => None,
        };
        let revision = self.likely_revision(http_request, None);
        let refusal = Refusal::from(Misbehaviour::from(error));
        self.refusal_response(&refusal, None, id.as_ref().map(Id::as_ref), revision)
    }
}

impl<B: Backend> Endpoint for HttpEndpoint<B> {
    async fn handle(&self, http_request: Box<HttpRequest>) -> HttpResponse {
        let mut offered = self.offered.legacy.iter();
        let has_sse = offered.any(|revision| revision.has(Feature::HttpSse));
        let is_sse = self.settings().http_sse && has_sse;
        match (http_request.path.as_str(), &http_request.verb) {
            (path, verb) if path == self.settings().path => {
                if verb == Verb::POST {
                    self.post(http_request).await
                } else if self.offered.legacy.is_empty() {
                    self.not_allowed()
                } else if verb == Verb::GET {
                    self.stream(&http_request)
                } else if verb == Verb::DELETE {
                    self.delete(&http_request)
                } else {
                    self.not_allowed()
                }
            }
            ("/sse", &Verb::GET) if is_sse => match self.principal(&http_request) {
                Ok(principal) => self.sse.open(&self.backend, principal),
                Err(error) => unidentified(error),
            },
            ("/messages", &Verb::POST) if is_sse => match self.principal(&http_request) {
                Ok(principal) => self.sse.post(&http_request, &principal).await,
                Err(error) => unidentified(error),
            },
            ("/ws", &Verb::GET) if self.settings().websocket => {
                match self.principal(&http_request) {
                    Ok(principal) => self.websockets.open(&self.backend, principal),
                    Err(error) => unidentified(error),
                }
            }
            _ => HttpResponse::text(
                404,
                format!("not found; the MCP endpoint is {}", self.settings().path),
            ),
        }
    }

    fn cut_off(&self) {
        self.cut_off_flag.set();
    }
}

impl<B: Backend> ErasedEndpoint for HttpEndpoint<B> {
    fn respond(self: Arc<Self>, request: Box<HttpRequest>) -> BoxFuture<'static, HttpResponse> {
        async move { self.handle(request).await }.boxed()
    }

    fn drain(&self) {
        self.backend.stop();
        for session in lock(&self.sessions).values() {
            session.log.end(STANDALONE);
            lock(&session.running).drain();
        }
        self.sse.switches.drain();
        self.websockets.switches.drain();
    }

    fn close_streams(&self) {
        self.drain();
        self.sse.switches.stop();
        self.websockets.switches.stop();
    }

    fn session_count(&self) -> usize {
        lock(&self.sessions).len() + self.sse.len() + self.websockets.len()
    }

    fn has_session(&self, id: &str) -> bool {
        lock(&self.sessions).contains_key(id) || self.sse.has(id)
    }

    fn close(&self) {
        self.stop();
        self.cut_off();
    }
}

fn id_of<'a>(frame: &Frame<'a>) -> Option<IdRef<'a>> {
    match frame {
        Frame::Single(Envelope::Request(request)) => Some(request.id),
        Frame::Single(_) | Frame::Batch(_) => None,
    }
}

/// Response to a request with an invalid key that is no JSON-RPC message.
fn unidentified(error: WireError) -> HttpResponse {
    HttpResponse::text(error.http_status, error.message)
}

/// Encodes an error response.
fn error_response(id: Option<IdRef<'_>>, error: &WireError) -> HttpResponse {
    HttpResponse::json(error.http_status, codec::error(id, &error.encode()))
}

fn method_of(frame: &Frame<'_>) -> Option<Method> {
    match frame {
        Frame::Single(Envelope::Request(request)) => Method::parse(&request.method),
        Frame::Single(_) | Frame::Batch(_) => None,
    }
}

/// Returns a session id: 128 random bits.
pub(super) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl<B: Backend> HttpEndpoint<B> {
    /// Stores a session and subscribes it to changes. Returns `false` if there is no room: every other session has a
    /// request in flight or a connected stream.
    fn insert_session(
        &self,
        id: String,
        session: Arc<Session<B::State>>,
        revision: Revision,
        slot: SessionSlot,
    ) -> bool {
        let log = Arc::new(SseReplayLog::default());
        let mut sessions = lock(&self.sessions);
        let limit = self.settings().session_limit;
        let mut evicted = Vec::new();
        if sessions.len() >= limit {
            evicted = evict(&mut sessions, limit / EVICTED_PART + 1);
            tracing::warn!(
                event = log::event::IDLE_REAP,
                limit,
                ended = evicted.len(),
                "too many sessions; the longest idle ones are closed"
            );
        }
        if sessions.len() >= limit {
            return false;
        }
        let (outbox, outgoing) = Outbox::new(BACKLOG);
        self.backend.opened(&session, outbox);
        legacy::forward_standalone(Arc::clone(&log), outgoing);
        sessions.insert(
            id,
            Arc::new(HttpSession {
                session,
                log,
                revision,
                running: Mutex::default(),
                usage: Mutex::new(Usage {
                    is_started: false,
                    last: Instant::now(),
                }),
                _slot: slot,
            }),
        );
        drop(sessions);
        evicted.iter().for_each(|session| session.end());
        true
    }

    /// Ends the sessions of silent clients in the background, as long as the endpoint lives.
    pub(super) fn spawn_idle_reaper(self: &Arc<Self>) {
        const SHORTEST: Duration = Duration::from_millis(10);
        const LONGEST: Duration = Duration::from_secs(60);
        let endpoint = Arc::downgrade(self);
        let settings = self.settings();
        let shortest = settings.session_idle.min(settings.session_start);
        let pause = (shortest / 4).clamp(SHORTEST, LONGEST);
        let scarcity = ScarcityWatch::new(MemoryBudget::process());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(endpoint) = endpoint.upgrade() else {
                    return;
                };
                endpoint.reap_idle();
                if scarcity.is_scarce() {
                    let sessions = lock(&endpoint.sessions);
                    sessions.values().for_each(|session| session.log.drop_old());
                }
            }
        });
    }

    fn reap_idle(&self) {
        let settings = self.settings();
        let is_expired =
            |_: &String, session: &mut Arc<HttpSession<B::State>>| session.is_expired(settings);
        let ended: Vec<_> = lock(&self.sessions).extract_if(is_expired).collect();
        if !ended.is_empty() {
            tracing::info!(
                event = log::event::IDLE_REAP,
                ended = ended.len(),
                "idle sessions closed"
            );
        }
    }
}

/// Part of the sessions that are closed at a time to make room, if no message followed them. The search costs more than
/// closing them.
const EVICTED_PART: usize = 100;

/// Removes up to `count` sessions that no message followed. If there are none, removes the longest idle one.
fn evict<S>(
    sessions: &mut HashMap<String, Arc<HttpSession<S>>>,
    count: usize,
) -> Vec<Arc<HttpSession<S>>> {
    let idle = sessions
        .iter()
        .filter_map(|(id, session)| Some((session.idle_since()?, id)));
    let mut idle: Vec<_> = idle.collect();
    idle.sort_unstable();
    let unstarted = idle.partition_point(|(usage, _)| !usage.is_started);
    idle.truncate(unstarted.clamp(1, count));
    let ids: Vec<String> = idle.into_iter().map(|(_, id)| id.clone()).collect();
    ids.iter().filter_map(|id| sessions.remove(id)).collect()
}

#[cfg(test)]
mod tests;
