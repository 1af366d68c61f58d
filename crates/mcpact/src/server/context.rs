use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpact_engine::pact::Pact;
use mcpact_engine::server::Scope;
use mcpact_spec::{LogLevel, Method};
use mcpact_wire::id::Id;
use serde_json::{Map, Value, json};

use super::change::Changes;
use super::error::HandlerError;
use super::outbox::{Outbox, Parcel};
use super::session::{Deed, Session};
use super::task::TaskHandle;
use crate::model::LogMessage;

/// A request while it is being served.
#[derive(Debug)]
pub(super) struct CallScope {
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) pact: Arc<Pact>,
    pub(super) progress_token: Option<String>,
    pub(super) session: Arc<Session>,
    pub(super) outbox: Outbox,
    pub(super) rounds: Mutex<Rounds>,
    pub(super) changes: Arc<Changes>,
    pub(super) task: Option<Arc<TaskHandle>>,
}

/// The questions and answers of a modern call.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Everything that was answered so far.
    pub(super) answers: Map<String, Value>,
    /// The answers that the handler took, in this run.
    pub(super) used: Map<String, Value>,
    /// What is still to be asked.
    pub(super) open: Map<String, Value>,
    pub(super) round: u32,
}

/// What a handler knows about the request that it serves, and how it talks back.
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) call: Arc<CallScope>,
}

impl Context {
    /// What this client and this server have agreed on.
    #[must_use]
    pub fn pact(&self) -> &Pact {
        &self.call.pact
    }

    /// On whose behalf the request comes, as [`Principals`](super::Principals) told; empty where
    /// nobody is told apart.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.call.session.principal()
    }

    /// The id of the request.
    #[must_use]
    pub fn request_id(&self) -> &Id {
        &self.call.id
    }

    /// Which round of questions this is: 0 at first.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.rounds().round
    }

    pub(super) fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.call
            .rounds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells how far the work has come, if the client wants to know.
    ///
    /// # Errors
    /// The client went away.
    pub async fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), HandlerError> {
        let Some(token) = &self.call.progress_token else {
            return Ok(());
        };
        let token: Value = serde_json::from_str(token)?;
        let mut params = json!({"progressToken": token, "progress": progress});
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        if let Some(message) = message.filter(|_| {
            self.pact()
                .revision()
                .has(mcpact_spec::Feature::ProgressMessage)
        }) {
            params["message"] = json!(message);
        }
        self.notify(Method::Progress, &params).await
    }

    /// Logs to the client, if it wants messages of this level.
    ///
    /// # Errors
    /// The client went away.
    pub async fn log(&self, level: LogLevel, data: impl Into<Value>) -> Result<(), HandlerError> {
        self.log_message(LogMessage::new(level, data)).await
    }

    /// Logs a whole message.
    ///
    /// # Errors
    /// The client went away.
    pub async fn log_message(&self, message: LogMessage) -> Result<(), HandlerError> {
        self.notify(Method::LoggingMessage, &serde_json::to_value(message)?)
            .await
    }

    /// As [`log_message`](Self::log_message), at once or not at all.
    pub(super) fn log_now(&self, message: &LogMessage) {
        let Ok(params) = serde_json::to_string(message) else {
            return;
        };
        let scope = Scope::Request(self.call.id.clone());
        let method = Method::LoggingMessage;
        for deed in self.call.session.notify(scope, method, &params) {
            if let Deed::Write(text) = deed {
                // A log that is not read must not hold up the work.
                let _ = self.call.outbox.offer(text);
            }
        }
    }

    async fn notify(&self, method: Method, params: &Value) -> Result<(), HandlerError> {
        let scope = Scope::Request(self.call.id.clone());
        for deed in self.call.session.notify(scope, method, &params.to_string()) {
            if let Deed::Write(text) = deed {
                self.call.outbox.send(text).await?;
            }
        }
        Ok(())
    }

    /// Tells that the user has done what was to be done at the page with this `elicitationId`. Only
    /// 2025-11-25 has such a message.
    ///
    /// # Errors
    /// The client went away.
    pub async fn elicitation_complete(&self, elicitation_id: &str) -> Result<(), HandlerError> {
        let params = json!({ "elicitationId": elicitation_id });
        self.notify(Method::ElicitationComplete, &params).await
    }

    /// Tells every client that asked that the list of tools has changed.
    pub fn tools_changed(&self) {
        self.call
            .changes
            .publish(Method::ToolsListChanged, &json!({}));
    }

    /// Tells every client that asked that the list of prompts has changed.
    pub fn prompts_changed(&self) {
        self.call
            .changes
            .publish(Method::PromptsListChanged, &json!({}));
    }

    /// Tells every client that asked that the list of resources has changed.
    pub fn resources_changed(&self) {
        self.call
            .changes
            .publish(Method::ResourcesListChanged, &json!({}));
    }

    /// Tells every client that subscribed that a resource has changed. What is not registered, as a
    /// resource or by a template that fits, nobody can subscribe to.
    pub fn resource_updated(&self, uri: &str) {
        self.call
            .changes
            .publish(Method::ResourcesUpdated, &json!({ "uri": uri }));
    }

    /// Lets go of the HTTP stream of this request; the client comes back for the answer after
    /// `retry`. Does nothing where there is no such stream.
    ///
    /// # Errors
    /// The client went away.
    pub async fn release_stream(&self, retry: Duration) -> Result<(), HandlerError> {
        self.call.outbox.put(Parcel::Disconnect(retry)).await?;
        Ok(())
    }
}
