//! One connection or session: the engine's machine behind a lock, and the requests of ours that wait
//! for the client.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytestring::ByteString;
use mcpact_engine::classify::{CachedPact, TransportFacts};
use mcpact_engine::effect::{Effect, End, Severity};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::{Input, Scope, Server};
use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Outcome;
use mcpact_wire::id::Id;
use smallvec::{SmallVec, smallvec};
use tokio::sync::oneshot;

use super::backend::Welcome;
use super::builder::Settings;
use super::clock::now;
use super::job::{Job, Reach, trace_of};
use super::outbox::Outbox;
use super::raw_params::RawParams;
use super::visitor::Visitor;
use super::watch::Watch;
use crate::conformity::Validation;

/// What the machine wants done, owned.
#[derive(Debug)]
pub(super) enum Deed {
    Write(String),
    Reply {
        text: String,
        status: u16,
    },
    Serve(Job),
    Observe {
        method: Option<Method>,
        params: Option<String>,
    },
    Concluded(Arc<Pact>),
    Negotiated(Box<Negotiation>),
    Withheld(String),
    HangUp,
}

/// How one of our requests to the client ended.
#[derive(Debug)]
pub enum Heard {
    /// With this raw result.
    Result(String),
    /// With this raw error.
    Error(String),
    /// Without an answer, and why.
    Lost(&'static str),
    /// It was not asked: the client did not declare it, or cannot be asked now.
    Refused(String),
}

/// A question that the client has not answered. Whoever drops it withdraws it.
#[derive(Debug)]
pub struct OpenQuestion {
    session: Arc<Session>,
    number: i64,
    outbox: Outbox,
    answer: oneshot::Receiver<Heard>,
    is_open: bool,
}

impl OpenQuestion {
    /// Waits for the answer.
    pub async fn answer(mut self) -> Heard {
        let heard = (&mut self.answer).await;
        self.is_open = false;
        heard.unwrap_or(Heard::Lost("the client went away"))
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let input = Input::Cancel { id: self.number };
        for deed in self.session.step(input, None) {
            if let Deed::Write(text) = deed {
                // A client that does not read will find out by itself.
                let _ = self.outbox.offer(text);
            }
        }
    }
}

/// A conversation with a client, or one request that stands alone.
#[derive(Debug)]
pub struct Session {
    machine: Mutex<Server>,
    /// Who waits for an answer of the client; nobody from when it answers nothing any more.
    waiting: Mutex<Option<HashMap<String, oneshot::Sender<Heard>>>>,
    last_id: AtomicI64,
    state: Option<Arc<dyn Any + Send + Sync>>,
    visitor: Visitor,
    owner: Arc<str>,
    validation: Validation,
    watch: Option<Arc<dyn Watch>>,
}

impl Session {
    pub(super) fn new(welcome: Welcome, visitor: &Visitor, settings: &Settings) -> Self {
        Self::remembering(welcome, None, visitor, settings)
    }

    /// A session for one modern request, with what the last one like it has agreed on.
    pub(super) fn remembering(
        welcome: Welcome,
        memory: Option<Arc<CachedPact>>,
        visitor: &Visitor,
        settings: &Settings,
    ) -> Self {
        let Welcome { terms, state } = welcome;
        let machine = Server::new(terms, now()).with_cached_pact(memory);
        Self {
            machine: Mutex::new(machine),
            waiting: Mutex::new(Some(HashMap::new())),
            last_id: AtomicI64::new(0),
            state,
            owner: visitor.owner(),
            visitor: visitor.clone(),
            validation: settings.validation.clone(),
            watch: settings.watch.clone(),
        }
    }

    /// On whose behalf the client speaks; empty where nobody is told apart.
    #[must_use]
    pub fn principal(&self) -> &str {
        &self.visitor.principal
    }

    /// Who opened it.
    #[must_use]
    pub const fn visitor(&self) -> &Visitor {
        &self.visitor
    }

    /// Whose everything is that the client begins: the principal's, or this client's alone if it has a
    /// connection of its own.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// What the backend gave its [`Welcome`].
    #[must_use]
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.state.as_ref()?).downcast().ok()
    }

    /// What the handshake agreed on.
    #[must_use]
    pub fn pact(&self) -> Option<Arc<Pact>> {
        self.machine().phase().pact().cloned()
    }

    /// A notification as it is to be sent; none when this client may not or does not want to hear it.
    #[must_use]
    pub fn note(&self, scope: Scope, method: Method, params: &str) -> Option<String> {
        let deeds = self.notify(scope, method, params);
        deeds.into_iter().find_map(|deed| match deed {
            Deed::Write(text) => Some(text),
            _ => None,
        })
    }

    /// The client does not read fast enough, and misses a message that it can do without.
    pub fn miss(&self, method: Method) {
        tracing::debug!(%method, "the client does not read fast enough");
        if let Some(watch) = &self.watch {
            watch.missed(method);
        }
    }

    /// Whether the client has said anything in this conversation.
    pub(super) fn has_heard(&self) -> bool {
        self.machine().has_received()
    }

    /// Whether the answer to a request is still wanted.
    pub(super) fn is_serving(&self, id: &Id) -> bool {
        self.machine().is_serving(id)
    }

    pub(super) fn memory(&self) -> Option<Arc<CachedPact>> {
        self.machine().cached_pact()
    }

    /// What is no message.
    pub(super) fn bytes(&self, bytes: &[u8]) -> SmallVec<[Deed; 1]> {
        let facts = TransportFacts::Stream;
        self.step(Input::Bytes { bytes, facts }, None)
    }

    pub(super) fn frame(
        &self,
        source: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
    ) -> SmallVec<[Deed; 1]> {
        self.step(Input::Frame { frame, facts }, Some(source))
    }

    pub(super) fn answer(
        &self,
        id: Id,
        outcome: Result<ByteString, WireError>,
    ) -> SmallVec<[Deed; 1]> {
        let outcome = match &outcome {
            Ok(raw) => Ok(&**raw),
            Err(error) => Err(error.clone()),
        };
        self.step(Input::Answer { id, outcome }, None)
    }

    pub(super) fn notify(&self, scope: Scope, method: Method, params: &str) -> SmallVec<[Deed; 1]> {
        if let Err(why) = self.fits(method, params, &scope) {
            return smallvec![Deed::Withheld(why)];
        }
        self.step(
            Input::Notify {
                scope,
                method: method.as_str(),
                params: Some(params),
            },
            None,
        )
    }

    pub(super) fn tick(&self) -> SmallVec<[Deed; 1]> {
        self.step(Input::Tick, None)
    }

    pub(super) fn close(&self) {
        self.step(Input::Closed, None);
    }

    /// Asks the client something. Whoever stops waiting withdraws the question.
    pub async fn ask(
        self: &Arc<Self>,
        method: Method,
        params: &str,
        patience: RequestTimeout,
        outbox: &Outbox,
    ) -> Heard {
        match self.put(method, params, patience, outbox).await {
            Ok(question) => question.answer().await,
            Err(heard) => heard,
        }
    }

    /// Puts a question to the client, which is on its way from here on.
    ///
    /// # Errors
    /// How it ended, if the client cannot be asked.
    pub async fn put(
        self: &Arc<Self>,
        method: Method,
        params: &str,
        patience: RequestTimeout,
        outbox: &Outbox,
    ) -> Result<OpenQuestion, Heard> {
        let asked = self.question(method, params, patience);
        let (number, text, answer) = asked.map_err(Heard::Refused)?;
        let question = OpenQuestion {
            session: Arc::clone(self),
            number,
            outbox: outbox.clone(),
            answer,
            is_open: true,
        };
        match outbox.send(text).await {
            Ok(()) => Ok(question),
            Err(_) => Err(Heard::Lost("the client went away")),
        }
    }

    /// The message that asks, its number, and the place where the answer will arrive.
    fn question(
        &self,
        method: Method,
        params: &str,
        patience: RequestTimeout,
    ) -> Result<(i64, String, oneshot::Receiver<Heard>), String> {
        self.fits(method, params, &Scope::Connection)?;
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        match self.waiting().as_mut() {
            Some(waiting) => waiting.insert(id.to_string(), sender),
            None => return Err(String::from("the client went away")),
        };
        let input = Input::Ask {
            id,
            method: method.as_str(),
            params: Some(params),
            timeout: patience,
        };
        for deed in self.step(input, None) {
            match deed {
                Deed::Write(text) => return Ok((id, text, receiver)),
                Deed::Withheld(why) => {
                    self.answered(&id.to_string());
                    return Err(why);
                }
                _ => {}
            }
        }
        Err(String::from("the connection is closed"))
    }

    const fn is_off(&self) -> bool {
        matches!(self.validation, Validation::Off)
    }

    /// What goes out is held against the schema as well: a fault of ours is to be seen.
    fn fits(&self, method: Method, params: &str, scope: &Scope) -> Result<(), String> {
        if self.is_off() {
            return Ok(());
        }
        let name = method.as_str();
        let revision = self.revision_in(scope);
        self.validation
            .params("server", revision, name, Some(params))
            .map_err(|misfit| format!("`{name}` {misfit}"))
    }

    /// Revision of the handshake; without one, the newest that needs none.
    fn revision(&self) -> Revision {
        self.revision_in(&Scope::Connection)
    }

    fn revision_in(&self, scope: &Scope) -> Revision {
        let agreed = self.machine().revision_in(scope);
        agreed.unwrap_or(Revision::newest(Era::Modern))
    }

    fn machine(&self) -> MutexGuard<'_, Server> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Option<HashMap<String, oneshot::Sender<Heard>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who waits for this answer, and does not from now on.
    fn answered(&self, id: &str) -> Option<oneshot::Sender<Heard>> {
        self.waiting().as_mut()?.remove(id)
    }

    /// The client answers nothing any more that it was asked, or is.
    pub(super) fn deafen(&self) {
        *self.waiting() = None;
    }

    fn step(&self, input: Input<'_>, source: Option<&ByteString>) -> SmallVec<[Deed; 1]> {
        let effects = self.machine().advance(input, now());
        effects
            .into_iter()
            .filter_map(|effect| self.own(effect, source))
            .collect()
    }

    /// Lets somebody count what was decided.
    fn tell_watch(&self, effect: &Effect<'_>) {
        let Some(watch) = &self.watch else {
            return;
        };
        match effect {
            Effect::Negotiated(negotiation) => watch.negotiated(negotiation),
            Effect::Reply {
                refused: Some(refused),
                ..
            } => watch.refused(*refused),
            Effect::Withheld(misuse) => watch.withheld(misuse),
            Effect::Dropped(drop) => watch.dropped(drop.why),
            _ => {}
        }
    }

    fn own(&self, effect: Effect<'_>, source: Option<&ByteString>) -> Option<Deed> {
        self.tell_watch(&effect);
        Some(match effect {
            Effect::Write(text) => Deed::Write(text),
            Effect::Reply {
                text, http_status, ..
            } => Deed::Reply {
                text,
                status: http_status,
            },
            Effect::Serve(call) => Deed::Serve(Job {
                id: call.id,
                method: call.method,
                name: call.name.into(),
                params: RawParams::of(&call.params, source),
                progress_token: call.params.meta.progress_token.map(str::to_owned),
                log_level: call.log_level,
                pact: call.pact,
                reach: Reach::Stream,
                trace: trace_of(&call.params.meta),
            }),
            Effect::Observe(note) => {
                if !self.is_off() {
                    let revision = self.revision();
                    let judged =
                        self.validation
                            .params("client", revision, &note.name, note.params.raw);
                    judged.ok()?;
                }
                Deed::Observe {
                    method: note.method,
                    params: note.params.raw.map(str::to_owned),
                }
            }
            Effect::Settled { id, method, end } => {
                let heard = self.heard(&method, &end);
                if let Some(sender) = self.answered(id.raw()) {
                    // Whoever asked may have gone; then nobody needs the answer.
                    let _ = sender.send(heard);
                }
                return None;
            }
            Effect::Concluded(pact) => Deed::Concluded(pact),
            Effect::Negotiated(negotiation) => Deed::Negotiated(negotiation),
            Effect::Withheld(misuse) => Deed::Withheld(misuse.to_string()),
            Effect::HangUp => Deed::HangUp,
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

    fn heard(&self, method: &str, end: &End<'_>) -> Heard {
        match end {
            End::Answered(Outcome::Result(body)) => {
                let is_fit = self.is_off() || {
                    let revision = self.revision();
                    let judged = self.validation.result("client", revision, method, body.raw);
                    judged.is_ok()
                };
                if is_fit {
                    Heard::Result(body.raw.to_owned())
                } else {
                    Heard::Lost("the answer of the client does not fit the official schema")
                }
            }
            End::Answered(Outcome::Error(raw)) => Heard::Error((*raw).to_owned()),
            End::TimedOut => Heard::Lost("the client did not answer in time"),
            End::Cancelled => Heard::Lost("the question was withdrawn"),
            End::ConnectionClosed => Heard::Lost("the client went away"),
        }
    }
}
