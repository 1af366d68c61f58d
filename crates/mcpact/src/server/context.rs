use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_engine::pact::Pact;
use mcpact_engine::server::Scope;
use mcpact_spec::{LogLevel, Method};
use mcpact_wire::id::Id;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::handler_error::HandlerError;
use super::outbox::{Outbox, Outgoing};
use super::session::Session;
use super::subscribers::Subscribers;
use super::task_store::TaskHandle;
use crate::lock;
use crate::model::LogMessage;

/// Request being served.
#[derive(Debug)]
pub(super) struct CallScope {
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) pact: Arc<Pact>,
    pub(super) progress_token: Option<String>,
    pub(super) session: Arc<Session>,
    pub(super) outbox: Outbox,
    pub(super) rounds: Mutex<Rounds>,
    /// Notifies the dispatcher of a modern call of an open question.
    pub(super) asked: Notify,
    /// Closes when a modern call ends; `None` if its method cannot ask for input.
    pub(super) lifetime: Option<watch::Receiver<()>>,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) task: Option<Arc<TaskHandle>>,
}

/// Questions and answers of a call.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// All answers so far.
    pub(super) answers: Map<String, Value>,
    /// Answers used by the handler in this run.
    pub(super) used: Map<String, Value>,
    /// Questions still to be asked.
    pub(super) open: Map<String, Value>,
    /// Keys of all questions of this run.
    pub(super) keys: BTreeSet<String>,
    pub(super) round: u32,
}

/// Request of a handler, and its channel to the client.
#[derive(Clone, Debug)]
pub struct Context {
    pub(super) call: Arc<CallScope>,
}

impl Context {
    /// Returns the negotiated pact.
    #[must_use]
    pub fn pact(&self) -> &Pact {
        &self.call.pact
    }

    /// Returns the name of the principal of the request: as [`PrincipalSource`](super::PrincipalSource) derives it, or
    /// of its token, or `uid N`; empty for anonymous clients.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.call.session.principal().name()
    }

    /// Returns the owner of everything that the request creates.
    pub(super) fn owner(&self) -> &str {
        self.call.session.owner()
    }

    /// Returns the id of the request.
    #[must_use]
    pub fn request_id(&self) -> &Id {
        &self.call.id
    }

    /// Returns the number of the current round of questions, starting at 0.
    #[must_use]
    pub fn round(&self) -> u32 {
        lock(&self.call.rounds).round
    }

    /// Reports progress, if the client requested it.
    ///
    /// # Errors
    /// The client disconnected.
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

    /// Logs to the client, if it requested messages of this level.
    ///
    /// # Errors
    /// The client disconnected.
    pub async fn log(&self, level: LogLevel, data: impl Into<Value>) -> Result<(), HandlerError> {
        self.log_message(LogMessage::new(level, data)).await
    }

    /// Logs a complete message.
    ///
    /// # Errors
    /// The client disconnected.
    pub async fn log_message(&self, message: LogMessage) -> Result<(), HandlerError> {
        self.notify(Method::LoggingMessage, &serde_json::to_value(message)?)
            .await
    }

    /// As [`log_message`](Self::log_message), without waiting: drops the message if the queue is full.
    pub(super) fn log_now(&self, message: &LogMessage) {
        let Ok(params) = serde_json::to_string(message) else {
            return;
        };
        if let Some(text) = self.notification(Method::LoggingMessage, &params) {
            // A slow reader must not block the handler.
            let _ = self.call.outbox.try_send(text);
        }
    }

    /// Encodes a notification that belongs to this request.
    fn notification(&self, method: Method, params: &str) -> Option<String> {
        let scope = Scope::Request(self.call.id.clone());
        self.call.session.encode_notification(scope, method, params)
    }

    async fn notify(&self, method: Method, params: &Value) -> Result<(), HandlerError> {
        if let Some(text) = self.notification(method, &params.to_string()) {
            self.call.outbox.send(text).await?;
        }
        Ok(())
    }

    /// Announces that the user completed the URL elicitation with this `elicitationId`. Only 2025-11-25 has this
    /// message.
    ///
    /// # Errors
    /// The client disconnected.
    pub async fn elicitation_complete(&self, elicitation_id: &str) -> Result<(), HandlerError> {
        let params = json!({ "elicitationId": elicitation_id });
        self.notify(Method::ElicitationComplete, &params).await
    }

    /// Notifies subscribers that the list of tools changed.
    pub fn tools_changed(&self) {
        self.publish(Method::ToolsListChanged, &json!({}));
    }

    /// Notifies subscribers that the list of prompts changed.
    pub fn prompts_changed(&self) {
        self.publish(Method::PromptsListChanged, &json!({}));
    }

    /// Notifies subscribers that the list of resources changed.
    pub fn resources_changed(&self) {
        self.publish(Method::ResourcesListChanged, &json!({}));
    }

    /// Notifies subscribers of a resource that it changed. Clients can only subscribe to registered resources and
    /// matching templates.
    pub fn resource_updated(&self, uri: &str) {
        self.publish(Method::ResourcesUpdated, &json!({ "uri": uri }));
    }

    fn publish(&self, method: Method, params: &Value) {
        self.call.subscribers.publish(method, params);
    }

    /// Closes the HTTP stream of this request; the client reconnects for the response after `retry`. Does nothing on
    /// other transports.
    ///
    /// # Errors
    /// The client disconnected.
    pub async fn release_stream(&self, retry: Duration) -> Result<(), HandlerError> {
        self.call
            .outbox
            .send_item(Outgoing::Disconnect(retry))
            .await?;
        Ok(())
    }
}
