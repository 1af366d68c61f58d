//! Session of a client: the engine's state machine behind a lock, and open questions to the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use bytestring::ByteString;
use mcpact_engine::classify::{CachedPact, TransportFacts};
use mcpact_engine::effect::{Effect, End, Severity};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::{Input, Scope, Server};
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Outcome;
use mcpact_wire::id::Id;
use smallvec::SmallVec;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::backend::{BackendRequest, ClientSetup, ResponseMode, trace_of};
use super::builder::{DecisionObserver, Settings};
use super::client_identity::{ClientIdentity, Principal};
use super::outbox::Outbox;
use super::raw_params::RawParams;
use crate::lock;
use crate::validation::Validation;

/// Owned effect of the engine.
#[derive(Debug)]
pub(super) enum SessionEffect {
    Write(String),
    Reply {
        text: String,
        status: u16,
    },
    Serve(BackendRequest),
    Observe {
        method: Option<Method>,
        params: Option<String>,
    },
    Concluded(Arc<Pact>),
    Negotiated(Box<Negotiation>),
    Withheld(String),
    HangUp,
}

/// Outcome of a question to the client.
#[derive(Debug)]
pub enum QuestionOutcome {
    /// Raw result.
    Result(String),
    /// Raw error.
    Error(String),
    /// No answer, with the reason.
    Lost(&'static str),
    /// Not asked: the client did not declare the capability, or cannot be asked now.
    Refused(String),
}

/// Unanswered question to the client. Dropping it withdraws the question.
#[derive(Debug)]
pub struct OpenQuestion<S = ()> {
    session: Arc<Session<S>>,
    number: i64,
    outbox: Outbox,
    answer: oneshot::Receiver<QuestionOutcome>,
    is_open: bool,
}

impl<S> OpenQuestion<S> {
    /// Waits for the answer.
    pub async fn answer(mut self) -> QuestionOutcome {
        let outcome = (&mut self.answer).await;
        self.is_open = false;
        outcome.unwrap_or(QuestionOutcome::Lost("the client disconnected"))
    }
}

impl<S> Drop for OpenQuestion<S> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let input = Input::Cancel { id: self.number };
        for effect in self.session.step(input, None) {
            if let SessionEffect::Write(text) = effect {
                // If the client does not read, it misses the cancellation.
                let _ = self.outbox.try_send(text);
            }
        }
    }
}

/// Session of a client, or one self-contained request.
#[derive(Debug)]
pub struct Session<S = ()> {
    machine: Mutex<Server>,
    /// Senders of pending answers; `None` once the client has closed its side.
    waiting: Mutex<Option<HashMap<String, oneshot::Sender<QuestionOutcome>>>>,
    last_id: AtomicI64,
    state: Option<S>,
    identity: ClientIdentity,
    validation: Validation,
    observer: Option<Arc<dyn DecisionObserver>>,
}

impl<S> Session<S> {
    pub(super) fn new(
        setup: ClientSetup<S>,
        identity: &ClientIdentity,
        settings: &Settings,
    ) -> Self {
        Self::with_cached_pact(setup, None, identity, settings)
    }

    /// Creates a session for one modern request, with the cached pact of a similar one.
    pub(super) fn with_cached_pact(
        setup: ClientSetup<S>,
        cached: Option<Arc<CachedPact>>,
        identity: &ClientIdentity,
        settings: &Settings,
    ) -> Self {
        let ClientSetup { terms, state } = setup;
        let machine = Server::new(terms, now()).with_cached_pact(cached);
        Self {
            machine: Mutex::new(machine),
            waiting: Mutex::new(Some(HashMap::new())),
            last_id: AtomicI64::new(0),
            state,
            identity: identity.clone(),
            validation: settings.validation.clone(),
            observer: settings.observer.clone(),
        }
    }

    /// Returns the principal.
    #[must_use]
    pub const fn principal(&self) -> &Principal {
        &self.identity.principal
    }

    /// Returns the identity of the client.
    #[must_use]
    pub const fn identity(&self) -> &ClientIdentity {
        &self.identity
    }

    /// Returns the owner of everything the client creates: the principal, or the client's own connection if it is
    /// anonymous.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.identity.owner()
    }

    /// Returns the state of [`ClientSetup`].
    #[must_use]
    pub const fn state(&self) -> Option<&S> {
        self.state.as_ref()
    }

    /// Returns the pact of the handshake.
    #[must_use]
    pub fn pact(&self) -> Option<Arc<Pact>> {
        self.machine().phase().pact().cloned()
    }

    /// Encodes a notification; `None` if this client must not or does not want to receive it.
    #[must_use]
    pub fn encode_notification(
        &self,
        scope: Scope,
        method: Method,
        params: &str,
    ) -> Option<String> {
        self.check(method, params, &scope).ok()?;
        let input = Input::Notify {
            scope,
            method: method.as_str(),
            params: Some(params),
        };
        let effects = self.step(input, None);
        effects.into_iter().find_map(|effect| match effect {
            SessionEffect::Write(text) => Some(text),
            _ => None,
        })
    }

    /// Records that a slow client misses a notification.
    pub fn record_missed(&self, method: Method) {
        tracing::debug!(%method, "notification dropped: the client reads too slowly");
        if let Some(observer) = &self.observer {
            observer.missed(method);
        }
    }

    /// Handles bytes that are not a message.
    pub(super) fn bytes(&self, bytes: &[u8]) -> SmallVec<[SessionEffect; 1]> {
        let facts = TransportFacts::Stream;
        self.step(Input::Bytes { bytes, facts }, None)
    }

    pub(super) fn frame(
        &self,
        source: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
    ) -> SmallVec<[SessionEffect; 1]> {
        self.step(Input::Frame { frame, facts }, Some(source))
    }

    /// Encodes the response of a request, with its HTTP status; `None` if the client cancelled it.
    pub(super) fn respond(
        &self,
        id: Id,
        outcome: Result<ByteString, WireError>,
    ) -> Option<(String, u16)> {
        let outcome = match &outcome {
            Ok(raw) => Ok(&**raw),
            Err(error) => Err(error.clone()),
        };
        let effects = self.step(Input::Answer { id, outcome }, None);
        effects.into_iter().find_map(|effect| match effect {
            SessionEffect::Reply { text, status } => Some((text, status)),
            _ => None,
        })
    }

    pub(super) fn tick(&self) -> SmallVec<[SessionEffect; 1]> {
        self.step(Input::Tick, None)
    }

    pub(super) fn close(&self) {
        self.step(Input::Closed, None);
    }

    /// Asks the client. Dropping the future withdraws the question.
    pub async fn ask(
        self: &Arc<Self>,
        method: Method,
        params: &str,
        timeout: RequestTimeout,
        outbox: &Outbox,
    ) -> QuestionOutcome {
        match self.send_question(method, params, timeout, outbox).await {
            Ok(question) => question.answer().await,
            Err(outcome) => outcome,
        }
    }

    /// Sends a question to the client.
    ///
    /// # Errors
    /// The outcome, if the client cannot be asked.
    pub async fn send_question(
        self: &Arc<Self>,
        method: Method,
        params: &str,
        timeout: RequestTimeout,
        outbox: &Outbox,
    ) -> Result<OpenQuestion<S>, QuestionOutcome> {
        let asked = self.question(method, params, timeout);
        let (number, text, answer) = asked.map_err(QuestionOutcome::Refused)?;
        let question = OpenQuestion {
            session: Arc::clone(self),
            number,
            outbox: outbox.clone(),
            answer,
            is_open: true,
        };
        match outbox.send(text).await {
            Ok(()) => Ok(question),
            Err(_) => Err(QuestionOutcome::Lost("the client disconnected")),
        }
    }

    /// Returns the id of a question, its message, and the receiver of the answer.
    fn question(
        &self,
        method: Method,
        params: &str,
        timeout: RequestTimeout,
    ) -> Result<(i64, String, oneshot::Receiver<QuestionOutcome>), String> {
        self.check(method, params, &Scope::Connection)?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        match lock(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id.to_string(), sender),
            None => return Err(String::from("the client disconnected")),
        };
        let input = Input::Ask {
            id,
            method: method.as_str(),
            params: Some(params),
            timeout,
        };
        for effect in self.step(input, None) {
            match effect {
                SessionEffect::Write(text) => return Ok((id, text, receiver)),
                SessionEffect::Withheld(why) => {
                    self.answered(&id.to_string());
                    return Err(why);
                }
                _ => {}
            }
        }
        Err(String::from("the connection is closed"))
    }

    const fn is_unvalidated(&self) -> bool {
        matches!(self.validation, Validation::Off)
    }

    /// Validates outgoing messages, too, to expose errors of the server.
    fn check(&self, method: Method, params: &str, scope: &Scope) -> Result<(), String> {
        if self.is_unvalidated() {
            return Ok(());
        }
        let name = method.as_str();
        let revision = self.revision_in(scope);
        self.validation
            .params("server", revision, name, Some(params))
            .map_err(|error| format!("`{name}` {error}"))
    }

    /// Returns the revision of the handshake, or the newest modern one.
    fn revision(&self) -> Revision {
        self.revision_in(&Scope::Connection)
    }

    fn revision_in(&self, scope: &Scope) -> Revision {
        let agreed = self.machine().revision_in(scope);
        agreed.unwrap_or(Revision::newest(Era::Modern))
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Server> {
        lock(&self.machine)
    }

    /// Removes the sender of a pending answer.
    fn answered(&self, id: &str) -> Option<oneshot::Sender<QuestionOutcome>> {
        lock(&self.waiting).as_mut()?.remove(id)
    }

    /// Drops pending answers: the client has closed its side.
    pub(super) fn close_input(&self) {
        *lock(&self.waiting) = None;
    }

    fn step(&self, input: Input<'_>, source: Option<&ByteString>) -> SmallVec<[SessionEffect; 1]> {
        let effects = self.machine().advance(input, now());
        effects
            .into_iter()
            .filter_map(|effect| self.own(effect, source))
            .collect()
    }

    /// Reports a decision to the observer.
    fn notify_observer(&self, effect: &Effect<'_>) {
        let Some(observer) = &self.observer else {
            return;
        };
        match effect {
            Effect::Negotiated(negotiation) => observer.negotiated(negotiation),
            Effect::Reply {
                refused: Some(refused),
                ..
            } => observer.refused(*refused),
            Effect::Withheld(misuse) => observer.withheld(misuse),
            Effect::Dropped(drop) => observer.dropped(drop.why),
            _ => {}
        }
    }

    fn own(&self, effect: Effect<'_>, source: Option<&ByteString>) -> Option<SessionEffect> {
        self.notify_observer(&effect);
        Some(match effect {
            Effect::Write(text) => SessionEffect::Write(text),
            Effect::Reply {
                text, http_status, ..
            } => SessionEffect::Reply {
                text,
                status: http_status,
            },
            Effect::Serve(call) => SessionEffect::Serve(BackendRequest {
                id: call.id,
                method: call.method,
                name: call.name.into(),
                params: RawParams::of(&call.params, source),
                progress_token: call.params.meta.progress_token.map(str::to_owned),
                log_level: call.log_level,
                pact: call.pact,
                response_mode: ResponseMode::Stream,
                trace: trace_of(&call.params.meta),
            }),
            Effect::Observe(note) => {
                if !self.is_unvalidated() {
                    let revision = self.revision();
                    let checked =
                        self.validation
                            .params("client", revision, &note.name, note.params.raw);
                    checked.ok()?;
                }
                SessionEffect::Observe {
                    method: note.method,
                    params: note.params.raw.map(str::to_owned),
                }
            }
            Effect::Settled { id, method, end } => {
                let outcome = self.question_outcome(&method, &end);
                if let Some(sender) = self.answered(id.raw()) {
                    // The asker may be gone.
                    let _ = sender.send(outcome);
                }
                return None;
            }
            Effect::Concluded(pact) => SessionEffect::Concluded(pact),
            Effect::Negotiated(negotiation) => SessionEffect::Negotiated(negotiation),
            Effect::Withheld(misuse) => SessionEffect::Withheld(misuse.to_string()),
            Effect::HangUp => SessionEffect::HangUp,
            Effect::Dropped(drop) => {
                tracing::debug!(what = %drop.what, why = ?drop.why, "dropped");
                return None;
            }
            Effect::Report { refusal, gravity } => {
                let (reason, text) = (refusal.reason(), refusal.log_text());
                match gravity {
                    Severity::Warning => tracing::warn!(reason, "{text}"),
                    Severity::Error => tracing::error!(reason, "{text}"),
                }
                return None;
            }
            Effect::Remember(_) | Effect::Abandon(_) | Effect::Respawn | Effect::TryHttpSse => {
                return None;
            }
        })
    }

    fn question_outcome(&self, method: &str, end: &End<'_>) -> QuestionOutcome {
        match end {
            End::Answered(Outcome::Result(body)) => {
                let is_valid = self.is_unvalidated() || {
                    let revision = self.revision();
                    let checked = self.validation.result("client", revision, method, body.raw);
                    checked.is_ok()
                };
                if is_valid {
                    QuestionOutcome::Result(body.raw.to_owned())
                } else {
                    QuestionOutcome::Lost("the client's answer violates the official schema")
                }
            }
            End::Answered(Outcome::Error(raw)) => QuestionOutcome::Error((*raw).to_owned()),
            End::TimedOut => QuestionOutcome::Lost("the client timed out"),
            End::Cancelled => QuestionOutcome::Lost("the question was cancelled"),
            End::ConnectionClosed => QuestionOutcome::Lost("the client disconnected"),
        }
    }
}

/// Returns the time since the first session.
fn now() -> Moment {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Moment::at(START.elapsed())
}
