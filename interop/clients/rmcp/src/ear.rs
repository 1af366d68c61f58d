//! What the client answers to the server, and what it hears.
#![expect(
    deprecated,
    reason = "2026-07-28 deprecates sampling, roots and logging; they are used on purpose"
)]

use std::sync::Arc;

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ErrorData, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::report::Inbox;

/// What came from the server by itself.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) elicit: Inbox,
    pub(crate) sample: Inbox,
    pub(crate) roots: Inbox,
    pub(crate) log: Inbox,
    pub(crate) updated: Inbox,
    pub(crate) tools: Inbox,
    pub(crate) progress: Inbox,
}

/// The handler of the client.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) config: ClientConfig,
    pub(crate) heard: Arc<Heard>,
}

fn value(item: impl Serialize) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

/// An answer as it stands on the wire, in the type that the SDK wants.
fn answer<T: DeserializeOwned>(answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.heard.elicit.push(value(request));
        answer(json!({
            "action": "accept",
            "content": {"username": "ada", "email": "ada@example.org"},
        }))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.heard.sample.push(value(params));
        answer(json!({
            "model": "interop",
            "role": "assistant",
            "content": {"type": "text", "text": "Paris"},
        }))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.heard.roots.push(json!({}));
        answer(json!({"roots": [{"uri": "file:///srv/interop", "name": "interop"}]}))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.progress.push(value(params));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.log.push(value(params));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.heard.updated.push(value(params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.tools.push(json!({}));
    }
}
