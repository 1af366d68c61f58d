//! From a request to its result.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpact_bridge::shape;
use mcpact_engine::refusal::{Dialect, WireError};
use mcpact_engine::server::{Scope, ServerTerms};
use mcpact_engine::task_rule::{self, Demand, Wish};
use mcpact_spec::{Era, ErrorCode, Extension, Feature, Method};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::builder::Settings;
use super::change::Changes;
use super::context::{CallScope, Context, Outbox, Rounds};
use super::error::{HandlerError, Kind};
use super::registry::{CompletionRequest, Registry, ToolEntry};
use super::seal::{Binding, Sealer, digest, unix_now};
use super::session::{Job, Session};
use super::task::TaskStore;
use crate::model::{TaskSupport, ToolResult};

/// Everything that the connections of a server share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) registry: Registry,
    pub(super) terms: Arc<ServerTerms>,
    pub(super) settings: Settings,
    pub(super) sealer: Sealer,
    pub(super) changes: Arc<Changes>,
    pub(super) tasks: TaskStore,
}

/// A result that is ready to be shaped for its client.
enum Served {
    /// An ordinary result.
    Result(String),
    /// A result that has its final shape already.
    Final(String),
}

impl Served {
    fn of(value: &impl Serialize) -> Result<Self, HandlerError> {
        Ok(Self::Result(serde_json::to_string(value)?))
    }
}

/// How long a listen request lives: until somebody ends it.
async fn forever() -> Result<Served, HandlerError> {
    std::future::pending().await
}

impl Core {
    /// Serves one request. The future may be dropped at any time, which is how it is cancelled.
    pub(super) async fn serve(
        self: Arc<Self>,
        job: Job,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<String, WireError> {
        let revision = job.pact.revision();
        let dialect = Dialect {
            revision,
            errors: self.terms.policy.errors,
        };
        let method = job.method;
        let served = self.attempt(job, session, outbox).await;
        let raw = match served.map_err(|error| error.on_wire(dialect))? {
            Served::Final(raw) => return Ok(raw),
            Served::Result(raw) => raw,
        };
        let Some(method) = method else {
            return Ok(raw);
        };
        let shaped = match revision.era() {
            Era::Legacy => shape::lower_result(method, &raw, revision),
            Era::Modern => {
                let info = self
                    .terms
                    .party
                    .info
                    .as_ref()
                    .map(|info| info.encode(revision));
                shape::raise_result(method, &raw, revision, info.as_deref())
            }
        };
        match shaped {
            Ok(Cow::Borrowed(_)) | Err(_) => Ok(raw),
            Ok(Cow::Owned(shaped)) => Ok(shaped),
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        job: Job,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<Served, HandlerError> {
        let params: Map<String, Value> = serde_json::from_slice(&job.params)?;
        let Some(method) = job.method else {
            return Err(HandlerError::rpc(-32601, "Method not found"));
        };
        let rounds = self.rounds(&job, method, &params)?;
        let context = Context {
            call: Arc::new(CallScope {
                id: job.id,
                name: job.name,
                pact: job.pact,
                progress_token: job.progress_token,
                session,
                outbox,
                rounds: Mutex::new(rounds),
                changes: Arc::clone(&self.changes),
                task: None,
            }),
        };
        let served = self.run(method, &params, &context).await;
        match served {
            Err(HandlerError(Kind::Interrupted)) => self.ask_back(method, &params, &context),
            other => other,
        }
    }

    async fn run(
        self: &Arc<Self>,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        match method {
            Method::ToolsList => self.list("tools", &self.registry.tools, params, |e| &e.tool),
            Method::PromptsList => {
                self.list("prompts", &self.registry.prompts, params, |e| &e.prompt)
            }
            Method::ResourcesList => {
                self.list("resources", &self.registry.resources, params, |e| {
                    &e.resource
                })
            }
            Method::ResourceTemplatesList => {
                let all = &self.registry.templates;
                self.list("resourceTemplates", all, params, |e| &e.template)
            }
            Method::ToolsCall => self.call_tool(params, context).await,
            Method::PromptsGet => self.get_prompt(params, context).await,
            Method::ResourcesRead => self.read_resource(params, context).await,
            Method::CompletionComplete => self.complete(params, context).await,
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => self
                .check_uri(params)
                .map(|()| Served::Result(String::from("{}"))),
            Method::LoggingSetLevel => {
                let level = text(params, "level")?;
                mcpact_spec::LogLevel::parse(level)
                    .map(|_| Served::Result(String::from("{}")))
                    .ok_or_else(|| {
                        HandlerError::invalid_params(format!("`{level}` is not a log level"))
                    })
            }
            Method::SubscriptionsListen => {
                let scope = Scope::Request(context.call.id.clone());
                let outbox = context.call.outbox.0.clone();
                self.changes.add(&context.call.session, scope, outbox);
                forever().await
            }
            Method::TasksGet
            | Method::TasksResult
            | Method::TasksList
            | Method::TasksCancel
            | Method::TasksUpdate => self
                .tasks
                .serve(method, params, context)
                .await
                .map(Served::Final),
            _ => Err(HandlerError::rpc(-32601, "Method not found")),
        }
    }

    /// One page of a list; a cursor is the position where the next page begins.
    fn list<E, I: Serialize>(
        &self,
        key: &str,
        entries: &[E],
        params: &Map<String, Value>,
        item: impl Fn(&E) -> &I,
    ) -> Result<Served, HandlerError> {
        let start = match params.get("cursor") {
            None | Some(Value::Null) => 0,
            Some(cursor) => position(cursor, entries.len())?,
        };
        let size = self.settings.page_size.max(1);
        let page: Vec<&I> = entries.iter().skip(start).take(size).map(item).collect();
        let mut result = json!({ key: page });
        if start + size < entries.len() {
            result["nextCursor"] = Value::from(URL_SAFE_NO_PAD.encode((start + size).to_string()));
        }
        Served::of(&result)
    }

    async fn call_tool(
        self: &Arc<Self>,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let name = text(params, "name")?;
        let Some(entry) = self.registry.tool(name) else {
            return Err(HandlerError::invalid_params(format!(
                "Unknown tool: {name}"
            )));
        };
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => json!({}),
            Some(arguments) => arguments.clone(),
        };
        if let Some(problem) = invalid(entry.input.as_ref(), &arguments) {
            let is_result = context
                .pact()
                .revision()
                .has(Feature::ArgumentErrorsAreResults);
            let text = format!("Invalid arguments for tool {name}: {problem}");
            return if is_result {
                Served::of(&ToolResult::error(text))
            } else {
                Err(HandlerError::invalid_params(text))
            };
        }
        let is_task = self.is_task(entry, params, context)?;
        let arguments = match &entry.gather {
            // A core task answers at once, so that its questions are part of it.
            Some(gather) if !is_task || context.pact().era() == Era::Modern => {
                gather.call(arguments, context.clone()).await?
            }
            Some(_) | None => arguments,
        };
        if is_task {
            let (gather, run) = (entry.gather.clone(), entry.run.clone());
            let gathers_inside = context.pact().era() == Era::Legacy;
            let work = move |context: Context| {
                let work = async move {
                    let arguments = match gather.filter(|_| gathers_inside) {
                        Some(gather) => gather.call(arguments, context.clone()).await?,
                        None => arguments,
                    };
                    run.call(arguments, context).await
                };
                Box::pin(work) as _
            };
            return self.tasks.start(params, context, work).map(Served::Final);
        }
        let result = run_tool(entry, arguments, context.clone()).await?;
        Served::of(&result)
    }

    /// Whether this call is to be a task.
    fn is_task(
        &self,
        entry: &ToolEntry,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<bool, HandlerError> {
        let pact = context.pact();
        let support = entry.tool.supports_tasks();
        if pact.era() == Era::Modern {
            // The extension is directed by the server: a client that declared it takes what comes.
            let has_extension = pact.lacking(Extension::Tasks).is_none();
            return match (support, has_extension) {
                (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(false),
                (TaskSupport::Optional | TaskSupport::Required, true) => Ok(true),
                (TaskSupport::Required, false) => {
                    let required = json!({"extensions": { Extension::Tasks.id(): {} }});
                    Err(HandlerError::rpc(
                        ErrorCode::MissingClientCapability.code(),
                        "Missing required client capability",
                    )
                    .with_data(json!({ "requiredCapabilities": required })))
                }
            };
        }
        let support = match support {
            TaskSupport::Forbidden => task_rule::TaskSupport::Forbidden,
            TaskSupport::Optional => task_rule::TaskSupport::Optional,
            TaskSupport::Required => task_rule::TaskSupport::Required,
        };
        let wish = if params.contains_key("task") {
            Wish::Task
        } else {
            Wish::Plain
        };
        task_rule::judge(pact, support, wish, Demand::ByTool)
            .map(|wish| wish == Wish::Task)
            .map_err(|refusal| HandlerError(Kind::Refused(Box::new(refusal))))
    }

    async fn get_prompt(
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

    async fn read_resource(
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
                    return Err(HandlerError::no_resource(uri));
                };
                entry.read.call((uri, variables), context.clone()).await?
            }
        };
        Served::of(&json!({ "contents": contents }))
    }

    fn check_uri(&self, params: &Map<String, Value>) -> Result<(), HandlerError> {
        let uri = text(params, "uri")?;
        let is_known = self
            .registry
            .resources
            .iter()
            .any(|entry| entry.resource.uri == uri)
            || self
                .registry
                .templates
                .iter()
                .any(|entry| entry.matcher.matches(uri).is_some());
        if is_known {
            Ok(())
        } else {
            Err(HandlerError::no_resource(uri))
        }
    }

    async fn complete(
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

    /// What a modern client brings back from earlier rounds.
    fn rounds(
        &self,
        job: &Job,
        method: Method,
        params: &Map<String, Value>,
    ) -> Result<Rounds, HandlerError> {
        if job.pact.era() == Era::Legacy || !method.may_ask_for_input() {
            return Ok(Rounds::default());
        }
        let opened = match params.get("requestState") {
            None | Some(Value::Null) => super::seal::Opened::default(),
            Some(state) => state
                .as_str()
                .and_then(|state| {
                    self.sealer
                        .open(state, binding(method, params), unix_now())
                        .ok()
                })
                .ok_or_else(|| {
                    HandlerError::invalid_params("`requestState` is not valid for this request")
                })?,
        };
        let mut answers = opened.answers;
        if let Some(Value::Object(responses)) = params.get("inputResponses") {
            answers.extend(responses.clone());
        }
        Ok(Rounds {
            answers,
            round: opened.round,
            ..Rounds::default()
        })
    }

    /// The result that asks a modern client for input.
    fn ask_back(
        &self,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let mut rounds = context.rounds();
        let open = std::mem::take(&mut rounds.open);
        let used = std::mem::take(&mut rounds.used);
        let expires = unix_now() + self.settings.input_timeout.as_secs();
        let state = self
            .sealer
            .seal(binding(method, params), rounds.round + 1, used, expires)
            .ok_or_else(|| HandlerError::failed("the state cannot be sealed"))?;
        let result = json!({
            "resultType": "input_required",
            "inputRequests": open,
            "requestState": state,
        });
        Ok(Served::Final(result.to_string()))
    }
}

/// What a state is good for. Without authentication every caller is the same one.
fn binding<'a>(method: Method, params: &Map<String, Value>) -> Binding<'a> {
    Binding {
        principal: "",
        method: method.as_str(),
        digest: digest(params),
    }
}

pub(super) async fn run_tool(
    entry: &ToolEntry,
    arguments: Value,
    context: Context,
) -> Result<ToolResult, HandlerError> {
    let result = match entry.run.call(arguments, context).await {
        Ok(result) => result,
        Err(HandlerError(Kind::Failed(text))) => return Ok(ToolResult::error(text)),
        Err(other) => return Err(other),
    };
    if result.failed() {
        return Ok(result);
    }
    let structured = result.structured_content.as_ref();
    match (&entry.output, structured) {
        (Some(_), None) => Ok(ToolResult::error(
            "the tool gave no structured content, which its output schema promises",
        )),
        (Some(schema), Some(value)) => Ok(match invalid(Some(schema), value) {
            Some(problem) => ToolResult::error(format!(
                "the tool's result does not fit its output schema: {problem}"
            )),
            None => result,
        }),
        (None, _) => Ok(result),
    }
}

/// The first thing that a schema has against a value.
fn invalid(schema: Option<&jsonschema::Validator>, value: &Value) -> Option<String> {
    let error = schema?.iter_errors(value).next()?;
    let place = error.instance_path().to_string();
    let place = if place.is_empty() {
        String::from("the arguments")
    } else {
        format!("`{place}`")
    };
    Some(format!("{place}: {error}"))
}

pub(super) fn text<'p>(params: &'p Map<String, Value>, key: &str) -> Result<&'p str, HandlerError> {
    params
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| HandlerError::invalid_params(format!("`{key}` must be a string")))
}

fn position(cursor: &Value, length: usize) -> Result<usize, HandlerError> {
    let decoded = cursor
        .as_str()
        .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let number = decoded.and_then(|bytes| String::from_utf8(bytes).ok()?.parse::<usize>().ok());
    number
        .filter(|at| *at < length)
        .ok_or_else(|| HandlerError::invalid_params("Invalid cursor"))
}
