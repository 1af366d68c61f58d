//! Registered handlers, in order of registration.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::classify::param_headers::{Annotation, annotations};
use mcpact_engine::lint;
use mcpact_spec::{Capability, Era, Extension, Method, Revision, Side};
use serde_json::{Map, Value, json};

use super::context::Context;
use super::handler_error::HandlerError;
use super::skills::Skills;
use super::uri_template::UriTemplate;
use crate::model::{
    Completion, CompletionRef, Prompt, PromptResult, Resource, ResourceContents, ResourceTemplate,
    TaskSupport, Tool, ToolResult,
};
use crate::schema::Schema;

/// Registered asynchronous function.
pub(super) struct Handler<In, Out> {
    #[expect(clippy::type_complexity, reason = "spelled out once, here")]
    function:
        Box<dyn Fn(In, Context) -> BoxFuture<'static, Result<Out, HandlerError>> + Send + Sync>,
}

impl<In, Out> Handler<In, Out> {
    pub(super) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(In, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, HandlerError>> + Send + 'static,
    {
        Self {
            function: Box::new(move |input, context| Box::pin(function(input, context))),
        }
    }

    pub(super) fn call(
        &self,
        input: In,
        context: Context,
    ) -> BoxFuture<'static, Result<Out, HandlerError>> {
        (self.function)(input, context)
    }
}

impl<In, Out> std::fmt::Debug for Handler<In, Out> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler(..)")
    }
}

#[derive(Debug)]
pub(super) struct ToolEntry {
    pub(super) tool: Tool,
    pub(super) input: Schema,
    pub(super) output: Option<Schema>,
    pub(super) headers: Arc<[Annotation]>,
    /// Gathers input before the work begins; its result is the input of `run`.
    pub(super) gather: Option<Handler<Value, Value>>,
    pub(super) run: Handler<Value, ToolResult>,
}

impl ToolEntry {
    /// Compiles the schemas of a tool.
    pub(super) fn new(tool: Tool, run: Handler<Value, ToolResult>) -> Result<Self, String> {
        let compile = |schema: &Value| {
            Schema::compile(schema)
                .map_err(|error| format!("the schema of tool `{}` is unusable: {error}", tool.name))
        };
        let input = compile(&tool.input_schema)?;
        let output = tool.output_schema.as_ref().map(compile).transpose()?;
        let headers = annotations(&tool.input_schema.to_string())
            .map_err(|error| format!("tool `{}`: {error}", tool.name))?;
        Ok(Self {
            input,
            output,
            headers: headers.into(),
            gather: None,
            run,
            tool,
        })
    }
}

#[derive(Debug)]
pub(super) struct ResourceEntry {
    pub(super) resource: Resource,
    pub(super) read: Handler<String, Vec<ResourceContents>>,
}

#[derive(Debug)]
pub(super) struct TemplateEntry {
    pub(super) template: ResourceTemplate,
    pub(super) matcher: UriTemplate,
    pub(super) read: Handler<(String, Map<String, Value>), Vec<ResourceContents>>,
}

#[derive(Debug)]
pub(super) struct PromptEntry {
    pub(super) prompt: Prompt,
    pub(super) get: Handler<Map<String, Value>, PromptResult>,
}

/// Argument to be completed.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// Prompt or template of the argument.
    pub reference: CompletionRef,
    /// Name of the argument.
    pub name: String,
    /// Text typed so far.
    pub value: String,
    /// Arguments already filled in.
    pub known: Map<String, Value>,
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) tools: Vec<ToolEntry>,
    pub(super) resources: Vec<ResourceEntry>,
    pub(super) templates: Vec<TemplateEntry>,
    pub(super) prompts: Vec<PromptEntry>,
    pub(super) skills: Skills,
    pub(super) completion: Option<Handler<CompletionRequest, Completion>>,
    pub(super) logs: bool,
    by_name: HashMap<String, usize>,
}

/// Declaration of `tasks.list`: a list of all tasks would show everyone's tasks to clients that cannot be told apart.
///
/// `2025-11-25 basic/utilities/tasks#task-isolation-and-access-control`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskListing {
    /// For clients with an identity.
    Declared,
    /// For anonymous clients.
    Undeclared,
}

impl Registry {
    pub(super) fn add_tool(&mut self, entry: ToolEntry) {
        self.by_name
            .insert(entry.tool.name.clone(), self.tools.len());
        self.tools.push(entry);
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ToolEntry> {
        self.by_name.get(name).and_then(|at| self.tools.get(*at))
    }

    pub(super) fn set_gather(&mut self, name: &str, gather: Handler<Value, Value>) {
        let entry = self
            .by_name
            .get(name)
            .and_then(|at| self.tools.get_mut(*at));
        if let Some(entry) = entry {
            entry.gather = Some(gather);
        }
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&PromptEntry> {
        self.prompts.iter().find(|entry| entry.prompt.name == name)
    }

    /// Returns `true` if a URI is a registered resource or matches a template.
    pub(super) fn has_resource(&self, uri: &str) -> bool {
        let mut fixed = self.resources.iter();
        let mut templates = self.templates.iter();
        fixed.any(|entry| entry.resource.uri == uri)
            || self.skills.file(uri).is_some()
            || templates.any(|entry| entry.matcher.matches(uri).is_some())
    }

    fn runs_tasks(&self) -> bool {
        self.tools
            .iter()
            .any(|entry| entry.tool.supports_tasks() != TaskSupport::Forbidden)
    }

    /// Derives the capabilities from the handlers.
    pub(super) fn capabilities(&self, listing: TaskListing) -> CapabilitySet {
        let mut handlers = Vec::new();
        let mut flags = Vec::new();
        if !self.tools.is_empty() {
            handlers.extend([Method::ToolsList, Method::ToolsCall]);
            flags.push(Capability::ToolsListChanged);
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            handlers.extend([Method::ResourcesList, Method::ResourcesRead]);
            handlers.push(Method::ResourcesSubscribe);
            flags.push(Capability::ResourcesListChanged);
        }
        if !self.prompts.is_empty() {
            handlers.extend([Method::PromptsList, Method::PromptsGet]);
            flags.push(Capability::PromptsListChanged);
        }
        if self.completion.is_some() {
            handlers.push(Method::CompletionComplete);
        }
        if self.logs {
            handlers.push(Method::LoggingSetLevel);
        }
        if self.runs_tasks() {
            handlers.extend([Method::TasksGet, Method::TasksCancel]);
            if listing == TaskListing::Declared {
                handlers.push(Method::TasksList);
            }
            flags.push(Capability::ServerTasksToolsCall);
        }
        let set = lint::declaration(
            Side::Server,
            &handlers,
            &flags,
            Revision::newest(Era::Legacy),
        );
        let mut extensions = Map::new();
        if self.runs_tasks() {
            extensions.insert(Extension::Tasks.id().to_owned(), json!({}));
        }
        if !self.skills.entries.is_empty() {
            let settings = json!({"directoryRead": true});
            extensions.insert(Extension::Skills.id().to_owned(), settings);
        }
        if extensions.is_empty() {
            return set;
        }
        let mut document: Value = serde_json::from_str(set.raw()).unwrap_or_default();
        document["extensions"] = extensions.into();
        CapabilitySet::lenient(Side::Server, Some(&document.to_string()))
    }
}
