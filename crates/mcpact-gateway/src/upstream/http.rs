//! A server that is reached by HTTP: every call is a POST of its own, made by whoever calls.

mod listening;
mod reading;
mod refusal;
mod way_back;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use mcpact_spec::{Era, Method, Revision};
use mcpact_transport::error::DoorError;
use mcpact_transport::http::client::{Answer, AnswerBody, HttpClient};
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::raw::ObjectWriter;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use self::listening::{Ear, listen};
use self::reading::{PAUSE, Reading, Resume, TooLong};
use self::refusal::{disagrees, forgot_session, may_disagree};
pub(super) use self::way_back::WayBack;
use self::way_back::post;
use super::ask::Ask;
use super::mail::{Doubt, Event, Loss, Reply, Sorted, Stray, sort};
use super::{HeaderBook, Ordered, headers};
use crate::circle::LOOP;
use crate::error::{Trouble, chain};
use crate::stable::DropReason;
use crate::supervisor::{Life, Miss, Witness};

const SESSION: &str = "mcp-session-id";

/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(3);

/// How often in a row a stream is taken up without an event.
const ATTEMPTS: u32 = 6;

/// A session with a legacy server, or the address of a modern one.
#[derive(Debug)]
pub(super) struct HttpWire {
    http: HttpClient,
    revision: Revision,
    /// The headers of everything in a legacy session.
    facts: Arc<HeaderMap>,
    is_gone: Arc<AtomicBool>,
    stream: Option<AbortHandle>,
    can_push: bool,
    witness: Witness,
    /// Gone when it was ended.
    life: Mutex<Option<Life>>,
}

impl HttpWire {
    pub(super) fn modern(http: HttpClient, revision: Revision, life: Life) -> Self {
        Self {
            http,
            revision,
            facts: Arc::default(),
            is_gone: Arc::default(),
            stream: None,
            can_push: false,
            witness: life.witness(),
            life: Mutex::new(Some(life)),
        }
    }

    /// A session; its own stream is opened at once, for a server may ask something there.
    pub(super) async fn legacy(
        http: HttpClient,
        revision: Revision,
        session: Option<HeaderValue>,
        strays: mpsc::Sender<Stray>,
        life: Life,
    ) -> Self {
        let facts = Arc::new(headers::legacy(revision, session.as_ref()));
        let is_gone = Arc::new(AtomicBool::new(false));
        let (open, opened) = tokio::sync::oneshot::channel();
        let gone = Arc::clone(&is_gone);
        let figures = Arc::clone(life.figures());
        let ear = Ear { strays, figures };
        let listening = listen(http.clone(), Arc::clone(&facts), ear, open, gone);
        let stream = tokio::spawn(listening).abort_handle();
        // A server that takes its time to say that it has no such stream is not waited for.
        let opened = tokio::time::timeout(PAUSE, opened).await;
        let can_push = !matches!(opened, Ok(Ok(false)));
        Self {
            http,
            revision,
            facts,
            is_gone,
            stream: Some(stream),
            can_push,
            witness: life.witness(),
            life: Mutex::new(Some(life)),
        }
    }

    /// Whether the server keeps nothing for us.
    pub(super) fn is_stateless(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Whether the session has a stream of its own.
    pub(super) const fn can_push(&self) -> bool {
        self.can_push
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    pub(super) fn call(
        &self,
        id: &Id,
        order: Ordered<'_>,
        text: String,
        book: &HeaderBook,
    ) -> HttpCall {
        let facts = match self.revision.era() {
            Era::Modern => Arc::new(headers::modern(order, self.revision, book)),
            Era::Legacy => match order.trace {
                Some(trace) => Arc::new(headers::traced((*self.facts).clone(), trace)),
                None => Arc::clone(&self.facts),
            },
        };
        let http = self.http.clone();
        let posted = Arc::clone(&facts);
        let posting = async move { http.post(&posted, Bytes::from(text)).await }.boxed();
        HttpCall {
            http: self.http.clone(),
            era: self.revision.era(),
            facts,
            id: id.clone(),
            is_gone: Arc::clone(&self.is_gone),
            witness: self.witness.clone(),
            state: State::Posting(posting),
        }
    }

    /// Posts what has no answer.
    pub(super) async fn post(&self, text: String) {
        post(&self.http, &self.facts, text).await;
    }

    /// Ends it, whoever uses it.
    pub(super) fn close(&self) {
        if let Some(stream) = &self.stream {
            stream.abort();
        }
        let was_gone = self.is_gone.swap(true, Ordering::Relaxed);
        let life = self
            .life
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if !self.facts.contains_key(SESSION) || was_gone {
            return;
        }
        let (http, facts) = (self.http.clone(), self.facts.clone());
        // The server may not allow it, and need not answer.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(GOODBYE, http.delete(&facts)).await;
                drop(life);
            });
        }
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.close();
    }
}

/// One POST and whatever it brings.
pub(super) struct HttpCall {
    http: HttpClient,
    era: Era,
    facts: Arc<HeaderMap>,
    id: Id,
    is_gone: Arc<AtomicBool>,
    witness: Witness,
    state: State,
}

enum State {
    Posting(BoxFuture<'static, Result<Answer, DoorError>>),
    Reading(Reading),
    /// Waits, then takes up a stream that broke off.
    Resuming(BoxFuture<'static, Result<Answer, DoorError>>, Resume),
    Over,
}

impl std::fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpCall")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl HttpCall {
    /// Whether it belongs to a session that the server may forget.
    pub(super) fn has_session(&self) -> bool {
        self.facts.contains_key(SESSION)
    }

    pub(super) async fn next(&mut self) -> Event {
        loop {
            match &mut self.state {
                State::Posting(posting) => {
                    let answer = posting.await;
                    if let Some(event) = self.answered(answer) {
                        return event;
                    }
                }
                State::Reading(reading) => match reading.next().await {
                    Some(Ok(bytes)) => {
                        if let Some(event) = self.sorted(&bytes) {
                            return event;
                        }
                    }
                    // Nothing but an answer is ever that long, and no other one will come.
                    Some(Err(TooLong(limit))) => {
                        self.state = State::Over;
                        return self.too_long(limit);
                    }
                    None => {
                        let resume = reading.resume.clone();
                        if let Some(event) = self.broken(resume) {
                            return event;
                        }
                    }
                },
                State::Resuming(opening, resume) => {
                    let opened = opening.await;
                    let resume = resume.clone();
                    if let Some(event) = self.resumed(opened, resume) {
                        return event;
                    }
                }
                State::Over => return std::future::pending().await,
            }
        }
    }

    fn too_long(&self, limit: usize) -> Event {
        self.witness.figures().dropped(DropReason::TooLong);
        Event::Lost(Loss::TooLong(limit))
    }

    fn over(&mut self, event: Event) -> Option<Event> {
        self.state = State::Over;
        if let Event::Done(_) | Event::Lost(Loss::Doubt(Doubt { error: Some(_), .. })) = event {
            self.witness.reached();
        }
        Some(event)
    }

    fn answered(&mut self, answer: Result<Answer, DoorError>) -> Option<Event> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(DoorError::TooLarge { limit }) => {
                let lost = self.too_long(limit);
                return self.over(lost);
            }
            Err(error) => {
                let why = chain(&error);
                let miss = match error {
                    DoorError::Unreadable(_) => Miss::Unread,
                    _ => Miss::Unreached,
                };
                self.witness.missed(miss, &why);
                let loss = match error.is_unconnected() {
                    true => Loss::Unreached(Arc::new(error.into())),
                    false => Loss::Connection(why.into()),
                };
                return self.over(Event::Lost(loss));
            }
        };
        if answer.status == LOOP {
            // Whoever asks next finds out whether it is still so.
            self.is_gone.store(true, Ordering::Relaxed);
            let loss = Loss::Unreached(Arc::new(Trouble::Circle));
            return self.over(Event::Lost(loss));
        }
        if self.has_session() && forgot_session(&answer) {
            self.is_gone.store(true, Ordering::Relaxed);
            return self.over(Event::Lost(Loss::Session));
        }
        if disagrees(&answer) {
            self.is_gone.store(true, Ordering::Relaxed);
            return self.over(Event::Lost(Loss::Agreement));
        }
        if let Some(doubt) = may_disagree(self.era, &answer) {
            self.is_gone.store(true, Ordering::Relaxed);
            return self.over(Event::Lost(Loss::Doubt(doubt)));
        }
        match answer.body {
            AnswerBody::Events(events) => {
                self.state = State::Reading(Reading {
                    events,
                    resume: Resume::default(),
                });
                None
            }
            AnswerBody::Json(bytes) => match sort(&bytes) {
                Sorted::Reply(id, reply) if self.is_mine(id.as_ref(), &reply, answer.status) => {
                    self.over(Event::Done(reply))
                }
                // Whoever else it is for, it is not for this caller.
                Sorted::Reply(..) => {
                    self.witness.figures().dropped(DropReason::WrongId);
                    let why = String::from("its answer names another request");
                    self.over(Event::Lost(Loss::Misbehaved(why)))
                }
                Sorted::Note(_) | Sorted::Ask(_) | Sorted::Nothing(_) => {
                    self.over(Event::Lost(Loss::Status(answer.status)))
                }
            },
            AnswerBody::Empty | AnswerBody::Other(_) => {
                self.over(Event::Lost(Loss::Status(answer.status)))
            }
        }
    }

    /// Whether a reply is for this call. A refusal of the whole HTTP request need not name what it answers,
    /// and some servers give it a name of their own.
    fn is_mine(&self, id: Option<&Id>, reply: &Reply, status: u16) -> bool {
        let may_be_nameless = matches!(reply, Reply::Error(_)) && (status >= 400 || id.is_none());
        may_be_nameless || id == Some(&self.id)
    }

    fn sorted(&mut self, bytes: &Bytes) -> Option<Event> {
        match sort(bytes) {
            Sorted::Reply(Some(id), reply) if id == self.id => self.over(Event::Done(reply)),
            Sorted::Reply(..) => {
                self.witness.figures().dropped(DropReason::LateAnswer);
                None
            }
            Sorted::Nothing(why) => {
                self.witness.figures().dropped(why);
                None
            }
            Sorted::Note(note) => Some(Event::Note(note)),
            Sorted::Ask(ask) => Some(Event::Ask(self.owed(ask))),
        }
    }

    /// A question of a legacy server is answered in its session; a modern one asks nothing.
    fn owed(&self, ask: Ask) -> Ask {
        if self.era == Era::Modern {
            return ask;
        }
        let back = WayBack {
            http: self.http.clone(),
            facts: Arc::clone(&self.facts),
        };
        back.of(ask)
    }

    /// The stream ended before the answer. `2025-11-25 basic/transports#resumability`: what has an
    /// id can be taken up; a modern stream is gone with its request.
    fn broken(&mut self, mut resume: Resume) -> Option<Event> {
        resume.attempt += 1;
        let (Some(last_id), Era::Legacy, 1..=ATTEMPTS) =
            (resume.last_id.clone(), self.era, resume.attempt)
        else {
            let why = String::from(BROKEN);
            return self.over(Event::Lost(Loss::Connection(why.into())));
        };
        let pause = resume.pause();
        let (http, facts) = (self.http.clone(), Arc::clone(&self.facts));
        let opening = async move {
            tokio::time::sleep(pause).await;
            http.listen(&facts, Some(&last_id)).await
        };
        self.state = State::Resuming(opening.boxed(), resume);
        None
    }

    fn resumed(&mut self, opened: Result<Answer, DoorError>, resume: Resume) -> Option<Event> {
        match opened {
            Ok(Answer {
                body: AnswerBody::Events(events),
                ..
            }) => {
                self.state = State::Reading(Reading { events, resume });
                None
            }
            Ok(answer) => {
                let why = format!(
                    "{BROKEN}, and could not be taken up again (HTTP {})",
                    answer.status
                );
                self.over(Event::Lost(Loss::Connection(why.into())))
            }
            Err(error) => {
                tracing::debug!(%error, "failed to resume the SSE stream");
                self.broken(resume)
            }
        }
    }
}

impl Drop for HttpCall {
    /// Whoever asked has gone. A modern server sees the stream close; a legacy one is told.
    fn drop(&mut self) {
        if matches!(self.state, State::Over) || self.era == Era::Modern {
            return;
        }
        let params = ObjectWriter::new().raw("requestId", self.id.raw()).finish();
        let text = codec::call(None, Method::Cancelled.as_str(), Some(&params));
        let (http, facts) = (self.http.clone(), std::mem::take(&mut self.facts));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The server may have ended it already.
                let _ = http.post(&facts, Bytes::from(text)).await;
            });
        }
    }
}

/// What became of a stream that ended too early.
const BROKEN: &str = "the answer ended without a result";
