//! The calls of the protocol, typed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mcpact_engine::classify::param_headers::annotations;
use mcpact_spec::{Era, ErrorCode, LogLevel, Method};
use mcpact_wire::raw::{Object, ObjectWriter};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Client;
use super::error::ClientError;
use super::options::CallOptions;
use crate::model::{
    Completion, CompletionRef, Hints, Listed, Prompt, PromptResult, ReadResult, Resource,
    ResourceTemplate, Tool, ToolResult,
};

/// Reads the result of a method.
pub(super) fn read<T: DeserializeOwned>(method: Method, raw: &str) -> Result<T, ClientError> {
    serde_json::from_str(raw).map_err(|source| ClientError::Unreadable {
        method: method.as_str().to_owned(),
        source,
    })
}

/// Reads one member of the result of a method.
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

/// The parameters of a call with a name and arguments.
pub(super) fn named(name: &str, arguments: &Value) -> Result<String, ClientError> {
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
    /// Every tool, page by page. Over modern HTTP a tool whose schema annotates headers wrongly is
    /// left out: it cannot be called.
    ///
    /// # Errors
    /// The server did not declare tools, a page cannot be had or read, or there are too many.
    pub async fn list_tools(&self) -> Result<Listed<Tool>, ClientError> {
        let mut tools: Listed<Tool> = self.list(Method::ToolsList, "tools").await?;
        if !self.mirrors_params() {
            return Ok(tools);
        }
        let mut annotated = HashMap::new();
        let all = std::mem::take(&mut tools.items);
        let mut usable = Vec::with_capacity(all.len());
        for tool in all {
            // 2026-07-28 basic/transports/streamable-http#schema-extension
            match annotations(&tool.input_schema.to_string()) {
                Ok(found) => {
                    annotated.insert(tool.name.clone(), Arc::from(found));
                    usable.push(tool);
                }
                Err(fault) => {
                    tracing::warn!(tool = %tool.name, %fault, "the tool is left out of the list");
                }
            }
        }
        self.shared.remember_annotations(annotated);
        tools.items = usable;
        Ok(tools)
    }

    /// Whether tool parameters are mirrored into headers.
    fn mirrors_params(&self) -> bool {
        self.shared.is_http && self.pact().era() == Era::Modern
    }

    /// Every resource, page by page.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Listed<Resource>, ClientError> {
        self.list(Method::ResourcesList, "resources").await
    }

    /// Every template of resources, page by page.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Listed<ResourceTemplate>, ClientError> {
        self.list(Method::ResourceTemplatesList, "resourceTemplates")
            .await
    }

    /// Every prompt, page by page.
    ///
    /// # Errors
    /// As for [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Listed<Prompt>, ClientError> {
        self.list(Method::PromptsList, "prompts").await
    }

    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        method: Method,
        key: &'static str,
    ) -> Result<Listed<T>, ClientError> {
        let mut all: Option<Listed<T>> = None;
        let mut seen = HashSet::new();
        let mut params = None;
        for _ in 0..self.shared.page_limit {
            let raw = self
                .ask(method.as_str(), params, &CallOptions::new())
                .await?;
            let page: Vec<T> = read_member(method, &raw, key)?;
            let body = Object::parse(&raw).unwrap_or_default();
            let hints = Hints::parse(body.get("ttlMs"), body.get("cacheScope"));
            let list = match all.take() {
                None => Listed::new(page, hints),
                Some(before) => before.followed_by(page, hints),
            };
            let Some(cursor) = body.get_present("nextCursor") else {
                return Ok(list);
            };
            all = Some(list);
            if !seen.insert(cursor.to_owned()) {
                return Err(ClientError::Misbehaved(
                    "a list leads back to the same page",
                ));
            }
            // A cursor means nothing here: it goes back as it came.
            params = Some(ObjectWriter::new().raw("cursor", cursor).finish());
        }
        Err(ClientError::Limit {
            limit: self.shared.page_limit,
            what: "pages of a list",
        })
    }

    /// Calls a tool; `Value::Null` stands for no arguments.
    ///
    /// A tool that fails gives a result whose [`ToolResult::failed`] says so.
    ///
    /// # Errors
    /// The server did not declare tools, refuses the call, or does not answer in time.
    pub async fn call_tool(&self, name: &str, arguments: Value) -> Result<ToolResult, ClientError> {
        self.call_tool_with(name, arguments, CallOptions::new())
            .await
    }

    /// As [`call_tool`](Self::call_tool), with progress, a timeout or a way to give up. Dropping the
    /// future gives up, too.
    ///
    /// # Errors
    /// As for [`call_tool`](Self::call_tool).
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<ToolResult, ClientError> {
        let params = named(name, &arguments)?;
        let raw = self.tool_result(params, &options).await?;
        let raw = self.until_done(raw, &options).await?;
        read(Method::ToolsCall, &raw)
    }

    /// The raw result of a call, its questions answered. A server that misses a header has a newer
    /// schema than we do: one look at it is worth it.
    pub(super) async fn tool_result(
        &self,
        params: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        let outcome = self
            .converse(Method::ToolsCall, params.clone(), options)
            .await;
        match outcome {
            Err(ClientError::Rpc(error))
                if self.mirrors_params()
                    && ErrorCode::parse(error.code) == Some(ErrorCode::HeaderMismatch) =>
            {
                self.list_tools().await?;
                self.converse(Method::ToolsCall, params, options).await
            }
            other => other,
        }
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The server did not declare resources, does not have it, or does not answer in time.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResult, ClientError> {
        let params = ObjectWriter::new().text("uri", uri).finish();
        let options = CallOptions::new();
        let raw = self
            .converse(Method::ResourcesRead, params, &options)
            .await?;
        read(Method::ResourcesRead, &raw)
    }

    /// Fills in a prompt.
    ///
    /// # Errors
    /// The server did not declare prompts, does not have it, or does not answer in time.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptResult, ClientError> {
        let arguments = match arguments.is_empty() {
            true => Value::Null,
            false => Value::Object(arguments),
        };
        let params = named(name, &arguments)?;
        let options = CallOptions::new();
        let raw = self.converse(Method::PromptsGet, params, &options).await?;
        read(Method::PromptsGet, &raw)
    }

    /// Values that an argument could have; `context` holds the arguments that are filled in already.
    ///
    /// # Errors
    /// The server did not declare completions, or does not answer in time.
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
        let raw = self
            .ask(
                method.as_str(),
                Some(params.to_string()),
                &CallOptions::new(),
            )
            .await?;
        read_member(method, &raw, "completion")
    }

    /// The lowest level of log messages wanted from now on: a request on a legacy connection, a
    /// member of every later request on a modern one.
    ///
    /// # Errors
    /// The legacy server did not declare logging, or does not answer in time.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), ClientError> {
        self.shared.set_log_level(level);
        if self.pact().era() == Era::Modern {
            return Ok(());
        }
        let params = ObjectWriter::new().text("level", level.as_str()).finish();
        let method = Method::LoggingSetLevel.as_str();
        self.ask(method, Some(params), &CallOptions::new()).await?;
        Ok(())
    }

    /// Asks for a sign of life. A modern server has no `ping`; it is asked what it is instead.
    ///
    /// # Errors
    /// It does not answer in time.
    pub async fn ping(&self) -> Result<(), ClientError> {
        let method = match self.pact().era() {
            Era::Legacy => Method::Ping,
            Era::Modern => Method::Discover,
        };
        self.ask(method.as_str(), None, &CallOptions::new()).await?;
        Ok(())
    }

    /// Tells a legacy server that the roots have changed; a modern one asks anew each time.
    ///
    /// # Errors
    /// No roots were declared, or the connection has ended.
    pub async fn roots_changed(&self) -> Result<(), ClientError> {
        match self.pact().era() {
            Era::Legacy => self.notify(Method::RootsListChanged.as_str(), None).await,
            Era::Modern => Ok(()),
        }
    }
}
