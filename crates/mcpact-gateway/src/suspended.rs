//! Suspended calls: modern clients in front of a legacy server that sends questions before it responds.
//!
//! The call to the server stays open in a background job while the client holds a sealed state.
//! [`SuspendedCalls`](mcpact_translate::input::SuspendedCalls) validates the client's answers; the background job
//! ([`SuspendedCall`]) waits for them.

pub(crate) mod bound_state;
pub(crate) mod call;
pub(crate) mod modern;
pub(crate) mod registry;
pub(crate) mod resume;

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::{ClientIdentity, ClientKey};
use mcpact_spec::{Capability, ErrorCode, Method};
use mcpact_translate::input::{
    Binding, Outcome, Round, ServerQuestion, SuspendOutcome, SuspendedCallId, UrlRequired,
    missing_capabilities_error, question_to_modern, url_required,
};
use mcpact_translate::lifecycle::canonical;
use mcpact_translate::tasks::CallMode;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::Instant;

use mcpact::connection::{
    Call, CallEvent, RawResult, ServerNotification, ServerRequest, ServerResponse,
};

use crate::connection::questions::UnansweredQuestions;
use crate::error::ServeError;
use crate::exchange::{Exchange, Inbound};
use crate::suspended::call::{SuspendedCall, Waiter};
use crate::tasks::waiting::{SentCall, StartedTask};
use crate::tasks::{mapped, waiting};
use crate::upstream::UpstreamServer;

/// Time window in which questions are collected into one round.
const COLLECTION_WINDOW: Duration = Duration::from_millis(20);

/// Open call that may cause questions.
pub(crate) struct OpenCall {
    pub(crate) exchange: Exchange,
    pub(crate) call: Call,
    /// Questions that arrived on a stream other than the call's own.
    session_questions: mpsc::Receiver<ServerRequest>,
    /// Capabilities that the client would have had to declare.
    pub(crate) missing: Vec<Capability>,
    /// Questions of the server. Declared after the call, because the call must be cancelled first.
    pub(crate) unanswered: UnansweredQuestions,
    /// Questions collected so far, and the end of the time window.
    collected: Vec<ServerQuestion>,
    window_end: Option<Instant>,
    /// Task with the result of the call, if the tool runs only as a task.
    task: Option<StartedTask>,
}

/// Runs a call that may be suspended, or resumes a suspended one.
pub(crate) async fn serve(
    server: &Arc<UpstreamServer>,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let raw = exchange.inbound.job.params.clone();
    if !raw.is_plain_call()
        && let Ok(params) = Object::parse(&raw)
        && let Some(state) = params.get_str("requestState")
    {
        let responses = params.get_present("inputResponses");
        return Box::pin(resume::resume(server, exchange, &state, responses)).await;
    }
    call(server, exchange).await
}

/// Makes a call. Suspends it when the server asks questions.
async fn call(
    server: &Arc<UpstreamServer>,
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let mode = waiting::call_mode(server, &exchange).await;
    if mode == CallMode::Task {
        return Box::pin(mapped::call_as_task(server, exchange)).await;
    }
    take_turn(&mut exchange).await?;
    let params = exchange.params()?;
    if let Some(turn) = &mut exchange.turn {
        turn.is_running = true;
    }
    let connection = Arc::clone(&exchange.connection);
    let mut session_questions = connection.askable.enter();
    let mut early = None;
    let (call, task) = match mode {
        CallMode::Waited => match Box::pin(waiting::begin(&mut exchange, &params)).await? {
            SentCall::Waiting(call, task) => (call, Some(task)),
            SentCall::Answered(reply) => {
                if let Some(turn) = &mut exchange.turn {
                    turn.is_running = false;
                }
                return exchange.finished(&reply);
            }
        },
        CallMode::Plain | CallMode::Task => {
            let delivered = async { early = session_questions.recv().await };
            (exchange.send_until(&params, delivered).await?, None)
        }
    };
    if !Arc::ptr_eq(&connection, &exchange.connection) {
        session_questions = exchange.connection.askable.enter();
    }
    let mut open = OpenCall {
        exchange,
        call,
        session_questions,
        missing: Vec::new(),
        unanswered: UnansweredQuestions::default(),
        collected: Vec::new(),
        window_end: None,
        task,
    };
    let mut early = early.map(CallEvent::Request);
    loop {
        let event = match early.take() {
            Some(early) => Some(early),
            None => open.event().await,
        };
        let questions = match open.process(event, None).await {
            None => continue,
            Some(CallOutcome::Ended(reply)) => return conclude(server, &open, reply),
            Some(CallOutcome::Asked(questions)) => questions,
        };
        let mut random = [0; 16];
        // Sealing needs randomness, too, and fails without it.
        let _ = getrandom::fill(&mut random);
        let id = SuspendedCallId::new(random);
        let (revision, now) = (open.exchange.upstream(), server.clock.now());
        let binding = binding(&open.exchange.inbound);
        let outcome = {
            let mut calls = server.suspended.calls();
            calls.limit_calls(server.shared.run().call_timeout);
            calls.suspend(id, binding, revision, questions, now)
        };
        if let Some(round) = open.round(outcome).await {
            let request = server.suspended.input_request(&round)?;
            SuspendedCall::start(server, id, open);
            return Ok(request);
        }
    }
}

/// Translates the final response of the server for the client.
fn conclude(
    server: &UpstreamServer,
    open: &OpenCall,
    reply: Result<ServerResponse, ServeError>,
) -> Result<RawResult, ServeError> {
    let exchange = &open.exchange;
    let reply = reply?;
    let ServerResponse::Error(raw) = &reply else {
        return exchange.finished(&reply);
    };
    let code = ErrorBody::parse(raw).map(|body| body.code);
    if code == Some(ErrorCode::UrlElicitationRequired.code()) {
        let pact = &exchange.inbound.job.pact;
        let (ttl, now) = (server.settings.suspend_limits.ttl, server.clock.now());
        return match url_required(raw, binding(&exchange.inbound), pact, ttl, now) {
            UrlRequired::Ask {
                ticket,
                input_requests,
            } => server
                .suspended
                .sealed_request(&input_requests, &ticket.encode()),
            UrlRequired::Fail(error) => Err(error.into()),
        };
    }
    if open.missing.is_empty() {
        return exchange.finished(&reply);
    }
    Err(missing_capabilities_error(&open.missing, exchange.downstream()).into())
}

/// Runs a method that allows no input requests.
pub(crate) async fn serve_without_questions(
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let (params, method) = (exchange.params()?, exchange.inbound.job.method);
    let reply = send_without_questions(&mut exchange, &params, method).await?;
    exchange.finished(&reply)
}

/// Sends a request and waits for the response; refuses questions of the server.
pub(crate) async fn send_without_questions(
    exchange: &mut Exchange,
    params: &str,
    method: Option<Method>,
) -> Result<ServerResponse, ServeError> {
    let mut call = exchange.send(params).await?;
    loop {
        match call.next().await {
            CallEvent::Notification(note) => {
                exchange.inbound.notify(&note, &mut exchange.progress).await
            }
            CallEvent::Response(reply) => return Ok(reply),
            CallEvent::Failed(loss) => return Err(exchange.lost(&loss)),
            CallEvent::Request(ask) => exchange.connection.refuse_during(ask, method).await,
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

impl OpenCall {
    /// Returns the next event; `None` at the end of the time window for questions. Cancel-safe.
    async fn event(&mut self) -> Option<CallEvent> {
        let next = async {
            tokio::select! {
                event = self.call.next() => event,
                Some(ask) = self.session_questions.recv() => CallEvent::Request(ask),
            }
        };
        let event = match self.window_end {
            None => Some(next.await),
            Some(end) => tokio::time::timeout_at(end, next).await.ok(),
        };
        if let (Some(CallEvent::Response(_) | CallEvent::Failed(_)), Some(turn)) =
            (&event, &mut self.exchange.turn)
        {
            turn.is_running = false;
        }
        event
    }

    /// Returns the new round. If the limit is reached, the server gets its answers at once, without the client.
    async fn round(&mut self, outcome: SuspendOutcome) -> Option<Round> {
        match outcome {
            SuspendOutcome::Asked(round) => Some(round),
            SuspendOutcome::Held => None,
            SuspendOutcome::Full(answers) => {
                tracing::warn!("too many calls wait for input; a question was refused");
                self.unanswered.answer(answers).await;
                None
            }
        }
    }

    /// Processes an event; `waiters` are the requests that wait for the call if it is suspended.
    async fn process(
        &mut self,
        event: Option<CallEvent>,
        waiters: Option<&mut [Waiter]>,
    ) -> Option<CallOutcome> {
        match event {
            None => {
                self.window_end = None;
                let collected = std::mem::take(&mut self.collected);
                // The server may have withdrawn all of them.
                return (!collected.is_empty()).then_some(CallOutcome::Asked(collected));
            }
            Some(CallEvent::Notification(note)) => self.forward(&note, waiters).await,
            Some(CallEvent::Response(reply)) => {
                if let Some(task) = &mut self.task {
                    task.set_ended();
                }
                return Some(CallOutcome::Ended(Ok(reply)));
            }
            Some(CallEvent::Failed(loss)) => {
                return Some(CallOutcome::Ended(Err(self.exchange.lost(&loss))));
            }
            Some(CallEvent::Request(ask)) => {
                self.exchange.connection.asked_during_call();
                if let Some(question) = self.translate(ask).await {
                    self.collected.push(question);
                    self.window_end
                        .get_or_insert_with(|| Instant::now() + COLLECTION_WINDOW);
                }
            }
        }
        None
    }

    async fn forward(&mut self, note: &ServerNotification, waiters: Option<&mut [Waiter]>) {
        if note.method == Method::ElicitationComplete {
            self.exchange.connection.complete(note);
        }
        if let Some(withdrawn) = note.cancelled_request() {
            self.collected.retain(|question| question.id != withdrawn);
            self.unanswered.withdrawn(&withdrawn);
        }
        let Some(waiters) = waiters else {
            let exchange = &mut self.exchange;
            return exchange.inbound.notify(note, &mut exchange.progress).await;
        };
        for waiter in waiters {
            waiter.inbound.notify(note, &mut waiter.progress).await;
        }
    }

    /// Translates a question for the client. Questions that the client does not support are answered with an error at
    /// once.
    async fn translate(&mut self, ask: ServerRequest) -> Option<ServerQuestion> {
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
            Err(refused) => {
                self.missing.extend(refused.missing);
                let answer = Outcome::Error(refused.answer.encode());
                ask.answer(&answer).await;
                None
            }
        }
    }
}

/// Returns the client connection that ends all questions of the call when it closes. This applies if no other
/// connection can answer, or if the server's instance ends with the connection.
pub(crate) fn required_connection(exchange: &Exchange) -> Option<ClientKey> {
    let ClientIdentity { principal, key } = exchange.inbound.sink.identity();
    let pool = exchange.binding.pool();
    let has_own = pool.is_some_and(|pool| !pool.is_shared());
    let is_required =
        matches!(key, ClientKey::Connection(_)) && (principal.is_anonymous() || has_own);
    is_required.then(|| key.clone())
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

/// Returns the binding of a call. The key of a principal is part of the call digest only: the limit of calls holds for
/// all its keys together.
pub(crate) fn binding(inbound: &Inbound) -> Binding {
    let Inbound { job, sink } = inbound;
    let params = Object::parse(&job.params).unwrap_or_default();
    let stable = params
        .iter()
        .filter(|(key, _)| !matches!(*key, "inputResponses" | "requestState" | "_meta"))
        .fold(ObjectWriter::new(), |out, (key, raw)| out.raw(key, raw))
        .finish();
    // The parameters are a JSON object, so the start of the owner is unambiguous.
    let about = Sha256::new_with_prefix(canonical(&stable)).chain_update(sink.owner());
    Binding {
        principal: Sha256::digest(sink.identity().limited_owner()).into(),
        method: job.method.unwrap_or(Method::ToolsCall),
        params: about.finalize().into(),
    }
}
