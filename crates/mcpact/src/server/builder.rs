use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::policy::Policy;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::{Listening as Granting, ServerTerms};
use mcpact_engine::task_rule::TaskRequirement;
use mcpact_spec::Revision;
use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token};
use mcpact_transport::link::Link;
use mcpact_wire::model::implementation::Implementation;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::backend::HttpFront;
use super::change::Changes;
use super::context::Context;
use super::dispatch::{Core, Signatures};
use super::ending::Ending;
use super::error::HandlerError;
use super::lines;
use super::principal::{Principals, nobody};
use super::registry::{
    CompletionRequest, Handler, PromptEntry, Registry, ResourceEntry, TemplateEntry, ToolEntry,
};
use super::seal::{SealKeys, Sealer};
use super::task::TaskStore;
use super::tcp::ListeningLines;
use super::uri_template::UriTemplate;
use super::watch::Watch;
use crate::conformity::Validation;
use crate::error::Error;
use crate::model::{
    Completion, Prompt, PromptResult, Resource, ResourceContents, ResourceTemplate, Tool,
    ToolResult,
};

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// What can be set beside what is registered.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine's choices, supported revisions among them.
    pub policy: Policy,
    /// How many items a page of a list holds.
    pub page_size: usize,
    /// How long a question to a modern client may stay open.
    pub input_timeout: Duration,
    /// The keys that seal what modern clients carry between the rounds of a question; random ones if
    /// none are given. Several servers behind one address need the same.
    pub seal_keys: Option<SealKeys>,
    /// Whether clients of 2025-11-25 may call tools only as tasks, or as each tool says; it takes a
    /// tool that runs as a task for the server to declare them at all.
    pub task_demand: TaskRequirement,
    /// How many legacy HTTP sessions may live at a time.
    pub session_limit: usize,
    /// After how long without any request or open stream a legacy HTTP session ends.
    pub session_idle: Duration,
    /// Where HTTP clients find the server.
    pub path: String,
    /// Whether 2024-11-05 clients may use the HTTP+SSE transport at `/sse`.
    pub http_sse: bool,
    /// Whether clients may use a WebSocket at `/ws`.
    pub websocket: bool,
    /// Names and origins beside loopback's.
    pub guard: Guard,
    /// What HTTP clients must show to be let in; needed on every address that is not loopback's.
    pub token: Option<Token>,
    /// Whether the server may listen on other addresses than loopback's without a token: whoever can
    /// reach it can use it then.
    pub allow_remote: bool,
    /// The certificate with which HTTP goes over TLS.
    pub tls: Option<TlsIdentity>,
    /// On whose behalf HTTP requests come.
    pub principals: Principals,
    /// What the HTTP server endures.
    pub limits: Limits,
    /// Whether messages are held against the official schemas.
    pub validation: Validation,
    /// Who counts what is negotiated, refused and dropped.
    pub watch: Option<Arc<dyn Watch>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            page_size: 1000,
            input_timeout: Duration::from_secs(600),
            seal_keys: None,
            task_demand: TaskRequirement::ByTool,
            session_limit: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            path: String::from("/mcp"),
            http_sse: false,
            websocket: false,
            guard: Guard::default(),
            token: None,
            allow_remote: false,
            tls: None,
            principals: Principals::default(),
            limits: Limits::default(),
            validation: Validation::Off,
            watch: None,
        }
    }
}

/// A server: register what it has, then serve it.
#[derive(Debug)]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    registry: Registry,
    settings: Settings,
    problem: Option<String>,
}

impl Server {
    /// A server that has nothing yet.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            info: Implementation::new(name, version),
            instructions: None,
            registry: Registry::default(),
            settings: Settings::default(),
            problem: None,
        }
    }

    /// Tells clients how to use this server.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Serves only these revisions.
    #[must_use]
    pub fn revisions(mut self, revisions: &[Revision]) -> Self {
        self.settings.policy.version.supported = RevisionSet::of(revisions);
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Handlers may log to clients.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.registry.logs = true;
        self
    }

    /// A tool whose arguments are a type; the schema follows from it.
    #[must_use]
    pub fn tool<A, F, Fut, R>(self, name: &str, description: &str, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<ToolResult>,
    {
        let mut schema = schemars::schema_for!(A).to_value();
        if let Some(object) = schema.as_object_mut() {
            object.remove("title");
            object
                .entry("properties")
                .or_insert_with(|| Value::Object(Map::new()));
        }
        let tool = Tool::new(name, schema).description(description);
        let run = Arc::new(run);
        self.tool_with(tool, move |arguments, context| {
            let run = Arc::clone(&run);
            async move {
                let arguments = serde_json::from_value(arguments)
                    .map_err(|error| HandlerError::invalid_params(error.to_string()))?;
                run(arguments, context).await
            }
        })
    }

    /// A tool that is described whole, with raw arguments.
    #[must_use]
    pub fn tool_with<F, Fut, R>(mut self, tool: Tool, run: F) -> Self
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<ToolResult>,
    {
        let run = Handler::new(move |arguments, context| {
            let future = run(arguments, context);
            async move { future.await.map(Into::into) }
        });
        match ToolEntry::new(tool, run) {
            Ok(entry) if self.registry.tool(&entry.tool.name).is_some() => {
                self.problem = Some(format!("tool `{}` is registered twice", entry.tool.name));
            }
            Ok(entry) => self.registry.add_tool(entry),
            Err(problem) => self.problem = Some(problem),
        }
        self
    }

    /// A tool that first gathers what it needs, asking the client where it must, and then works; the
    /// work may run as a task, the questions come before it.
    #[must_use]
    pub fn tool_in_two_steps<G, GFut, F, Fut, R>(self, tool: Tool, gather: G, run: F) -> Self
    where
        G: Fn(Value, Context) -> GFut + Send + Sync + 'static,
        GFut: Future<Output = Result<Value, HandlerError>> + Send + 'static,
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Into<ToolResult>,
    {
        let name = tool.name.clone();
        let mut server = self.tool_with(tool, run);
        let gather = Handler::new(gather);
        server.registry.set_gather(&name, gather);
        server
    }

    /// A resource.
    #[must_use]
    pub fn resource<F, Fut>(mut self, resource: Resource, read: F) -> Self
    where
        F: Fn(String, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceContents>, HandlerError>> + Send + 'static,
    {
        let read = Handler::new(read);
        self.registry
            .resources
            .push(ResourceEntry { resource, read });
        self
    }

    /// A family of resources, described by a template such as `files://{id}`.
    #[must_use]
    pub fn template<F, Fut>(mut self, template: ResourceTemplate, read: F) -> Self
    where
        F: Fn((String, Map<String, Value>), Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<ResourceContents>, HandlerError>> + Send + 'static,
    {
        let matcher = UriTemplate::parse(&template.uri_template);
        let read = Handler::new(read);
        self.registry.templates.push(TemplateEntry {
            template,
            matcher,
            read,
        });
        self
    }

    /// A prompt.
    #[must_use]
    pub fn prompt<F, Fut>(mut self, prompt: Prompt, get: F) -> Self
    where
        F: Fn(Map<String, Value>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<PromptResult, HandlerError>> + Send + 'static,
    {
        let get = Handler::new(get);
        self.registry.prompts.push(PromptEntry { prompt, get });
        self
    }

    /// Completes arguments of prompts and templates.
    #[must_use]
    pub fn completion<F, Fut>(mut self, complete: F) -> Self
    where
        F: Fn(CompletionRequest, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Completion, HandlerError>> + Send + 'static,
    {
        self.registry.completion = Some(Handler::new(complete));
        self
    }

    pub(super) fn build(self) -> Result<Arc<Core>, Error> {
        if let Some(problem) = self.problem {
            return Err(Error::Registration(problem));
        }
        let keys = match &self.settings.seal_keys {
            Some(keys) => keys.clone(),
            None => SealKeys::random()?,
        };
        let capabilities = self.registry.capabilities();
        let mut terms = ServerTerms::new(self.info, capabilities, self.settings.policy.clone());
        terms.instructions = self.instructions;
        terms.listening = Granting::Asked;
        Ok(Arc::new(Core {
            registry: self.registry,
            signatures: Signatures::of(&terms),
            terms: Arc::new(terms),
            settings: self.settings,
            sealer: Sealer::new(&keys),
            changes: Arc::new(Changes::default()),
            tasks: TaskStore::default(),
            stopping: tokio::sync::watch::Sender::new(false),
        }))
    }

    /// Serves one client on standard input and output, until it goes away.
    ///
    /// # Errors
    /// The registration is faulty, or the pipes fail.
    pub async fn serve_stdio(self) -> Result<(), Error> {
        let link = mcpact_transport::stdio::own()?;
        self.on_lines(link, "stdio").await
    }

    /// Serves one client on any carrier of lines, until it goes away.
    ///
    /// # Errors
    /// The registration is faulty, or the carrier fails.
    pub async fn serve(self, link: Link) -> Result<(), Error> {
        self.on_lines(link, "lines").await
    }

    async fn on_lines(self, link: Link, carrier: &'static str) -> Result<(), Error> {
        let ending = Ending::after(self.settings.limits.drain);
        lines::run_apart(self.build()?, link, nobody(), carrier, ending).await
    }

    /// Listens on HTTP; the server runs once [`Listening::run`] is awaited. It answers to the address
    /// itself and to the names that [`Settings::guard`] lists.
    ///
    /// # Errors
    /// The registration is faulty, the address cannot be bound, or others could reach it without a
    /// token.
    pub async fn listen(self, address: SocketAddr) -> Result<Listening, Error> {
        let front = HttpFront::bind(self.build()?, address).await?;
        Ok(Listening { front })
    }

    /// Listens for clients that speak lines over TCP, on loopback only; the server runs once
    /// [`ListeningLines::run`] is awaited.
    ///
    /// # Errors
    /// The registration is faulty, the address is not loopback's, or it cannot be bound.
    pub async fn listen_lines(self, address: SocketAddr) -> Result<ListeningLines, Error> {
        let listener = mcpact_transport::tcp::listen(address).await?;
        let core = self.build()?;
        Ok(ListeningLines { listener, core })
    }
}

/// A server that is bound to its address.
#[derive(Debug)]
pub struct Listening {
    front: HttpFront<Core>,
}

impl Listening {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.front.address()
    }

    /// The address that clients use.
    #[must_use]
    pub fn url(&self) -> String {
        self.front.url()
    }

    /// Serves until `stop` resolves.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        self.front.run(stop).await
    }
}
