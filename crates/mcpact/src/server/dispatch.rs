//! Dispatch of requests to handlers.

mod shaping;
mod tools;

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use mcpact_engine::classify::param_headers::Annotation;
use mcpact_engine::refusal::{Dialect, WireError};
use mcpact_engine::server::listen::ListenFilter;
use mcpact_engine::server::{Scope, ServerTerms};
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, Method};
use mcpact_wire::raw::visit;
use mcpact_wire::{scan, tree};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

use super::backend::{Backend, BackendRequest, ClientHello, ClientSetup};
use super::builder::Settings;
use super::client_identity::ClientIdentity;
use super::client_log;
use super::context::{CallScope, Context, Rounds};
use super::handler_error::HandlerError;
use super::outbox::Outbox;
use super::raw_params::RawParams;
use super::registry::{CompletionRequest, Registry};
use super::seal::{Binding, OpenedState, Sealer, digest, unix_now};
use super::session::Session;
use super::subscribers::Subscribers;
use super::task_store::TaskStore;
use crate::lock;

pub(super) use self::shaping::ServerInfoTable;

/// State shared by the connections of a server.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) registry: Registry,
    pub(super) terms: Arc<ServerTerms>,
    /// Terms for legacy clients that cannot be told apart.
    pub(super) terms_without_task_list: Arc<ServerTerms>,
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
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> Result<ClientSetup, WireError> {
        Ok(ClientSetup::with_terms(match hello {
            ClientHello::Handshake(_) if identity.owner().is_empty() => {
                &self.terms_without_task_list
            }
            ClientHello::Handshake(_) | ClientHello::Request(_) => &self.terms,
        }))
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
        let rounds = self.restore_rounds(&request, session.principal().text(), method, &params)?;
        let returns_questions = request.pact.era() == Era::Modern && method.may_ask_for_input();
        let (_alive, lifetime) = watch::channel(());
        let context = Context {
            call: Arc::new(CallScope {
                id: request.id,
                name: request.name,
                pact: request.pact,
                progress_token: request.progress_token,
                session,
                outbox,
                rounds: Mutex::new(rounds),
                asked: Notify::new(),
                lifetime: returns_questions.then_some(lifetime),
                subscribers: Arc::clone(&self.subscribers),
                task: None,
            }),
        };
        let run = client_log::in_scope(&context, self.run(method, &params, &context));
        if !returns_questions {
            return run.await;
        }
        let mut run = pin!(run);
        loop {
            // The handler first: one poll may ask several questions, or withdraw them.
            match select(run.as_mut(), pin!(context.call.asked.notified())).await {
                Either::Left((served, _)) => return served,
                Either::Right(_) if lock(&context.call.rounds).open.is_empty() => {}
                Either::Right(_) => return self.request_input(method, &params.tree()?, &context),
            }
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
            Method::SkillsList => self.list("skills", &self.registry.skills.entries, params, |e| e),
            Method::SkillsGet => self.get_skill(text(params, "uri")?),
            Method::ResourcesDirectoryRead => self.read_directory(params),
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
                if let Some(file) = self.registry.skills.file(&uri) {
                    return Served::of(&json!({ "contents": file.contents() }));
                }
                let Some((entry, variables)) = found else {
                    return Err(HandlerError::resource_not_found(uri));
                };
                entry.read.call((uri, variables), context.clone()).await?
            }
        };
        Served::of(&json!({ "contents": contents }))
    }

    fn get_skill(&self, uri: &str) -> Result<Served, HandlerError> {
        match self.registry.skills.entry(uri) {
            Some(entry) => Served::of(&json!({ "skill": entry })),
            None => Err(HandlerError::invalid_params(format!(
                "Unknown skill: {uri}"
            ))),
        }
    }

    fn read_directory(&self, params: &Map<String, Value>) -> Result<Served, HandlerError> {
        let uri = text(params, "uri")?;
        let children = self.registry.skills.children(uri);
        if children.is_empty() {
            let text = format!("{uri} is not a directory resource");
            return Err(HandlerError::invalid_params(text));
        }
        self.list("resources", &children, params, |child| child)
    }

    fn check_uri(&self, uri: &str) -> Result<(), HandlerError> {
        if self.registry.has_resource(uri) {
            Ok(())
        } else {
            Err(HandlerError::resource_not_found(uri))
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

    /// Serves a listen request until its client ends it or the server stops.
    async fn listen(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let call = &context.call;
        let scope = Scope::Request(call.id.clone());
        let params = serde_json::to_string(params)?;
        let wanted = ListenFilter::parse(Some(&params)).unwrap_or_default();
        let granted = self.granted(wanted, context).encode();
        let granted = format!(r#"{{"notifications":{granted}}}"#);
        let method = Method::SubscriptionsAcknowledged;
        if let Some(first) = call
            .session
            .encode_notification(scope.clone(), method, &granted)
        {
            let (session, outbox) = (&call.session, &call.outbox);
            // A disconnected client is no longer served.
            let _ = self
                .subscribers
                .add_after(first, session, scope, outbox)
                .await;
        }
        let mut stopping = self.stopping.subscribe();
        if stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
        let id: Value = serde_json::from_str(call.id.raw())?;
        let result = json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: id}});
        Ok(Served::Final(result.to_string()))
    }

    /// Returns the filter granted to a client, without resources and tasks that it cannot access.
    fn granted(&self, wanted: ListenFilter, context: &Context) -> ListenFilter {
        let mut granted = wanted.granted(context.pact());
        granted.uris.retain(|uri| self.registry.has_resource(uri));
        granted.tasks.retain(|task| self.tasks.has(task, context));
        granted
    }

    /// Restores the answers that a modern client sends back from earlier rounds.
    fn restore_rounds(
        &self,
        request: &BackendRequest,
        principal: &str,
        method: Method,
        params: &Params<'_>,
    ) -> Result<Rounds, HandlerError> {
        if request.pact.era() == Era::Legacy || !method.may_ask_for_input() {
            return Ok(Rounds::default());
        }
        let opened = match params.value("requestState")? {
            None => OpenedState::default(),
            Some(state) => {
                let binding = binding(principal, method, &params.tree()?);
                let opened = state
                    .as_str()
                    .and_then(|state| self.sealer.open_state(state, binding, unix_now()));
                opened.ok_or_else(|| {
                    HandlerError::invalid_params("`requestState` is not valid for this request")
                })?
            }
        };
        let mut answers = opened.answers;
        if let Some(Value::Object(responses)) = params.value("inputResponses")? {
            answers.extend(responses);
        }
        Ok(Rounds {
            answers,
            round: opened.round,
            ..Rounds::default()
        })
    }

    /// Builds the result that asks a modern client for input.
    fn request_input(
        &self,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let principal = context.call.session.principal().text();
        let binding = binding(principal, method, params);
        let mut rounds = lock(&context.call.rounds);
        let open = std::mem::take(&mut rounds.open);
        let used = std::mem::take(&mut rounds.used);
        let expires = unix_now() + self.settings.input_timeout.as_secs();
        let state = self
            .sealer
            .seal_state(binding, rounds.round + 1, used, expires)
            .ok_or_else(|| HandlerError::failed("cannot seal the state"))?;
        let result = json!({
            "resultType": "input_required",
            "inputRequests": open,
            "requestState": state,
        });
        Ok(Served::Final(result.to_string()))
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

/// Returns the binding of a sealed state.
fn binding<'a>(principal: &'a str, method: Method, params: &Map<String, Value>) -> Binding<'a> {
    Binding {
        principal,
        method: method.as_str(),
        digest: digest(params),
    }
}

/// Parameters without `_meta`, which the engine has read. Values stay raw until a tree is needed.
#[derive(Debug, Default)]
struct Params<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Params<'a> {
    fn of(raw: &'a RawParams) -> Result<Self, HandlerError> {
        match raw.call() {
            Some((name, arguments)) => Ok(Self {
                members: vec![
                    (Cow::Borrowed("name"), name),
                    (Cow::Borrowed("arguments"), arguments),
                ],
            }),
            None => Self::parse(raw),
        }
    }

    fn parse(raw: &'a str) -> Result<Self, HandlerError> {
        let mut members = Vec::with_capacity(4);
        visit(raw, |key, value| {
            if key != "_meta" {
                members.push((key, value));
            }
        })
        .map_err(|error| unreadable(&error))?;
        Ok(Self { members })
    }

    /// Returns the raw value of a member; of duplicate names the last one counts, as in a parsed tree.
    fn get(&self, key: &str) -> Option<&'a str> {
        let mut members = self.members.iter().rev();
        members.find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// Returns the value of a member; `null` counts as absent.
    fn value(&self, key: &str) -> Result<Option<Value>, HandlerError> {
        let raw = self.get(key).filter(|raw| *raw != "null");
        raw.map(parse_tree).transpose()
    }

    fn text(&self, key: &str) -> Result<Cow<'a, str>, HandlerError> {
        self.get(key)
            .and_then(scan::text)
            .ok_or_else(|| HandlerError::invalid_params(format!("`{key}` must be a string")))
    }

    /// Parses all members.
    fn tree(&self) -> Result<Map<String, Value>, HandlerError> {
        let mut tree = Map::with_capacity(self.members.len());
        for (key, raw) in &self.members {
            tree.insert(key.clone().into_owned(), parse_tree(raw)?);
        }
        Ok(tree)
    }
}

fn parse_tree(raw: &str) -> Result<Value, HandlerError> {
    tree::tree(raw).map_err(|error| unreadable(&error))
}

fn unreadable(error: &scan::ScanError) -> HandlerError {
    HandlerError::invalid_params(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_omit_metadata() {
        let raw = r#"{"name":"a\"b","_meta":{"a":[1,{"b":2}]},"arguments":{"_meta":1},"n":null}"#;
        let params = Params::parse(raw).unwrap();
        let expected = serde_json::json!({"name": "a\"b", "arguments": {"_meta": 1}, "n": null});
        assert_eq!(Value::Object(params.tree().unwrap()), expected);
        assert_eq!(params.text("name").unwrap(), "a\"b");
        assert_eq!(
            params.value("arguments").unwrap().as_ref(),
            expected.get("arguments")
        );
        assert_eq!(params.value("n").unwrap(), None);
        assert!(params.text("n").is_err() && params.text("x").is_err());
        assert!(Params::parse("[]").is_err());
    }

    #[test]
    fn last_duplicate_member_counts() {
        let params = Params::parse(r#"{"name":"a","name":"b"}"#).unwrap();
        assert_eq!(params.text("name").unwrap(), "b");
        assert_eq!(params.tree().unwrap()["name"], "b");
    }
}
