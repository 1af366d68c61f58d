//! Notifications and requests of the server.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use futures_util::FutureExt;
use mcpact_engine::gate::{check_server_notification, check_server_request};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::OnUndeclared;
use mcpact_engine::refusal::{Dialect, Misbehaviour, Refusal};
use mcpact_spec::{Era, Method, Revision};
use mcpact_translate::input::Outcome;
use mcpact_wire::envelope::Notification as RawNotification;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::model::error;
use mcpact_wire::raw::Object;
use tokio::sync::oneshot;

use super::changes::Change;
use super::client_error::AnswerError;
use super::handlers::Notification;
use super::shared::Shared;
use crate::connection::{MessageHandler, ServerRequest, cancelled_id};
use crate::{lock, log};

/// Handler of the messages of one session.
#[derive(Debug)]
pub(super) struct SessionHandler {
    shared: Arc<Shared>,
    pact: Arc<Pact>,
    /// Requests that are being answered; dropping an entry cancels the answer.
    serving: Arc<Mutex<HashMap<Id, oneshot::Sender<()>>>>,
}

impl MessageHandler for SessionHandler {
    fn notification(&self, note: &RawNotification<'_>) {
        let receiving = AssertUnwindSafe(|| self.receive(note));
        if std::panic::catch_unwind(receiving).is_err() {
            let server = &self.shared.target;
            tracing::error!(%server, method = %note.method, "a callback panicked");
        }
    }

    fn request(&self, request: ServerRequest) {
        if self.pact.era() == Era::Modern {
            // 2026-07-28: servers send no requests. Answering would break the same rule.
            let server = &self.shared.target;
            tracing::warn!(%server, method = %request.name, "request of the server dropped: not in this revision");
            return request.cancelled();
        }
        if request.method == Some(Method::Ping) {
            return reply(request, Outcome::Result(String::from("{}")));
        }
        let mut cancelled = match self.admit(&request) {
            Ok(cancelled) => cancelled,
            Err(refusal) => {
                let dialect = Dialect {
                    revision: self.pact.revision(),
                    errors: self.shared.terms.policy.errors,
                };
                let error = refusal.on_wire(dialect).encode();
                return reply(request, Outcome::Error(error));
            }
        };
        let (shared, serving) = (Arc::clone(&self.shared), Arc::clone(&self.serving));
        let revision = self.pact.revision();
        tokio::spawn(async move {
            let answering = answer(&shared, revision, &request.name, &request.params);
            let answered = tokio::select! {
                outcome = AssertUnwindSafe(answering).catch_unwind() => Some(outcome),
                _ = &mut cancelled => None,
            };
            let Some(outcome) = answered else {
                return request.cancelled();
            };
            lock(&serving).remove(&request.id);
            let outcome = outcome
                .unwrap_or_else(|_| Err(AnswerError::internal("the handler of the client failed")));
            let outcome = match outcome {
                Ok(result) => Outcome::Result(result),
                Err(AnswerError { code, message }) => {
                    Outcome::Error(error::encode(code, &message, None))
                }
            };
            request.answer(&outcome).await;
        });
    }
}

impl SessionHandler {
    pub(super) fn new(shared: Arc<Shared>, pact: Arc<Pact>) -> Self {
        Self {
            shared,
            pact,
            serving: Arc::default(),
        }
    }

    fn receive(&self, note: &RawNotification<'_>) {
        let policy = &self.shared.terms.policy;
        let method = match check_server_notification(&self.pact, policy, &note.method) {
            Ok(method) => method,
            // Unknown requests are dropped below.
            Err(_) if note.method == Method::Cancelled.as_str() => Some(Method::Cancelled),
            Err(refusal) => return self.undeclared(&refusal),
        };
        let params = note.params.raw;
        if !self.is_valid(note) {
            return;
        }
        match method {
            Some(Method::Cancelled) if !self.cancelled(params) => {
                return tracing::debug!("cancellation of an unknown request dropped");
            }
            Some(Method::Progress) => {
                let params = params.unwrap_or("{}");
                let body = Object::parse(params).unwrap_or_default();
                if let Some(token) = body.get("progressToken") {
                    self.shared.pending.progress(token, params);
                }
            }
            Some(Method::LoggingMessage) => log::write_params(&self.shared.target, params),
            Some(_) | None => {}
        }
        let subscription = note.params.meta.subscription_id;
        let subscribed = subscription
            .and_then(IdRef::from_token)
            .and_then(number)
            .and_then(|id| self.shared.pending.subscription(id));
        if method == Some(Method::SubscriptionsAcknowledged)
            && let Some(queue) = &subscribed
        {
            queue.acknowledge(params);
        }
        if let Some(change) = method.and_then(|method| Change::of(method, params)) {
            match subscription {
                Some(_) => subscribed.iter().for_each(|queue| queue.push(&change)),
                None => self.shared.push_change(&change),
            }
        }
        self.observe(note);
    }

    /// Cancels the answers to requests of an ended session.
    pub(super) fn stop(&self) {
        lock(&self.serving).clear();
    }

    /// Checks a request against the pact and remembers it. Returns the receiver of its cancellation.
    fn admit(&self, request: &ServerRequest) -> Result<oneshot::Receiver<()>, Refusal> {
        let terms = &self.shared.terms;
        let params = Some(&*request.params);
        check_server_request(&self.pact, &terms.policy, &request.name, params)?;
        let limit = terms.in_flight_limit;
        let mut serving = lock(&self.serving);
        if serving.len() >= limit {
            let what = "requests in flight";
            return Err(Misbehaviour::TooMany { limit, what }.into());
        }
        if serving.contains_key(&request.id) {
            return Err(Misbehaviour::DuplicateId(request.id.raw().into()).into());
        }
        let (cancel, cancelled) = oneshot::channel();
        serving.insert(request.id.clone(), cancel);
        Ok(cancelled)
    }

    /// The server cancels one of its requests, or ends a subscription. Returns whether it is known.
    fn cancelled(&self, params: Option<&str>) -> bool {
        let Some(id) = cancelled_id(params) else {
            return false;
        };
        if lock(&self.serving).remove(&id).is_some() {
            return true;
        }
        let Some(id) = number(id.as_ref()) else {
            return false;
        };
        self.shared.pending.end_subscription(id);
        self.shared.pending.contains(id)
    }

    /// Applies the policy to a notification that was not negotiated.
    fn undeclared(&self, refusal: &Refusal) {
        let server = &self.shared.target;
        match self.shared.terms.policy.undeclared {
            OnUndeclared::Drop => tracing::debug!(%server, %refusal, "notification dropped"),
            OnUndeclared::Warn => {
                tracing::warn!(%server, %refusal, "the server violated the protocol");
            }
            OnUndeclared::Error | OnUndeclared::Disconnect => {
                tracing::error!(%server, %refusal, "the server violated the protocol");
            }
        }
        if self.shared.terms.policy.undeclared == OnUndeclared::Disconnect {
            self.shared.disconnect();
        }
    }

    /// Validates a notification against the official schema.
    fn is_valid(&self, note: &RawNotification<'_>) -> bool {
        let (revision, params) = (self.pact.revision(), note.params.raw);
        let validation = &self.shared.validation;
        let checked = validation.params("server", revision, &note.method, params);
        checked.is_ok()
    }

    fn observe(&self, note: &RawNotification<'_>) {
        let observers = &self.shared.handlers.observers;
        if observers.is_empty() {
            return;
        }
        let note = Notification {
            method: note.method.as_ref().to_owned(),
            params: note.params.raw.map(str::to_owned),
        };
        for observer in observers {
            observer(&note);
        }
    }
}

/// Returns the number of a request of this client.
fn number(id: IdRef<'_>) -> Option<i64> {
    id.raw().parse().ok()
}

/// Replies in the background.
fn reply(request: ServerRequest, outcome: Outcome) {
    tokio::spawn(async move { request.answer(&outcome).await });
}

/// Answers a request with its handler. Question and answer are validated against the official schema.
async fn answer(
    shared: &Shared,
    revision: Revision,
    method: &str,
    params: &ByteString,
) -> Result<String, AnswerError> {
    let validation = &shared.validation;
    validation
        .params("server", revision, method, Some(params))
        .map_err(|misfit| AnswerError::invalid(format!("`{method}` {misfit}")))?;
    let Some(answering) = shared.handlers.answer(method, Some(params)) else {
        return Err(AnswerError {
            code: -32601,
            message: format!("no handler for `{method}`"),
        });
    };
    let raw = answering.await?;
    validation
        .result("client", revision, method, &raw)
        .map_err(|misfit| AnswerError::internal(format!("the answer to `{method}` {misfit}")))?;
    Ok(raw)
}
