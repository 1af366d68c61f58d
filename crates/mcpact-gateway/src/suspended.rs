//! Modern clients in front of a legacy server that asks before it answers.
//!
//! The server's call stays open in a task of its own, its keeper, while the client holds a sealed state
//! and thinks. Whatever the client comes back with is judged by [`Parks`]; the keeper does the waiting.

pub(crate) mod call;
pub(crate) mod digest;
pub(crate) mod modern;
pub(crate) mod registry;
pub(crate) mod resume;

use std::sync::Arc;
use std::time::Duration;

use crate::error::ServeError;
use crate::suspended::digest::binding;
use bytestring::ByteString;
use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_spec::{Capability, ErrorCode, Method};
use mcpact_translate::input::{
    Outcome, Round, ServerQuestion, SuspendOutcome, SuspendedCallId, UrlRequired,
    missing_capabilities_error, question_to_modern, url_required,
};
use mcpact_translate::tasks::CallMode;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::Object;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connection::unanswered::UnansweredQuestions;
use crate::exchange::Exchange;
use crate::suspended::call::Seat;
use crate::suspended::call::SuspendedCall;
use crate::tasks::waited::Begun;
use crate::tasks::waited::Started;
use crate::upstream::UpstreamServer;
use mcpact::connection::{Call, CallEvent, ServerNotification, ServerRequest, ServerResponse};

/// How long questions that come together are gathered.
const TOGETHER: Duration = Duration::from_millis(20);

/// A call that may be asked something, and its place in the line of those that may.
pub(crate) struct Open {
    pub(crate) exchange: Exchange,
    pub(crate) call: Call,
    /// Questions that came on another stream than the call's own.
    asked: mpsc::Receiver<ServerRequest>,
    /// What the client would have had to declare.
    pub(crate) missing: Vec<Capability>,
    /// What the server has asked; behind the call, which is taken back first.
    pub(crate) unanswered: UnansweredQuestions,
    /// Questions that came together, and until when more are waited for.
    gathered: Vec<ServerQuestion>,
    until: Option<Instant>,
    /// Whether whoever called has been sent away to think.
    pub(crate) is_parked: bool,
    /// The task whose result the call is, where the tool runs in no other way.
    started: Option<Started>,
}

impl UpstreamServer {
    pub(crate) async fn with_parking(
        self: &Arc<Self>,
        exchange: Exchange,
    ) -> Result<ByteString, ServeError> {
        let raw = &exchange.inbound.job.params;
        if raw.is_plain_call() {
            return self.call_and_park(exchange).await;
        }
        let params = Object::parse(raw).unwrap_or_default();
        match params.get_str("requestState") {
            Some(state) => {
                let state = state.into_owned();
                let responses = params.get_present("inputResponses").map(str::to_owned);
                Box::pin(self.resume(exchange, &state, responses.as_deref())).await
            }
            None => self.call_and_park(exchange).await,
        }
    }

    async fn call_and_park(
        self: &Arc<Self>,
        mut exchange: Exchange,
    ) -> Result<ByteString, ServeError> {
        let way = self.way(&exchange).await;
        if way == CallMode::Task {
            return Box::pin(self.call_as_task(exchange)).await;
        }
        take_turn(&mut exchange).await?;
        let params = exchange.params()?;
        if let Some(turn) = &mut exchange.turn {
            turn.begin();
        }
        let connection = Arc::clone(&exchange.connection);
        let mut asked = connection.askable.enter();
        let mut early = None;
        let (call, started) = match way {
            CallMode::Waited => match Box::pin(exchange.begin(&params)).await? {
                Begun::Waiting(call, started) => (call, Some(started)),
                Begun::Answered(reply) => {
                    if let Some(turn) = &mut exchange.turn {
                        turn.end();
                    }
                    return exchange.finished(&reply);
                }
            },
            CallMode::Plain | CallMode::Task => {
                let seen = async { early = asked.recv().await };
                (exchange.send_until(&params, seen).await?, None)
            }
        };
        if !Arc::ptr_eq(&connection, &exchange.connection) {
            asked = exchange.connection.askable.enter();
        }
        let mut open = Open {
            exchange,
            call,
            asked,
            missing: Vec::new(),
            unanswered: UnansweredQuestions::default(),
            gathered: Vec::new(),
            until: None,
            is_parked: false,
            started,
        };
        let mut early = early.map(CallEvent::Request);
        loop {
            let event = match early.take() {
                Some(early) => Some(early),
                None => open.event().await,
            };
            let questions = match open.take(event, &mut []).await {
                None => continue,
                Some(CallOutcome::Ended(reply)) => return self.conclude(&open, reply),
                Some(CallOutcome::Asked(questions)) => questions,
            };
            let id = new_id();
            let (revision, now) = (open.exchange.upstream(), self.clock.now());
            let binding = binding(&open.exchange.inbound);
            let parked = {
                let mut suspend_limits = self.suspended.suspend_limits();
                suspend_limits.limit_calls(self.shared.run().call_timeout);
                suspend_limits.suspend(id, binding, revision, questions, now)
            };
            if let Some(round) = self.begun(&mut open, parked).await {
                let asked = self.suspended.asked(&round)?;
                open.is_parked = true;
                SuspendedCall::start(self, id, open);
                return Ok(asked);
            }
        }
    }

    /// The round that begins; where there is no room, the server is answered at once.
    async fn begun(&self, open: &mut Open, parked: SuspendOutcome) -> Option<Round> {
        match parked {
            SuspendOutcome::Asked(round) => Some(round),
            SuspendOutcome::Held => None,
            SuspendOutcome::Full(answers) => {
                tracing::warn!("too many calls wait for input; the server gets no answers");
                open.unanswered.due(answers).tell().await;
                None
            }
        }
    }

    /// What the client gets for an answer of the server.
    fn conclude(
        &self,
        open: &Open,
        reply: Result<ServerResponse, ServeError>,
    ) -> Result<ByteString, ServeError> {
        let exchange = &open.exchange;
        let reply = reply?;
        let ServerResponse::Error(raw) = &reply else {
            return exchange.finished(&reply);
        };
        if code_of(raw) == Some(ErrorCode::UrlElicitationRequired.code()) {
            let pact = &exchange.inbound.job.pact;
            let ttl = self.settings.suspend_limits.ttl;
            return match url_required(raw, binding(&exchange.inbound), pact, ttl, self.clock.now())
            {
                UrlRequired::Ask {
                    ticket,
                    input_requests,
                } => self.suspended.sealed(&input_requests, &ticket.encode()),
                UrlRequired::Fail(error) => Err(error.into()),
            };
        }
        if open.missing.is_empty() {
            return exchange.finished(&reply);
        }
        Err(missing_capabilities_error(&open.missing, exchange.downstream()).into())
    }

    /// A modern client cannot be asked during anything but the three methods that say so.
    pub(crate) async fn asking_nobody(
        &self,
        mut exchange: Exchange,
    ) -> Result<ByteString, ServeError> {
        let params = exchange.params()?;
        let mut call = exchange.send(&params).await?;
        loop {
            match call.next().await {
                CallEvent::Notification(note) => {
                    exchange.inbound.tell(&note, &mut exchange.progress).await
                }
                CallEvent::Response(reply) => return exchange.finished(&reply),
                CallEvent::Failed(loss) => return Err(exchange.lost(&loss)),
                CallEvent::Request(ask) => {
                    exchange
                        .connection
                        .refuse_during(ask, exchange.inbound.job.method)
                        .await
                }
            }
        }
    }
}

/// What a call has come to.
pub(crate) enum CallOutcome {
    /// The server asks these, which the client can answer.
    Asked(Vec<ServerQuestion>),
    /// It is over.
    Ended(Result<ServerResponse, ServeError>),
}

impl Open {
    /// What happens next; none when no more questions come together with the first. Safe to drop at
    /// any time.
    async fn event(&mut self) -> Option<CallEvent> {
        let Self { call, asked, .. } = self;
        let next = async {
            tokio::select! {
                event = call.next() => event,
                Some(ask) = asked.recv() => CallEvent::Request(ask),
            }
        };
        let event = match self.until {
            None => Some(next.await),
            Some(until) => tokio::time::timeout_at(until, next).await.ok(),
        };
        if let (Some(CallEvent::Response(_) | CallEvent::Failed(_)), Some(turn)) =
            (&event, &mut self.exchange.turn)
        {
            turn.end();
        }
        event
    }

    /// Deals with it; `seats` are those who wait once the call is parked.
    async fn take(&mut self, event: Option<CallEvent>, seats: &mut [Seat]) -> Option<CallOutcome> {
        match event {
            None => {
                self.until = None;
                let gathered = std::mem::take(&mut self.gathered);
                // The server may have taken all of them back.
                return (!gathered.is_empty()).then_some(CallOutcome::Asked(gathered));
            }
            Some(CallEvent::Notification(note)) => self.hear(&note, seats).await,
            Some(CallEvent::Response(reply)) => {
                if let Some(started) = &mut self.started {
                    started.over();
                }
                return Some(CallOutcome::Ended(Ok(reply)));
            }
            Some(CallEvent::Failed(loss)) => {
                return Some(CallOutcome::Ended(Err(self.exchange.lost(&loss))));
            }
            Some(CallEvent::Request(ask)) => {
                self.exchange.connection.asked_during_call();
                if let Some(question) = self.raised(ask).await {
                    self.gathered.push(question);
                    self.until.get_or_insert_with(|| Instant::now() + TOGETHER);
                }
            }
        }
        None
    }

    async fn hear(&mut self, note: &ServerNotification, seats: &mut [Seat]) {
        if note.method == Method::ElicitationComplete {
            self.exchange.connection.complete(note);
        }
        if let Some(withdrawn) = note.cancelled_request() {
            self.gathered.retain(|question| question.id != withdrawn);
            self.unanswered.withdrawn(&withdrawn);
        }
        if self.is_parked {
            for seat in seats {
                seat.inbound.tell(note, &mut seat.progress).await;
            }
        } else {
            let Exchange {
                inbound, progress, ..
            } = &mut self.exchange;
            inbound.tell(note, progress).await;
        }
    }

    /// A question as the client reads it; what it cannot be asked, the server is told at once.
    async fn raised(&mut self, ask: ServerRequest) -> Option<ServerQuestion> {
        let connection = &self.exchange.connection;
        let method = match ask.method {
            Some(Method::Ping) => {
                ask.answer(&Outcome::Result("{}".into())).await;
                return None;
            }
            Some(method) => method,
            None => {
                connection.refuse(ask).await;
                return None;
            }
        };
        let pact = &self.exchange.inbound.job.pact;
        let ask = connection.stands_in(pact, ask, method).await?;
        match question_to_modern(method, Some(&ask.params), connection.revision(), pact) {
            Ok(_) if self.exchange.tells_another(&ask, method) => {
                self.exchange.connection.refuse_during(ask, None).await;
                None
            }
            Ok(request) => {
                let id = ask.id.clone();
                self.unanswered.keep(ask);
                Some(ServerQuestion {
                    id,
                    method,
                    request,
                })
            }
            Err(unasked) => {
                self.missing.extend(unasked.missing);
                let answer = Outcome::Error(unasked.answer.encode());
                ask.answer(&answer).await;
                None
            }
        }
    }
}

impl Exchange {
    /// The connection with which everything ends that its client is asked, if there is one: nobody else can answer, or
    /// the server's instance ends with it.
    pub(crate) fn connection(&self) -> Option<ClientKey> {
        let ClientIdentity {
            principal,
            key: mark,
        } = self.inbound.sink.identity();
        let has_own = || self.binding.pool().is_some_and(|pool| !pool.is_shared());
        let ends_with_it =
            matches!(mark, ClientKey::Connection(_)) && (principal.is_empty() || has_own());
        ends_with_it.then(|| mark.clone())
    }
}

/// Where a question does not say whose it is, only one call may be open that could have caused it.
pub(crate) async fn take_turn(exchange: &mut Exchange) -> Result<(), ServeError> {
    let connection = &exchange.connection;
    if let Some(pool) = exchange.binding.pool()
        && !connection.upstream.has_own_streams()
        && connection.may_ask()
    {
        let turn = pool.turn(&exchange.binding.user()).await;
        exchange.turn = Some(turn.map_err(ServeError::from)?);
    }
    Ok(())
}

fn new_id() -> SuspendedCallId {
    let mut random = [0; 16];
    // The seal needs randomness, too, and fails without it.
    let _ = getrandom::fill(&mut random);
    SuspendedCallId::new(random)
}

fn code_of(raw: &str) -> Option<i64> {
    ErrorBody::parse(raw).map(|body| body.code)
}
