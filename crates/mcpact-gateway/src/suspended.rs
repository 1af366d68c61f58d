//! Suspended calls: modern clients in front of a legacy server that sends questions before it responds.
//!
//! The call to the server stays open in a background job while the client holds a sealed state.
//! [`SuspendedCalls`](mcpact_translate::input::SuspendedCalls) validates the client's answers; the background job
//! ([`SuspendedCall`]) waits for them.

pub(crate) mod call;
pub(crate) mod digest;
pub(crate) mod modern;
pub(crate) mod registry;
pub(crate) mod resume;

use std::sync::Arc;
use std::time::Duration;

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

use mcpact::connection::{Call, CallEvent, ServerNotification, ServerRequest, ServerResponse};

use crate::connection::questions::UnansweredQuestions;
use crate::error::ServeError;
use crate::exchange::Exchange;
use crate::suspended::call::{Seat, SuspendedCall};
use crate::suspended::digest::binding;
use crate::tasks::waited::{Begun, Started};
use crate::tasks::{mapped, tool_support, waited};
use crate::upstream::UpstreamServer;

/// Time window in which questions are collected into one round.
const TOGETHER: Duration = Duration::from_millis(20);

/// Open call that may cause questions.
pub(crate) struct Open {
    pub(crate) exchange: Exchange,
    pub(crate) call: Call,
    /// Questions that arrived on a stream other than the call's own.
    asked: mpsc::Receiver<ServerRequest>,
    /// Capabilities that the client would have had to declare.
    pub(crate) missing: Vec<Capability>,
    /// Questions of the server. Declared after the call, because the call must be cancelled first.
    pub(crate) unanswered: UnansweredQuestions,
    /// Questions collected so far, and the end of the time window.
    gathered: Vec<ServerQuestion>,
    until: Option<Instant>,
    /// True once the original request was answered with a request for input.
    pub(crate) is_parked: bool,
    /// Task with the result of the call, if the tool runs only as a task.
    started: Option<Started>,
}

pub(crate) async fn with_parking(
    server: &Arc<UpstreamServer>,
    exchange: Exchange,
) -> Result<ByteString, ServeError> {
    let raw = &exchange.inbound.job.params;
    if raw.is_plain_call() {
        return call_and_park(server, exchange).await;
    }
    let params = Object::parse(raw).unwrap_or_default();
    match params.get_str("requestState") {
        Some(state) => {
            let state = state.into_owned();
            let responses = params.get_present("inputResponses").map(str::to_owned);
            Box::pin(resume::resume(
                server,
                exchange,
                &state,
                responses.as_deref(),
            ))
            .await
        }
        None => call_and_park(server, exchange).await,
    }
}

async fn call_and_park(
    server: &Arc<UpstreamServer>,
    mut exchange: Exchange,
) -> Result<ByteString, ServeError> {
    let way = tool_support::way(server, &exchange).await;
    if way == CallMode::Task {
        return Box::pin(mapped::call_as_task(server, exchange)).await;
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
        CallMode::Waited => match Box::pin(waited::begin(&mut exchange, &params)).await? {
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
            Some(CallOutcome::Ended(reply)) => return conclude(server, &open, reply),
            Some(CallOutcome::Asked(questions)) => questions,
        };
        let id = new_id();
        let (revision, now) = (open.exchange.upstream(), server.clock.now());
        let binding = binding(&open.exchange.inbound);
        let parked = {
            let mut suspend_limits = server.suspended.suspend_limits();
            suspend_limits.limit_calls(server.shared.run().call_timeout);
            suspend_limits.suspend(id, binding, revision, questions, now)
        };
        if let Some(round) = begun(&mut open, parked).await {
            let asked = server.suspended.asked(&round)?;
            open.is_parked = true;
            SuspendedCall::start(server, id, open);
            return Ok(asked);
        }
    }
}

/// Returns the new round. If the limit is reached, the server gets its answers at once, without the client.
async fn begun(open: &mut Open, parked: SuspendOutcome) -> Option<Round> {
    match parked {
        SuspendOutcome::Asked(round) => Some(round),
        SuspendOutcome::Held => None,
        SuspendOutcome::Full(answers) => {
            tracing::warn!("too many calls wait for input; the server gets no answers");
            open.unanswered.answer(answers).await;
            None
        }
    }
}

/// Translates the final response of the server for the client.
fn conclude(
    server: &UpstreamServer,
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
        let ttl = server.settings.suspend_limits.ttl;
        return match url_required(
            raw,
            binding(&exchange.inbound),
            pact,
            ttl,
            server.clock.now(),
        ) {
            UrlRequired::Ask {
                ticket,
                input_requests,
            } => server.suspended.sealed(&input_requests, &ticket.encode()),
            UrlRequired::Fail(error) => Err(error.into()),
        };
    }
    if open.missing.is_empty() {
        return exchange.finished(&reply);
    }
    Err(missing_capabilities_error(&open.missing, exchange.downstream()).into())
}

/// Runs a method that allows no input requests: questions of the server are refused.
pub(crate) async fn without_questions(mut exchange: Exchange) -> Result<ByteString, ServeError> {
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

/// Progress of an open call.
pub(crate) enum CallOutcome {
    /// The server sent questions that the client can answer.
    Asked(Vec<ServerQuestion>),
    /// The call has ended.
    Ended(Result<ServerResponse, ServeError>),
}

impl Open {
    /// Returns the next event; `None` at the end of the time window for questions. Cancel-safe.
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

    /// Processes an event; `seats` are the requests that wait for a suspended call.
    async fn take(&mut self, event: Option<CallEvent>, seats: &mut [Seat]) -> Option<CallOutcome> {
        match event {
            None => {
                self.until = None;
                let gathered = std::mem::take(&mut self.gathered);
                // The server may have withdrawn all of them.
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

    /// Translates a question for the client. Questions that the client does not support are answered with an error at
    /// once.
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
        let ask = connection.answer_by_default(pact, ask, method).await?;
        match question_to_modern(method, Some(&ask.params), connection.revision(), pact) {
            Ok(_) if self.exchange.is_owned_by_other(&ask, method) => {
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

/// Returns the client connection that ends all questions of the call when it closes. This applies if no other
/// connection can answer, or if the server's instance ends with the connection.
pub(crate) fn connection(exchange: &Exchange) -> Option<ClientKey> {
    let ClientIdentity {
        principal,
        key: mark,
    } = exchange.inbound.sink.identity();
    let has_own = || {
        exchange
            .binding
            .pool()
            .is_some_and(|pool| !pool.is_shared())
    };
    let ends_with_it =
        matches!(mark, ClientKey::Connection(_)) && (principal.is_empty() || has_own());
    ends_with_it.then(|| mark.clone())
}

/// Waits for exclusive use of a connection. Without a stream per call, a question does not name its call, so only one
/// possible call may be open.
pub(crate) async fn take_turn(exchange: &mut Exchange) -> Result<(), ServeError> {
    let connection = &exchange.connection;
    if let Some(pool) = exchange.binding.pool()
        && !connection.upstream.has_own_streams()
        && connection.may_ask()
    {
        let turn = pool.question_permit(&exchange.binding.user()).await;
        exchange.turn = Some(turn.map_err(ServeError::from)?);
    }
    Ok(())
}

fn new_id() -> SuspendedCallId {
    let mut random = [0; 16];
    // Sealing needs randomness, too, and fails without it.
    let _ = getrandom::fill(&mut random);
    SuspendedCallId::new(random)
}

fn code_of(raw: &str) -> Option<i64> {
    ErrorBody::parse(raw).map(|body| body.code)
}
