use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::policy::Policy;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::{Listening as Granting, ServerTerms};
use mcpact_engine::task_rule::TaskRequirement;
use mcpact_spec::{Method, Revision};
use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token, Tokens};
use mcpact_transport::link::Link;
use mcpact_transport::tcp::Listener;
use mcpact_wire::model::implementation::Implementation;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::backend::{Backend, HttpListener};
use super::client_identity::{Principal, PrincipalSource};
use super::connection::{self, SessionEnd};
use super::context::Context;
use super::dispatch::{Core, ServerInfoTable};
use super::handler_error::HandlerError;
use super::registry::{
    CompletionRequest, Handler, PromptEntry, Registry, ResourceEntry, TaskListing, TemplateEntry,
    ToolEntry,
};
use super::seal::{SealKeys, Sealer};
use super::skills::Skill;
use super::subscribers::Subscribers;
use super::task_store::TaskStore;
use super::uri_template::UriTemplate;
use crate::error::Error;
use crate::model::{
    Completion, Prompt, PromptResult, Resource, ResourceContents, ResourceTemplate, Tool,
    ToolResult,
};
use crate::validation::Validation;

/// Arguments of a tool without parameters.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub struct NoArgs {}

/// Builder of a server: register handlers, then serve.
#[derive(Debug)]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    registry: Registry,
    settings: Settings,
    problem: Option<String>,
}

impl Server {
    /// Creates a server without handlers.
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

    /// Sets the instructions for clients.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Restricts the supported revisions.
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

    /// Declares logging, so that handlers may log to clients.
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.registry.logs = true;
        self
    }

    /// Adds a tool with typed arguments; the schema is derived from the type.
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

    /// Adds a tool with a full description and raw arguments.
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

    /// Adds a tool that first gathers input, with questions to the client, and then works. The work may run as a
    /// task; the questions come before it.
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

    /// Adds a resource.
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

    /// Adds a skill. Its `SKILL.md` is listed as a resource, for clients of every revision.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        let manual = self.registry.skills.add(skill);
        let contents = manual.contents();
        self.resource(manual.resource, move |_, _| {
            std::future::ready(Ok(contents.clone()))
        })
    }

    /// Adds a template of resources, such as `files://{id}`.
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

    /// Adds a prompt.
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

    /// Sets the completion handler for arguments of prompts and templates.
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
        let terms_of = |listing| {
            let (info, policy) = (self.info.clone(), self.settings.policy.clone());
            let mut terms = ServerTerms::new(info, self.registry.capabilities(listing), policy);
            terms.instructions.clone_from(&self.instructions);
            terms.listening = Granting::Asked;
            terms
        };
        let terms = terms_of(TaskListing::Declared);
        let terms_without_task_list = terms_of(TaskListing::Undeclared);
        Ok(Arc::new(Core {
            registry: self.registry,
            server_info: ServerInfoTable::of(&terms),
            terms: Arc::new(terms),
            terms_without_task_list: Arc::new(terms_without_task_list),
            settings: self.settings,
            sealer: Sealer::new(&keys),
            subscribers: Arc::new(Subscribers::default()),
            tasks: TaskStore::default(),
            stopping: tokio::sync::watch::Sender::new(false),
        }))
    }

    /// Serves one client on stdin and stdout until it disconnects.
    ///
    /// # Errors
    /// The registration is invalid, or stdio fails.
    pub async fn serve_stdio(self) -> Result<(), Error> {
        let link = mcpact_transport::stdio::own()?;
        self.serve_on(link, "stdio").await
    }

    /// Serves one client on a line-based connection until it disconnects.
    ///
    /// # Errors
    /// The registration is invalid, or the connection fails.
    pub async fn serve(self, link: Link) -> Result<(), Error> {
        self.serve_on(link, "lines").await
    }

    async fn serve_on(self, link: Link, transport: &'static str) -> Result<(), Error> {
        let session_end = SessionEnd::after(self.settings.limits.drain);
        connection::run_spawned(
            self.build()?,
            link,
            Principal::ANONYMOUS,
            transport,
            session_end,
        )
        .await
    }

    /// Binds an HTTP address; the server runs once [`BoundServer::run`] is awaited. Accepted host names are the
    /// address and those of [`Settings::guard`].
    ///
    /// # Errors
    /// The registration is invalid, the address cannot be bound, or it is reachable from other machines without a
    /// token.
    pub async fn listen(self, address: SocketAddr) -> Result<BoundServer, Error> {
        let listener = HttpListener::bind(self.build()?, address).await?;
        Ok(BoundServer { listener })
    }

    /// Listens for line-based clients over TCP, on loopback only; the server runs once [`LineListener::run`] is
    /// awaited.
    ///
    /// # Errors
    /// The registration is invalid, the address is not loopback, or it cannot be bound.
    pub async fn listen_tcp(self, address: SocketAddr) -> Result<LineListener, Error> {
        let listener = mcpact_transport::tcp::listen(address).await?;
        let core = self.build()?;
        Ok(LineListener { listener, core })
    }
}

/// HTTP server bound to an address.
#[derive(Debug)]
pub struct BoundServer {
    listener: HttpListener<Core>,
}

impl BoundServer {
    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// Serves until `stop` resolves.
    ///
    /// # Errors
    /// Accepting connections failed for good.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        self.listener.run(stop).await
    }
}

/// Maximum number of concurrent clients; further ones wait.
const LIMIT: usize = 1000;

/// Pause after a failed accept, for example due to too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// TCP server for line-based clients, bound to an address.
#[derive(Debug)]
pub struct LineListener {
    pub(super) listener: Listener,
    pub(super) core: Arc<Core>,
}

impl LineListener {
    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("tcp://{}", self.address())
    }

    /// Serves until `stop` resolves.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { listener, core } = self;
        let permits = Arc::new(Semaphore::new(LIMIT));
        let mut clients = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut stop => break,
                next = next => next,
            };
            while clients.try_join_next().is_some() {}
            match accepted {
                Ok(link) => {
                    let core = Arc::clone(&core);
                    let session_end = SessionEnd::after(connection::DISCONNECT_GRACE);
                    clients.spawn(async move {
                        if let Err(error) =
                            connection::run(core, link, Principal::ANONYMOUS, "tcp", session_end)
                                .await
                        {
                            tracing::debug!(%error, "connection ended");
                        }
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        core.stop();
    }
}

/// Settings of a server, besides its handlers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy of the engine, with the supported revisions.
    pub policy: Policy,
    /// Number of items on a page of a list.
    pub page_size: usize,
    /// Lifetime of a question to a modern client.
    pub input_timeout: Duration,
    /// Keys for the state that modern clients carry between the rounds of a question; random by default. Servers
    /// behind one URL need the same keys.
    pub seal_keys: Option<SealKeys>,
    /// Rule for task calls by clients of 2025-11-25. The server declares tasks only if a tool supports them.
    pub task_requirement: TaskRequirement,
    /// Maximum number of legacy HTTP sessions. A further one ends a session that no message followed, else the one that is
    /// idle for longest.
    pub session_limit: usize,
    /// Maximum number of legacy HTTP sessions that were opened on the same connection. A further `initialize` is refused,
    /// and the connection is closed.
    pub sessions_per_connection: usize,
    /// Time for the first message of a client after `initialize`; a legacy HTTP session ends without it.
    pub session_start: Duration,
    /// Idle time after which a legacy HTTP session without open streams ends.
    pub session_idle: Duration,
    /// Path of the MCP endpoint.
    pub path: String,
    /// Serves the HTTP+SSE transport of 2024-11-05 at `/sse`.
    pub http_sse: bool,
    /// Serves WebSockets at `/ws`.
    pub websocket: bool,
    /// Host names and origins accepted besides loopback.
    pub guard: Guard,
    /// Bearer token required from HTTP clients; needed on every address but loopback.
    pub token: Option<Token>,
    /// Further bearer tokens, each with the name of its principal.
    pub named_tokens: BTreeMap<String, Token>,
    /// Allows other addresses than loopback without a token: everyone who can reach the server can use it.
    pub allow_remote: bool,
    /// User ids of this machine that are served besides the server's own and root. On Linux, other users are refused
    /// without a token on loopback, and always on a Unix socket.
    pub allow_users: Vec<u32>,
    /// Certificate for HTTPS.
    pub tls: Option<TlsIdentity>,
    /// Source of the principal of HTTP requests.
    pub principals: PrincipalSource,
    /// Limits of the HTTP server.
    pub limits: Limits,
    /// Validation of messages against the official schemas.
    pub validation: Validation,
    /// Observer of negotiations, refusals and dropped messages.
    pub observer: Option<Arc<dyn DecisionObserver>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            page_size: 1000,
            input_timeout: Duration::from_secs(600),
            seal_keys: None,
            task_requirement: TaskRequirement::ByTool,
            session_limit: 10_000,
            sessions_per_connection: 64,
            session_start: Duration::from_secs(10),
            session_idle: Duration::from_secs(30 * 60),
            path: String::from("/mcp"),
            http_sse: false,
            websocket: false,
            guard: Guard::default(),
            token: None,
            named_tokens: BTreeMap::new(),
            allow_remote: false,
            allow_users: Vec::new(),
            tls: None,
            principals: PrincipalSource::default(),
            limits: Limits::default(),
            validation: Validation::Off,
            observer: None,
        }
    }
}

/// Name of the principal of [`Settings::token`].
const TOKEN: &str = "token";

impl Settings {
    /// Returns all accepted tokens.
    pub(super) fn tokens(&self) -> Tokens {
        let mut tokens = Tokens::default();
        if let Some(token) = &self.token {
            tokens.add(TOKEN, token.clone());
        }
        for (name, token) in &self.named_tokens {
            tokens.add(name, token.clone());
        }
        tokens
    }
}

/// Observes decisions about messages. Called on the message path: must not block.
pub trait DecisionObserver: Debug + Send + Sync {
    /// A negotiation with a client ended.
    fn negotiated(&self, negotiation: &Negotiation);

    /// A request was refused before it reached a backend.
    fn refused(&self, refused: Refused);

    /// A message was not sent to a client.
    fn withheld(&self, misuse: &ApiMisuse);

    /// A slow client missed a notification.
    fn missed(&self, method: Method);

    /// A message of a client was not forwarded.
    fn dropped(&self, why: DropCause);
}
