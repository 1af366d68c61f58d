//! Questions of legacy servers, and the clients or defaults that answer them.

use crate::sync::lock;
use crate::tasks::same_era;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use mcpact::connection::{ServerNotification, ServerRequest};
use mcpact::server::backend::QuestionOutcome;
use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_engine::pact::Pact;
use mcpact_spec::{ErrorCode, Method, Side};
use mcpact_translate::input::{AttributionFailure, Outcome, ServerAnswer, without_undeclared};
use mcpact_translate::plan::without_progress_token;
use mcpact_translate::shape::{ShapeError, adapt_client_result, adapt_params};
use mcpact_wire::id::Id;
use mcpact_wire::model::error;
use tokio::sync::{mpsc, oneshot};

use crate::connection::UpstreamConnection;
use crate::connection::ownership::QuestionContext;
use crate::downstream::sink::ClientSink;

/// Time limit for the answer of a user. A call that ends earlier cancels its questions.
pub(crate) const ANSWER_TIMEOUT: RequestTimeout = RequestTimeout {
    timeout: Duration::from_secs(600),
    maximum: Duration::from_secs(600),
    on_progress: OnProgress::Extend,
};

/// Maximum number of queued questions per call; more are refused.
const MAX_QUEUED: usize = 16;

/// Calls of modern clients on one connection that may receive questions.
///
/// A server on HTTP may send a question on the stream of its call or on a separate stream. A question on a separate
/// stream belongs to the only call in flight; with several calls it has no known owner.
#[derive(Debug, Default)]
pub(crate) struct AskableCalls(Mutex<Vec<mpsc::Sender<ServerRequest>>>);

impl AskableCalls {
    /// Returns the calls that have not ended.
    fn calls(&self) -> MutexGuard<'_, Vec<mpsc::Sender<ServerRequest>>> {
        let mut calls = lock(&self.0);
        calls.retain(|call| !call.is_closed());
        calls
    }

    /// Registers a call until the returned receiver of its questions is dropped.
    pub(crate) fn enter(&self) -> mpsc::Receiver<ServerRequest> {
        let (sender, questions) = mpsc::channel(MAX_QUEUED);
        self.calls().push(sender);
        questions
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls().is_empty()
    }

    /// Sends a question to the only call, or returns it if the number of calls is not one or the queue is full.
    fn send_to_only_call(&self, ask: ServerRequest) -> Option<ServerRequest> {
        match self.calls().as_slice() {
            [only] => only.try_send(ask).err().map(|full| full.into_inner()),
            _ => Some(ask),
        }
    }
}

/// Questions that modern clients received in a result and have not answered yet. Dropping them refuses them.
#[derive(Debug, Default)]
pub(crate) struct UnansweredQuestions(Vec<ServerRequest>);

impl UnansweredQuestions {
    pub(crate) fn keep(&mut self, ask: ServerRequest) {
        self.0.push(ask);
    }

    fn take(&mut self, id: &Id) -> Option<ServerRequest> {
        let at = self.0.iter().position(|ask| ask.id == *id)?;
        Some(self.0.remove(at))
    }

    /// Removes a question that the server has cancelled.
    pub(crate) fn withdrawn(&mut self, id: &Id) {
        if let Some(ask) = self.take(id) {
            ask.cancelled();
        }
    }

    /// Removes the answered questions. The returned future sends the answers; answers to cancelled questions are
    /// dropped.
    pub(crate) fn answer(
        &mut self,
        answers: Vec<ServerAnswer>,
    ) -> impl Future<Output = ()> + use<> {
        let answers = answers.into_iter();
        let due: Vec<_> = answers
            .filter_map(|ServerAnswer { id, outcome }| Some((self.take(&id)?, outcome)))
            .collect();
        async move {
            for (ask, outcome) in due {
                ask.answer(&outcome).await;
            }
        }
    }
}

/// Questions in flight to legacy clients on one connection, by the server's request ids.
#[derive(Debug, Default)]
pub(crate) struct QuestionRegistry(Mutex<HashMap<Id, oneshot::Sender<()>>>);

impl QuestionRegistry {
    /// Registers a question until the returned receiver is dropped. It receives a message if the server cancels.
    fn enter(&self, id: Id) -> oneshot::Receiver<()> {
        let (sender, cancelled) = oneshot::channel();
        let mut questions = lock(&self.0);
        questions.retain(|_, question| !question.is_closed());
        questions.insert(id, sender);
        cancelled
    }

    /// Cancels the question that a notification of the server names.
    pub(crate) fn withdraw(&self, note: &ServerNotification) {
        let question = note.cancelled_request();
        if let Some(asking) = question.and_then(|id| lock(&self.0).remove(&id)) {
            let _ = asking.send(());
        }
    }
}

/// Questions of a legacy server to a legacy client during one call. Dropping them refuses the open ones.
#[derive(Default)]
pub(crate) struct CallQuestions {
    open: FuturesUnordered<BoxFuture<'static, ()>>,
    /// One per question, closed when the question was sent.
    unsent: Vec<oneshot::Receiver<()>>,
}

impl CallQuestions {
    /// Adds a question for the client; [`answered`](Self::answered) drives it.
    pub(crate) fn put(
        &mut self,
        connection: &Arc<UpstreamConnection>,
        sink: &ClientSink,
        ask: ServerRequest,
        method: Method,
    ) {
        let (connection, sink) = (Arc::clone(connection), sink.clone());
        let (sending, sent) = oneshot::channel();
        self.unsent.push(sent);
        let context = connection.question_context(&ask);
        let asking = async move {
            connection
                .forward_to(&sink, ask, method, context, Some(sending))
                .await;
        };
        self.open.push(Box::pin(asking));
    }

    /// Waits until a question is answered; returns `None` if none is open. Cancel-safe.
    pub(crate) async fn answered(&mut self) -> Option<()> {
        self.open.next().await
    }

    /// Continues the open questions after the response to their call, if the session belongs to this client alone.
    /// Otherwise a client might answer the question of another, so the questions are refused.
    pub(crate) async fn outlive_call(mut self, connection: &UpstreamConnection, sink: &ClientSink) {
        let is_own = |owner: ClientSink| sink.is(&owner.downgrade());
        let may_go_on =
            || connection.only_client().is_some_and(is_own) && connection.claim_for(sink);
        if self.open.is_empty() || !may_go_on() {
            return;
        }
        // The client reads nothing on the stream of a call after its response.
        for mut sent in std::mem::take(&mut self.unsent) {
            loop {
                tokio::select! {
                    biased;
                    Some(()) = self.open.next() => {}
                    _ = &mut sent => break,
                }
            }
        }
        tokio::spawn(async move { while self.answered().await.is_some() {} });
    }
}

impl UpstreamConnection {
    /// Refuses a question with an unknown method.
    pub(crate) async fn refuse(&self, ask: ServerRequest) {
        let answer = error::encode(ErrorCode::MethodNotFound.code(), "Method not found", None);
        ask.answer(&Outcome::Error(answer)).await;
    }

    /// Answers a question that belongs to no call, or to a call that cannot carry one, by default or with an error.
    pub(crate) async fn refuse_during(&self, ask: ServerRequest, method: Option<Method>) {
        let orphan = method.map_or(AttributionFailure::NoCall, AttributionFailure::CannotAsk);
        let outcome = self.answer_unless(&ask, orphan, self.declared);
        ask.answer(&outcome).await;
    }

    /// Answers a question about a shared list by default, whatever the clients declare.
    pub(crate) async fn answer_for_shared_list(&self, ask: ServerRequest) {
        let nothing = CapabilitySet::empty(Side::Client).declared();
        let outcome = self.answer_unless(&ask, AttributionFailure::NoCall, nothing);
        ask.answer(&outcome).await;
    }

    /// Returns the default answer, or an error if there is none or the clients declare that they can answer.
    fn answer_unless(
        &self,
        ask: &ServerRequest,
        orphan: AttributionFailure,
        declared: CapabilityBits,
    ) -> Outcome {
        let default_answers = |method| {
            self.default_answers
                .answer_unless_declared(declared, method, self.revision())
        };
        let refused = || Outcome::Error(orphan.answer(self.revision()).encode());
        ask.method.and_then(default_answers).unwrap_or_else(refused)
    }

    /// Answers a question by default if the client cannot answer it; otherwise returns it.
    pub(crate) async fn answer_by_default(
        &self,
        client: &Pact,
        ask: ServerRequest,
        method: Method,
    ) -> Option<ServerRequest> {
        match self.answer_for(client, &ask, method) {
            Some(outcome) => {
                ask.answer(&outcome).await;
                None
            }
            None => Some(ask),
        }
    }

    fn answer_for(&self, client: &Pact, ask: &ServerRequest, method: Method) -> Option<Outcome> {
        let answers = &self.default_answers;
        let outcome = answers.answer_for(client, method, &ask.params)?;
        tracing::debug!(%method, "question answered with a default: the client does not support it");
        Some(outcome)
    }

    /// Dispatches a question that names no call: to its task, to the client that owns the session, or to the only
    /// call in flight. Servers may request roots before the client has finished its own handshake.
    pub(crate) fn dispatch_question(self: &Arc<Self>, ask: ServerRequest) {
        let Some(mut ask) = self.subscribers.defer_question(ask) else {
            return;
        };
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(mapping) = connection.mapping.upgrade()
                && let Some(task) = mapping.task_of(&connection, &ask)
            {
                return mapping.asked(&connection, &task, ask).await;
            }
            if let Some((sink, shown)) = same_era::asked_for_task(&connection, &ask)
                && let Some(method) = ask.method
            {
                ask.params = shown;
                return connection
                    .forward_to(&sink, ask, method, QuestionContext::Call, None)
                    .await;
            }
            // A client's answer must not become part of a list that other clients see.
            if connection
                .shared_lists
                .explains_question(|| connection.running.calls())
            {
                return connection.answer_for_shared_list(ask).await;
            }
            match (connection.only_client(), ask.method) {
                (Some(sink), Some(method)) => {
                    let context = QuestionContext::Outside;
                    connection
                        .forward_to(&sink, ask, method, context, None)
                        .await;
                }
                _ => {
                    let is_only_call = connection.running.calls() <= 1;
                    let unsent = match is_only_call {
                        true => connection.askable.send_to_only_call(ask),
                        false => Some(ask),
                    };
                    if let Some(ask) = unsent {
                        connection.refuse_during(ask, None).await;
                    }
                }
            }
        });
    }

    /// Records a question during a call. Without a stream per call, a shared list may have caused it.
    pub(crate) fn asked_during_call(&self) {
        if !self.upstream.has_own_streams() {
            self.shared_lists.doubt();
        }
    }

    /// Sends a question of a legacy server to a legacy client and returns the answer to the server, unless the server
    /// cancels the question. `sending` is dropped once the question was sent.
    async fn forward_to(
        &self,
        sink: &ClientSink,
        ask: ServerRequest,
        method: Method,
        context: QuestionContext,
        sending: Option<oneshot::Sender<()>>,
    ) {
        let cancelled = self.question_registry.enter(ask.id.clone());
        tokio::select! {
            biased;
            Ok(()) = cancelled => ask.cancelled(),
            outcome = self.ask_client(sink, &ask, method, context, sending) => {
                ask.answer(&outcome).await;
            }
        }
    }

    async fn ask_client(
        &self,
        sink: &ClientSink,
        ask: &ServerRequest,
        method: Method,
        context: QuestionContext,
        sending: Option<oneshot::Sender<()>>,
    ) -> Outcome {
        let pact = sink.pact();
        let default_answer = |client: &Pact| self.answer_for(client, ask, method);
        if let Some(outcome) = pact.as_deref().and_then(default_answer) {
            return outcome;
        }
        if !self.may_ask_client(sink, context, method) {
            return self.answer_unless(ask, AttributionFailure::NoCall, self.declared);
        }
        // The client sends no progress for a question, so the token is removed.
        let adapted = |raw: &str| {
            let params = adapt_params(method, raw, sink.revision())?;
            let params = match &pact {
                Some(client) => without_undeclared(client, method, params)?,
                None => params,
            };
            Ok(params.into_owned())
        };
        let params = match without_progress_token(&ask.params).and_then(|raw| adapted(&raw)) {
            Ok(params) => params,
            Err(fault) => return does_not_fit(ErrorCode::InvalidParams, "the question", &fault),
        };
        let put = sink.send_question(method, &params, ANSWER_TIMEOUT).await;
        drop(sending);
        let answer = match put {
            Ok(question) => question.answer().await,
            Err(failure) => failure,
        };
        match answer {
            QuestionOutcome::Result(raw) => adapt_client_result(method, &raw, self.revision())
                .map(Cow::into_owned)
                .map_or_else(
                    |fault| does_not_fit(ErrorCode::InternalError, "the client's answer", &fault),
                    Outcome::Result,
                ),
            QuestionOutcome::Error(raw) => Outcome::Error(raw),
            QuestionOutcome::Lost(why) => Outcome::Error(error::encode(-32603, why, None)),
            QuestionOutcome::Refused(why) => Outcome::Error(error::encode(-32601, &why, None)),
        }
    }
}

fn does_not_fit(code: ErrorCode, what: &str, fault: &ShapeError) -> Outcome {
    let why = format!("{what} cannot be translated: {fault}");
    Outcome::Error(error::encode(code.code(), &why, None))
}
