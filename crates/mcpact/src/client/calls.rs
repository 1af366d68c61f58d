//! Typed calls of the protocol.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::classify::param_headers::annotations;
use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_spec::{Era, ErrorCode, LogLevel, Method, Side};
use mcpact_wire::raw::{Object, ObjectWriter};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::Client;
use super::changes::uri_params;
use super::client_error::ClientError;
use super::pending::ProgressCallback;
use crate::model::{
    Completion, CompletionRef, ListResult, Progress, Prompt, PromptResult, ReadResult, Resource,
    ResourceTemplate, Tool, ToolResult,
};

/// Parses the result of a method.
pub(super) fn read<T: DeserializeOwned>(method: Method, raw: &str) -> Result<T, ClientError> {
    serde_json::from_str(raw).map_err(|source| ClientError::Unreadable {
        method: method.as_str().to_owned(),
        source,
    })
}

/// Parses one member of the result of a method.
fn read_member<T: DeserializeOwned>(
    method: Method,
    raw: &str,
    key: &'static str,
) -> Result<T, ClientError> {
    let body = Object::parse(raw).unwrap_or_default();
    match body.get(key) {
        Some(member) => read(method, member),
        None => Err(ClientError::Unreadable {
            method: method.as_str().to_owned(),
            source: serde::de::Error::missing_field(key),
        }),
    }
}

/// Encodes the parameters of a call with a name and arguments.
pub(super) fn call_params(name: &str, arguments: &Value) -> Result<String, ClientError> {
    let params = ObjectWriter::new().text("name", name);
    match arguments {
        Value::Null => Ok(params.finish()),
        Value::Object(_) => Ok(params.raw("arguments", &arguments.to_string()).finish()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ClientError::Arguments)
        }
    }
}

impl Client {
    /// Lists all tools, over all pages. Over modern HTTP, tools with invalid header annotations are left out: they
    /// cannot be called.
    ///
    /// # Errors
    /// The server does not declare tools, a page is missing or unreadable, or there are too many pages.
    pub async fn list_tools(&self) -> Result<ListResult<Tool>, ClientError> {
        let mut tools: ListResult<Tool> = self.list(Method::ToolsList, "tools").await?;
        if !self.mirrors_params() {
            return Ok(tools);
        }
        // 2026-07-28 basic/transports/streamable-http#schema-extension
        tools.items.retain(|tool| {
            let checked = annotations(&tool.input_schema.to_string());
            if let Err(error) = &checked {
                tracing::warn!(tool = %tool.name, %error, "tool with invalid header annotations left out");
            }
            checked.is_ok()
        });
        Ok(tools)
    }

    /// Returns `true` if tool parameters are mirrored into headers.
    fn mirrors_params(&self) -> bool {
        self.sessions.current().connection.has_own_streams() && self.pact().era() == Era::Modern
    }

    /// Lists all resources, over all pages.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<ListResult<Resource>, ClientError> {
        self.list(Method::ResourcesList, "resources").await
    }

    /// Lists all resource templates, over all pages.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(
        &self,
    ) -> Result<ListResult<ResourceTemplate>, ClientError> {
        self.list(Method::ResourceTemplatesList, "resourceTemplates")
            .await
    }

    /// Lists all prompts, over all pages.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<ListResult<Prompt>, ClientError> {
        self.list(Method::PromptsList, "prompts").await
    }

    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        method: Method,
        key: &'static str,
    ) -> Result<ListResult<T>, ClientError> {
        let mut all: Option<ListResult<T>> = None;
        let mut seen = HashSet::new();
        let mut params = None;
        for _ in 0..self.shared.limits.pages {
            let raw = self.ask_plainly(method, params).await?;
            if method == Method::ToolsList && self.mirrors_params() {
                self.shared.tool_headers.learn(&raw);
            }
            let items: Vec<T> = read_member(method, &raw, key)?;
            let body = Object::parse(&raw).unwrap_or_default();
            let page = ListResult::of_page(items, body.get("ttlMs"), body.get("cacheScope"));
            let list = match all.take() {
                None => page,
                Some(before) => before.followed_by(page),
            };
            let Some(cursor) = body.get_present("nextCursor") else {
                return Ok(list);
            };
            all = Some(list);
            if !seen.insert(cursor.to_owned()) {
                return Err(ClientError::ProtocolViolation("a list repeats a cursor"));
            }
            // A cursor is opaque: it goes back as it came.
            params = Some(ObjectWriter::new().raw("cursor", cursor).finish());
        }
        Err(ClientError::Limit {
            limit: self.shared.limits.pages,
            what: "pages",
        })
    }

    /// Calls a tool; `Value::Null` means no arguments.
    ///
    /// A failed tool returns a result with [`ToolResult::failed`].
    ///
    /// # Errors
    /// The server does not declare tools, refuses the call, or times out.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<ToolResult, ClientError> {
        self.call_tool_with(name, arguments, CallOptions::new())
            .await
    }

    /// As [`call_tool`](Self::call_tool), with progress, timeout or cancellation. Dropping the future cancels the
    /// call, too.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<ToolResult, ClientError> {
        let params = call_params(name, &arguments)?;
        let raw = self.tool_result(params, &options).await?;
        let raw = self.await_task(raw, &options).await?;
        read(Method::ToolsCall, &raw)
    }

    /// Returns the raw result of a call, after answering its questions. On a header mismatch the server has a newer
    /// schema: the tools are listed again, once.
    pub(super) async fn tool_result(
        &self,
        params: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let outcome = self
            .ask_with_answers(Method::ToolsCall, params.clone(), options)
            .await;
        match outcome {
            Err(ClientError::Rpc(error))
                if self.mirrors_params()
                    && ErrorCode::parse(error.code) == Some(ErrorCode::HeaderMismatch) =>
            {
                self.list_tools().await?;
                self.ask_with_answers(Method::ToolsCall, params, options)
                    .await
            }
            other => other,
        }
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The server does not declare resources, has no such resource, or times out.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResult, ClientError> {
        let params = uri_params(uri);
        let options = CallOptions::new();
        let raw = self
            .ask_with_answers(Method::ResourcesRead, params, &options)
            .await?;
        read(Method::ResourcesRead, &raw)
    }

    /// Gets a prompt.
    ///
    /// # Errors
    /// The server does not declare prompts, has no such prompt, or times out.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptResult, ClientError> {
        let arguments = match arguments.is_empty() {
            true => Value::Null,
            false => Value::Object(arguments),
        };
        let params = call_params(name, &arguments)?;
        let options = CallOptions::new();
        let raw = self
            .ask_with_answers(Method::PromptsGet, params, &options)
            .await?;
        read(Method::PromptsGet, &raw)
    }

    /// Completes an argument; `context` holds the arguments already filled in.
    ///
    /// # Errors
    /// The server does not declare completions, or times out.
    pub async fn complete(
        &self,
        reference: &CompletionRef,
        argument: &str,
        value: &str,
        context: Map<String, Value>,
    ) -> Result<Completion, ClientError> {
        let mut params = json!({
            "ref": reference,
            "argument": { "name": argument, "value": value },
        });
        if !context.is_empty() {
            params["context"] = json!({ "arguments": context });
        }
        let method = Method::CompletionComplete;
        let raw = self.ask_plainly(method, Some(params.to_string())).await?;
        read_member(method, &raw, "completion")
    }

    /// Sets the minimum level of log messages: a request on a legacy connection, a member of every later request on a
    /// modern one.
    ///
    /// # Errors
    /// The legacy server does not declare logging, or times out.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), ClientError> {
        let pact = self.pact();
        // Some servers announce fewer levels than the specification has.
        let level = pact
            .party(Side::Server)
            .capabilities
            .extras()
            .settable(level);
        self.shared.set_log_level(level);
        if pact.era() == Era::Modern {
            return Ok(());
        }
        let params = ObjectWriter::new().text("level", level.as_str()).finish();
        self.ask_plainly(Method::LoggingSetLevel, Some(params))
            .await?;
        Ok(())
    }

    /// Checks that the server responds. A modern server has no `ping`; it gets `server/discover` instead.
    ///
    /// # Errors
    /// The server times out.
    pub async fn ping(&self) -> Result<(), ClientError> {
        let method = match self.pact().era() {
            Era::Legacy => Method::Ping,
            Era::Modern => Method::Discover,
        };
        self.ask_plainly(method, None).await?;
        Ok(())
    }

    /// Notifies a legacy server that the roots changed; a modern one asks each time.
    ///
    /// # Errors
    /// No roots were declared, or the connection is closed.
    pub async fn roots_changed(&self) -> Result<(), ClientError> {
        match self.pact().era() {
            Era::Legacy => self.notify(Method::RootsListChanged.as_str(), None).await,
            Era::Modern => Ok(()),
        }
    }
}

/// Cancels calls from elsewhere; clones are the same token.
#[derive(Clone, Debug)]
pub struct CancelToken {
    is_cancelled: Arc<watch::Sender<bool>>,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl CancelToken {
    /// Creates an unused token.
    #[must_use]
    pub fn new() -> Self {
        Self {
            is_cancelled: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Cancels every call with this token, now and later.
    pub fn cancel(&self) {
        self.is_cancelled.send_replace(true);
    }

    pub(super) async fn cancelled(&self) {
        let mut receiver = self.is_cancelled.subscribe();
        // The sender lives as long as this token.
        let _ = receiver.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// Options of a single call.
#[derive(Clone, Default)]
pub struct CallOptions {
    pub(super) progress: Option<ProgressCallback>,
    pub(super) timeout: Option<Duration>,
    pub(super) maximum: Option<Duration>,
    pub(super) cancel: Option<CancelToken>,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("maximum", &self.maximum)
            .finish_non_exhaustive()
    }
}

impl CallOptions {
    /// Creates default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a callback for progress, called in order and before the result. It must not block.
    #[must_use]
    pub fn on_progress(mut self, call: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(call));
        self
    }

    /// Sets how long the server may stay silent; progress restarts the timeout.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum duration of the call, regardless of progress.
    #[must_use]
    pub const fn maximum(mut self, maximum: Duration) -> Self {
        self.maximum = Some(maximum);
        self
    }

    /// Cancels the call with this token.
    #[must_use]
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Waits for the cancellation of the call.
    pub(super) async fn cancelled(&self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn request_timeout(&self, timeout: Duration) -> RequestTimeout {
        let timeout = self.timeout.unwrap_or(timeout);
        let usual = RequestTimeout::default().maximum;
        RequestTimeout {
            timeout,
            maximum: self.maximum.unwrap_or_else(|| usual.max(timeout)),
            on_progress: OnProgress::Extend,
        }
    }
}
