//! Requests and notifications of the server.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use mcpact_engine::client::Input;
use mcpact_engine::effect::{Call, IncomingNotification};
use mcpact_engine::refusal::WireError;
use mcpact_spec::Method;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::answers::number;
use super::held::OwnAnswer;
use super::{Core, Deeds};
use crate::client::changes::{Change, ChangeQueue};
use crate::client::client_error::{AnswerError, ClientError};
use crate::client::handlers::Notification;
use crate::log;
use crate::model::Progress;

impl Core {
    pub(super) fn serve(&mut self, call: Call<'_>, deeds: &mut Deeds) {
        if let Err(error) = self.incoming_question(&call) {
            return deeds.add(self.answered(call.id, Err(error)));
        }
        let Some(answering) = self.shared.handlers.answer(&call.name, call.params.raw) else {
            let error = AnswerError {
                code: -32601,
                message: format!("no handler for `{}`", call.name),
            };
            return deeds.add(self.answered(call.id, Err(error)));
        };
        let id = call.id.clone();
        let answer = self.answer.clone();
        let own = OwnAnswer::to(&call, &self.shared.validation);
        let task = tokio::spawn(async move {
            let outcome = AssertUnwindSafe(answering).catch_unwind().await;
            let outcome = outcome
                .unwrap_or_else(|_| Err(AnswerError::internal("the handler of the client failed")));
            let outcome = outcome.and_then(|raw| own.judged(raw));
            // The driver may have ended.
            let _ = answer.send((id, outcome)).await;
        });
        self.serving.insert(call.id, task.abort_handle());
    }

    /// Sends the answer of a handler.
    pub(super) fn answered(&mut self, id: Id, outcome: Result<String, AnswerError>) -> Deeds {
        self.serving.remove(&id);
        let outcome = outcome.map_err(|error| WireError {
            code: error.code,
            message: error.message,
            data: None,
            http_status: 200,
        });
        self.feed(Input::Answer { id, outcome })
    }

    pub(super) fn observe(&mut self, note: IncomingNotification<'_>, deeds: &mut Deeds) {
        if !self.is_fit(&note) {
            return;
        }
        match note.method {
            Some(Method::Cancelled) => self.cancelled(&note, deeds),
            Some(Method::Progress) => self.progressed(&note),
            Some(Method::LoggingMessage) => {
                log::write_message(&self.shared.target, note.params.raw);
            }
            Some(Method::SubscriptionsAcknowledged) => {
                if let Some(queue) = self.subscription(&note) {
                    queue.acknowledge(note.params.raw);
                }
            }
            Some(_) | None => {}
        }
        if let Some(change) = Change::of(&note) {
            match note.params.meta.subscription_id {
                Some(_) => self
                    .subscription(&note)
                    .into_iter()
                    .for_each(|queue| queue.push(change.clone())),
                None => self
                    .shared
                    .listeners()
                    .into_iter()
                    .filter(|queue| queue.wants(&change))
                    .for_each(|queue| queue.push(change.clone())),
            }
        }
        if !self.shared.handlers.observers.is_empty() {
            let note = Notification {
                method: note.name.into(),
                params: note.params.raw.map(str::to_owned),
            };
            for observer in &self.shared.handlers.observers {
                observer.observe(&note);
            }
        }
    }

    pub(super) fn subscription(&self, note: &IncomingNotification<'_>) -> Option<Arc<ChangeQueue>> {
        let id = IdRef::from_token(note.params.meta.subscription_id?)?;
        self.pending.get(&number(id)?)?.changes.clone()
    }

    /// The server cancels one of its requests, or ends a subscription.
    pub(super) fn cancelled(&mut self, note: &IncomingNotification<'_>, deeds: &mut Deeds) {
        let params = Object::parse(note.params.raw.unwrap_or("{}")).unwrap_or_default();
        let Some(id) = params.get("requestId").and_then(IdRef::from_token) else {
            return;
        };
        if let Some(task) = self.serving.get(&id.to_id()) {
            task.abort();
            let gone = AnswerError::internal("cancelled");
            return deeds.add(self.answered(id.to_id(), Err(gone)));
        }
        if let Some(id) = number(id)
            && self
                .pending
                .get(&id)
                .is_some_and(|ask| ask.changes.is_some())
        {
            self.lose(id, ClientError::Closed);
        }
    }

    pub(super) fn progressed(&self, note: &IncomingNotification<'_>) {
        let Ok(progress) = serde_json::from_str::<Progress>(note.params.raw.unwrap_or("{}")) else {
            return;
        };
        let ask = progress
            .progress_token
            .0
            .as_u64()
            .and_then(|ticket| self.tickets.get(&ticket))
            .and_then(|id| self.pending.get(id));
        if let Some(call) = ask.and_then(|ask| ask.progress.as_ref()) {
            call(progress);
        }
    }
}
