//! Dispatch of requests to handlers.

mod features;
mod input_rounds;
mod listen;
mod params;
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
pub(super) use self::shaping::ServerInfoTable;

use super::backend::{Backend, ClientHello, ClientSetup};
use super::backend_request::BackendRequest;
use super::client_identity::ClientIdentity;
use super::client_log;
use super::context::{CallScope, Context};
use super::handler_error::{HandlerError, Kind};
use super::outbox::Outbox;
use super::registry::Registry;
use super::seal::Sealer;
use super::session::Session;
use super::settings::Settings;
use super::subscribers::Subscribers;
use super::task_store::TaskStore;

/// State shared by the connections of a server.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) registry: Registry,
    pub(super) terms: Arc<ServerTerms>,
    pub(super) server_info: ServerInfoTable,
    pub(super) settings: Settings,
    pub(super) sealer: Sealer,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) tasks: TaskStore,
    pub(super) stopping: watch::Sender<bool>,
}

/// Result of a request, before it is shaped for the client's revision.
enum Served {
    /// Ordinary result.
    Result(String),
    /// Result in its final shape.
    Final(String),
}

impl Served {
    fn of(value: &impl Serialize) -> Result<Self, HandlerError> {
        Ok(Self::Result(serde_json::to_string(value)?))
    }
}

impl Backend for Core {
    type State = ();

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn terms(&self) -> &Arc<ServerTerms> {
        &self.terms
    }

    async fn accept_client(
        &self,
        _: ClientHello<'_>,
        _: &ClientIdentity,
    ) -> Result<ClientSetup, WireError> {
        Ok(ClientSetup::with_terms(&self.terms))
    }

    fn opened(&self, session: &Arc<Session>, outbox: Outbox) {
        self.subscribers.add(session, Scope::Connection, outbox);
    }

    fn observe(&self, _: &Arc<Session>, _: Method, _: Option<&str>) {}

    fn input_closed(&self, _: &ClientIdentity) {}

    fn disconnected(&self, _: &ClientIdentity) {}

    fn mirrored_params(&self, tool: &str) -> Option<Arc<[Annotation]>> {
        let entry = self.registry.tool(tool)?;
        Some(Arc::clone(&entry.headers))
    }

    fn stop(&self) {
        self.stopping.send_replace(true);
    }

    async fn serve(
        self: Arc<Self>,
        request: BackendRequest,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<ByteString, WireError> {
        let revision = request.pact.revision();
        let dialect = Dialect {
            revision,
            errors: self.terms.policy.errors,
        };
        let method = request.method;
        let served = AssertUnwindSafe(self.attempt(request, session, outbox)).catch_unwind();
        // A panic message may contain anything: it goes to the log, not to the client.
        let served = served
            .await
            .unwrap_or_else(|_| Err(HandlerError::internal()));
        let served = served.map_err(|error| error.on_wire(dialect))?;
        Ok(served.shaped(method, revision, &self.server_info).into())
    }
}

impl Core {
    async fn attempt(
        self: &Arc<Self>,
        request: BackendRequest,
        session: Arc<Session>,
        outbox: Outbox,
    ) -> Result<Served, HandlerError> {
        let raw = request.params.clone();
        let params = Params::of(&raw)?;
        let Some(method) = request.method else {
            return Err(HandlerError::rpc(-32601, "Method not found"));
        };
        let rounds = self.restore_rounds(&request, session.principal(), method, &params)?;
        let context = Context {
            call: Arc::new(CallScope {
                id: request.id,
                name: request.name,
                pact: request.pact,
                progress_token: request.progress_token,
                session,
                outbox,
                rounds: Mutex::new(rounds),
                subscribers: Arc::clone(&self.subscribers),
                task: None,
            }),
        };
        match client_log::in_scope(&context, self.run(method, &params, &context)).await {
            Err(HandlerError(Kind::Interrupted)) if method.may_ask_for_input() => {
                self.request_input(method, &params.tree()?, &context)
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
            Method::TasksList => {
                self.list("tasks", &self.tasks.list_for(context), params, |task| task)
            }
            Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
                self.tasks
                    .serve(method, params, context)
                    .await
                    .map(Served::Final)
            }
            _ => Err(HandlerError::rpc(-32601, "Method not found")),
        }
    }

    /// Returns one page of a list; a cursor is the index of the next page's first item.
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
