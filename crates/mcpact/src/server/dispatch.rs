//! From a request to its result.

mod listen;
mod params;
mod plain;
mod rounds;
mod shaping;
mod tools;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytestring::ByteString;
use futures_util::FutureExt;
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::{Dialect, WireError};
use mcpact_engine::server::{Scope, ServerTerms};
use mcpact_spec::Method;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use self::params::Params;
pub(super) use self::shaping::Signatures;

use super::backend::{Backend, Opening, Welcome};
use super::builder::Settings;
use super::change::Changes;
use super::client_log;
use super::context::{CallScope, Context};
use super::error::{HandlerError, Kind};
use super::job::Job;
use super::outbox::Outbox;
use super::registry::Registry;
use super::seal::Sealer;
use super::session::Session;
use super::task::TaskStore;
use super::visitor::Visitor;

/// Everything that the connections of a server share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) registry: Registry,
    pub(super) terms: Arc<ServerTerms>,
    pub(super) signatures: Signatures,
    pub(super) settings: Settings,
    pub(super) sealer: Sealer,
    pub(super) changes: Arc<Changes>,
    pub(super) tasks: TaskStore,
    pub(super) stopping: watch::Sender<bool>,
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

impl Backend for Core {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        &self.terms
    }

    async fn welcome(&self, _: Opening<'_>, _: &Visitor) -> Result<Welcome, WireError> {
        Ok(Welcome::on(&self.terms))
    }

    fn opened(&self, session: &Arc<Session>, outbox: Outbox) {
        self.changes.add(session, Scope::Connection, outbox);
    }

    fn observe(&self, _: &Arc<Session>, _: Method, _: Option<&str>) {}

    fn fell_silent(&self, _: &Visitor) {}

    fn left(&self, _: &Visitor) {}

    fn mirrored(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        let entry = self.registry.tool(tool)?;
        Some(Arc::clone(&entry.headers))
    }

    fn stop(&self) {
        self.stopping.send_replace(true);
    }

    async fn serve(
        self: Arc<Self>,
        job: Job,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        let revision = job.pact.revision();
        let dialect = Dialect {
            revision,
            errors: self.terms.policy.errors,
        };
        let method = job.method;
        let served = AssertUnwindSafe(self.attempt(job, session, outbox)).catch_unwind();
        // What a handler says when it panics may hold anything; its log has it, the client does not.
        let served = served
            .await
            .unwrap_or_else(|_| Err(HandlerError::failed_inside()));
        let served = served.map_err(|error| error.on_wire(dialect))?;
        Ok(served.shaped(method, revision, &self.signatures).into())
    }
}

impl Core {
    async fn attempt(
        self: &Arc<Self>,
        job: Job,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<Served, HandlerError> {
        let raw = job.params.clone();
        let params = Params::of(&raw)?;
        let Some(method) = job.method else {
            return Err(HandlerError::rpc(-32601, "Method not found"));
        };
        let rounds = self.rounds(&job, session.principal(), method, &params)?;
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
        match client_log::serving(&context, self.run(method, &params, &context)).await {
            Err(HandlerError(Kind::Interrupted)) if method.may_ask_for_input() => {
                self.ask_back(method, &params.tree()?, &context)
            }
            other => other,
        }
    }

    async fn run(
        self: &Arc<Self>,
        method: Method,
        params: &Params<'_>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        if method == Method::ToolsCall {
            return self.call_tool(params, context).await;
        }
        let params = &params.tree()?;
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
            Method::PromptsGet => self.get_prompt(params, context).await,
            Method::ResourcesRead => self.read_resource(params, context).await,
            Method::CompletionComplete => self.complete(params, context).await,
            Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => self
                .check_uri(text(params, "uri")?)
                .map(|()| Served::Result(String::from("{}"))),
            Method::LoggingSetLevel => {
                let level = text(params, "level")?;
                mcpact_spec::LogLevel::parse(level)
                    .map(|_| Served::Result(String::from("{}")))
                    .ok_or_else(|| {
                        HandlerError::invalid_params(format!("`{level}` is not a log level"))
                    })
            }
            Method::SubscriptionsListen => self.listen(params, context).await,
            Method::TasksList => self.list("tasks", &self.tasks.of(context), params, |task| task),
            Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
                self.tasks
                    .serve(method, params, context)
                    .await
                    .map(Served::Final)
            }
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
