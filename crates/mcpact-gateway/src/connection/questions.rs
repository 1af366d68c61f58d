//! What a legacy server asks, and who answers it.

use crate::sync::lock;
use crate::tasks::kept;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::QuestionOutcome;
use mcpact_engine::capability::{CapabilityBits, CapabilitySet};
use mcpact_engine::pact::Pact;
use mcpact_spec::{ErrorCode, Method, Side};
use mcpact_translate::input::{AttributionFailure, Outcome};
use mcpact_wire::id::Id;
use mcpact_wire::model::error;
use tokio::sync::oneshot;

use crate::connection::UpstreamConnection;
use crate::connection::ownership::QuestionContext;
use crate::connection::shared_lists::QuestionOrigin;
use crate::connection::unasked;
use crate::connection::unasked::PATIENCE;
use crate::downstream::sink::ClientSink;
use crate::supervisor::{SharingPolicy, sharing_policy};
use mcpact::connection::{ServerNotification, ServerRequest};

/// What legacy clients are being asked on one connection, by the server's ids.
#[derive(Debug, Default)]
pub(crate) struct QuestionRegistry(Mutex<HashMap<Id, AbortHandle>>);

impl QuestionRegistry {
    fn all(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        lock(&self.0)
    }

    /// Takes a question back, if the server says so.
    pub(crate) fn withdraw(&self, note: &ServerNotification) {
        let question = note.cancelled_request();
        if let Some(asking) = question.and_then(|id| self.all().remove(&id)) {
            asking.abort();
        }
    }
}

/// A question that can be taken back.
struct Listed<'a> {
    all: &'a QuestionRegistry,
    id: Id,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.all.all().remove(&self.id);
    }
}

/// What a legacy server asks a legacy client during one call. Dropped with the call, it refuses what is open.
#[derive(Default)]
pub(crate) struct CallQuestions {
    open: FuturesUnordered<BoxFuture<'static, ()>>,
    /// One for each, closed when its question is on its way.
    unsent: Vec<oneshot::Receiver<()>>,
}

impl CallQuestions {
    /// Puts a question to the client, as far as [`answered`](Self::answered) is awaited.
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
        let during = ClientQuestion {
            occasion: connection.occasion(&ask),
            sending: Some(sending),
        };
        let asking = async move { connection.put_to(&sink, ask, method, during).await };
        self.open.push(Box::pin(asking));
    }

    /// Waits until a question is answered; none when none is open. Safe to drop at any time.
    pub(crate) async fn answered(&mut self) -> Option<()> {
        self.open.next().await
    }

    /// The server has answered the call, and asks on: it was about something else, or nothing that it waits
    /// for. Whoever has the session to itself is still asked; others might answer for somebody else.
    pub(crate) async fn outlive_call(mut self, connection: &UpstreamConnection, sink: &ClientSink) {
        let is_own = |owner: ClientSink| sink.is(&owner.downgrade());
        let may_go_on =
            || connection.confidant().is_some_and(is_own) && connection.becomes_of(sink);
        if self.open.is_empty() || !may_go_on() {
            return;
        }
        // On the stream of a call, nothing is read behind its answer.
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

/// How a client is asked something.
struct ClientQuestion {
    occasion: QuestionContext,
    /// Dropped when the question is on its way.
    sending: Option<oneshot::Sender<()>>,
}

impl From<QuestionContext> for ClientQuestion {
    fn from(occasion: QuestionContext) -> Self {
        Self {
            occasion,
            sending: None,
        }
    }
}

impl UpstreamConnection {
    /// Nobody knows what is asked here.
    pub(crate) async fn refuse(&self, ask: ServerRequest) {
        let answer = error::encode(ErrorCode::MethodNotFound.code(), "Method not found", None);
        ask.answer(&Outcome::Error(answer)).await;
    }

    /// A question during a call that cannot carry one.
    pub(crate) async fn refuse_during(&self, ask: ServerRequest, method: Option<Method>) {
        let orphan = method.map_or(AttributionFailure::NoCall, AttributionFailure::CannotAsk);
        self.answer_orphan(ask, orphan).await;
    }

    /// A question that can be put to nobody.
    async fn answer_orphan(&self, ask: ServerRequest, orphan: AttributionFailure) {
        let outcome = self.answer_unless(&ask, orphan, self.declared);
        ask.answer(&outcome).await;
    }

    /// A question for something that many are shown: whoever stands in answers, whatever clients declare.
    pub(crate) async fn answer_for_nobody(&self, ask: ServerRequest) {
        let nothing = CapabilitySet::empty(Side::Client).declared();
        let outcome = self.answer_unless(&ask, AttributionFailure::NoCall, nothing);
        ask.answer(&outcome).await;
    }

    /// Whoever stands in answers, unless those can be asked who are meant.
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

    /// Answers a question in the place of a client that cannot be asked it; gives it back if that was not to be
    /// done.
    pub(crate) async fn stands_in(
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
        let outcome = self
            .default_answers
            .answer_for(client, method, &ask.params)?;
        tracing::debug!(%method, "answered in the place of a client that cannot be asked");
        Some(outcome)
    }

    /// A question that names no call goes to the task that it is for, or to the client whose session this
    /// is, if it is one's, or else to the one call that can have caused it. Servers ask for roots as soon
    /// as they hear that they may, which can be before the client has finished its own handshake.
    pub(crate) fn asked(self: &Arc<Self>, ask: ServerRequest) {
        let Some(mut ask) = self.subscribers.keep(ask) else {
            return;
        };
        let connection = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(mapping) = connection.mapping.upgrade()
                && let Some(task) = mapping.task_of(&connection, &ask)
            {
                return mapping.asked(&connection, &task, ask).await;
            }
            if sharing_policy(connection.strategy) != SharingPolicy::Exclusive
                && let Some((sink, shown)) = kept::asked_for_task(&connection, &ask)
                && let Some(method) = ask.method
            {
                ask.params = shown;
                return connection
                    .put_to(&sink, ask, method, QuestionContext::Call.into())
                    .await;
            }
            // No client's answer becomes part of what others are shown.
            if connection.common.meant(|| connection.running.calls()) == QuestionOrigin::ForLists {
                return connection.answer_for_nobody(ask).await;
            }
            match (connection.confidant(), ask.method) {
                (Some(sink), Some(method)) => {
                    connection
                        .put_to(&sink, ask, method, QuestionContext::Outside.into())
                        .await;
                }
                _ => {
                    if let Some(ask) = connection.askable.put(ask) {
                        connection
                            .answer_orphan(ask, AttributionFailure::NoCall)
                            .await;
                    }
                }
            }
        });
    }

    /// A client is asked something during its call. Only a stream of the call's own says that the call is meant.
    pub(crate) fn asked_during_call(&self) {
        if !self.upstream.has_own_streams() {
            self.common.doubt();
        }
    }

    /// Puts a question of a legacy server to a legacy client, and the answer back, unless the server
    /// takes it back.
    async fn put_to(
        &self,
        sink: &ClientSink,
        ask: ServerRequest,
        method: Method,
        asked: ClientQuestion,
    ) {
        let (abort, registration) = AbortHandle::new_pair();
        self.question_registry.all().insert(ask.id.clone(), abort);
        let _listed = Listed {
            all: &self.question_registry,
            id: ask.id.clone(),
        };
        let answer = Abortable::new(self.heard(sink, &ask, method, asked), registration).await;
        match answer {
            Ok(outcome) => ask.answer(&outcome).await,
            Err(_) => ask.cancelled(),
        }
    }

    async fn heard(
        &self,
        sink: &ClientSink,
        ask: &ServerRequest,
        method: Method,
        asked: ClientQuestion,
    ) -> Outcome {
        let pact = sink.pact();
        if let Some(outcome) = pact.and_then(|client| self.answer_for(&client, ask, method)) {
            return outcome;
        }
        if !self.may_hear(sink, asked.occasion, method) {
            return self.answer_unless(ask, AttributionFailure::NoCall, self.declared);
        }
        let params = match unasked::lowered(method, &ask.params, sink.revision()) {
            Ok(params) => params,
            Err(refusal) => return Outcome::Error(refusal),
        };
        let put = sink.put(method, &params, PATIENCE).await;
        drop(asked.sending);
        let heard = match put {
            Ok(question) => question.answer().await,
            Err(heard) => heard,
        };
        match heard {
            QuestionOutcome::Result(raw) => match unasked::answer(method, &raw, self.revision()) {
                Ok(raw) => Outcome::Result(raw),
                Err(refusal) => Outcome::Error(refusal),
            },
            QuestionOutcome::Error(raw) => Outcome::Error(raw),
            QuestionOutcome::Lost(why) => Outcome::Error(error::encode(-32603, why, None)),
            QuestionOutcome::Refused(why) => Outcome::Error(error::encode(-32601, &why, None)),
        }
    }
}
