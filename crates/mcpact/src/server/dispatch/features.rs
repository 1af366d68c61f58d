//! Prompts, resources and completion.

use serde_json::{Map, Value, json};

use super::{Core, Served, text};
use crate::server::context::Context;
use crate::server::handler_error::HandlerError;
use crate::server::registry::CompletionRequest;

impl Core {
    pub(super) async fn get_prompt(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let name = text(params, "name")?;
        let Some(entry) = self.registry.prompt(name) else {
            return Err(HandlerError::invalid_params(format!(
                "Unknown prompt: {name}"
            )));
        };
        let arguments = match params.get("arguments") {
            Some(Value::Object(arguments)) => arguments.clone(),
            _ => Map::new(),
        };
        let declared = entry.prompt.arguments.iter().flatten();
        for argument in declared.filter(|argument| argument.required == Some(true)) {
            if !arguments.contains_key(&argument.name) {
                let text = format!("Prompt {name} needs the argument `{}`", argument.name);
                return Err(HandlerError::invalid_params(text));
            }
        }
        Served::of(&entry.get.call(arguments, context.clone()).await?)
    }

    pub(super) async fn read_resource(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let uri = text(params, "uri")?.to_owned();
        let fixed = self
            .registry
            .resources
            .iter()
            .find(|entry| entry.resource.uri == uri);
        let contents = match fixed {
            Some(entry) => entry.read.call(uri, context.clone()).await?,
            None => {
                let found = self.registry.templates.iter().find_map(|entry| {
                    entry
                        .matcher
                        .matches(&uri)
                        .map(|variables| (entry, variables))
                });
                let Some((entry, variables)) = found else {
                    return Err(HandlerError::resource_not_found(uri));
                };
                entry.read.call((uri, variables), context.clone()).await?
            }
        };
        Served::of(&json!({ "contents": contents }))
    }

    pub(super) fn check_uri(&self, uri: &str) -> Result<(), HandlerError> {
        if self.registry.has_resource(uri) {
            Ok(())
        } else {
            Err(HandlerError::resource_not_found(uri))
        }
    }

    pub(super) async fn complete(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let Some(complete) = &self.registry.completion else {
            return Err(HandlerError::rpc(-32601, "Method not found"));
        };
        let reference = params.get("ref").cloned().unwrap_or_default();
        let reference = serde_json::from_value(reference)
            .map_err(|error| HandlerError::invalid_params(format!("`ref`: {error}")))?;
        let argument = params.get("argument").and_then(Value::as_object);
        let argument =
            argument.ok_or_else(|| HandlerError::invalid_params("`argument` is missing"))?;
        let known = params
            .get("context")
            .and_then(|context| context.get("arguments"));
        let request = CompletionRequest {
            reference,
            name: text(argument, "name")?.to_owned(),
            value: text(argument, "value")?.to_owned(),
            known: known
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        };
        let completion = complete.call(request, context.clone()).await?;
        Served::of(&json!({ "completion": completion }))
    }
}
