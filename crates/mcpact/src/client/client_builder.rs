//! Builder of clients.

use std::fmt;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{ClientTerms, EraMode, EraVerdict};
use mcpact_engine::policy::Policy;
use mcpact_spec::{LogLevel, Revision};
use mcpact_transport::address::shown;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::link::Link;
use mcpact_transport::{tcp, websocket};
use mcpact_wire::model::implementation::Implementation;
use serde_json::{Map, Value, json};

use super::Client;
use super::client_error::{AnswerError, ClientError, DEFAULT_TIMEOUT};
use super::era_cache::EraCache;
use super::handlers::{Handlers, Notification, checked, typed};
use super::session::{Session, Sessions};
use super::shared::{Limits, Shared};
use crate::connection::Endpoint;
use crate::model::{
    CreateMessageRequest, CreateMessageResult, ElicitResult, FormRequest, Root, UrlRequest,
};
use crate::validation::Validation;

/// Builder of a client. The declared capabilities follow from its handlers.
#[must_use]
pub struct ClientBuilder {
    info: Implementation,
    handlers: Handlers,
    policy: Policy,
    mode: EraMode,
    floor: Option<Revision>,
    prior: Option<EraVerdict>,
    era_cache: Option<EraCache>,
    limits: Limits,
    silence_limit: Option<Duration>,
    headers: Vec<(String, String)>,
    http: HttpSettings,
    log_level: Option<LogLevel>,
    validation: Validation,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("info", &self.info)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(name: &str, version: &str) -> Self {
        Self {
            info: Implementation::new(name, version),
            handlers: Handlers::default(),
            policy: Policy::default(),
            mode: EraMode::Auto,
            floor: None,
            prior: None,
            era_cache: None,
            limits: Limits {
                timeout: DEFAULT_TIMEOUT,
                pages: 1000,
                rounds: 10,
            },
            silence_limit: None,
            headers: Vec::new(),
            http: HttpSettings::default(),
            log_level: None,
            validation: Validation::Off,
        }
    }

    /// Sets the eras to try.
    pub const fn mode(mut self, mode: EraMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the oldest accepted revision.
    pub const fn floor(mut self, floor: Revision) -> Self {
        self.floor = Some(floor);
        self
    }

    /// Sets the policy of the engine.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the era of the server, if known.
    pub const fn prior(mut self, verdict: EraVerdict) -> Self {
        self.prior = Some(verdict);
        self
    }

    /// Sets the cache of server eras. It covers URLs and commands; an open connection has no key.
    pub fn era_cache(mut self, era_cache: EraCache) -> Self {
        self.era_cache = Some(era_cache);
        self
    }

    /// Sets the timeout of a request; progress restarts it.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Sets how long a server may stay silent at startup.
    pub const fn silence_limit(mut self, limit: Duration) -> Self {
        self.silence_limit = Some(limit);
        self
    }

    /// Sets the maximum number of pages of a list.
    pub const fn page_limit(mut self, pages: usize) -> Self {
        self.limits.pages = pages;
        self
    }

    /// Adds a header to every HTTP request, such as `Authorization`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets limits and timeouts of HTTP.
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.http = settings;
        self
    }

    /// Sets the minimum level of log messages: requested once on a legacy connection, with every request on a modern
    /// one.
    pub const fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets the validation of messages against the official schemas.
    pub fn validation(mut self, validation: Validation) -> Self {
        self.validation = validation;
        self
    }

    /// Sets the handler for `sampling/createMessage` and declares `sampling`.
    pub fn on_sampling<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, AnswerError>> + Send + 'static,
    {
        self.handlers.sampling = Some(checked(CreateMessageRequest::check, handler));
        self
    }

    /// Declares that the sampling handler supports tools.
    pub const fn sampling_tools(mut self) -> Self {
        self.handlers.sampling_tools = true;
        self
    }

    /// Sets the handler for forms and declares `elicitation`.
    pub fn on_elicitation<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(FormRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, AnswerError>> + Send + 'static,
    {
        self.handlers.form = Some(checked(FormRequest::check, handler));
        self
    }

    /// Sets the handler for URL elicitation and declares `elicitation.url`.
    pub fn on_url_elicitation<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(UrlRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, AnswerError>> + Send + 'static,
    {
        self.handlers.url = Some(typed::<UrlRequest, _, _, _>(handler));
        self
    }

    /// Sets fixed roots and declares `roots`.
    pub fn roots(self, roots: Vec<Root>) -> Self {
        self.on_roots(move || {
            let roots = roots.clone();
            async move { Ok(roots) }
        })
    }

    /// As [`roots`](Self::roots), with a handler that is called for each request.
    pub fn on_roots<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Root>, AnswerError>> + Send + 'static,
    {
        self.handlers.roots = Some(typed(move |_: Value| {
            let asking = handler();
            async move { Ok(json!({ "roots": asking.await? })) }
        }));
        self
    }

    /// Adds an observer of all negotiated notifications, in order. It must not block.
    pub fn on_notification(
        mut self,
        observer: impl Fn(&Notification) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.observers.push(Arc::new(observer));
        self
    }

    /// Declares the tasks extension: a modern server may answer any call with a task, which is awaited.
    pub const fn tasks(mut self) -> Self {
        self.handlers.tasks = true;
        self
    }

    /// Declares an extension with its settings.
    pub fn extension(mut self, id: impl Into<String>, settings: Map<String, Value>) -> Self {
        self.handlers.extensions.insert(id.into(), settings.into());
        self
    }

    /// Declares an experimental feature.
    pub fn experimental(mut self, name: impl Into<String>, settings: Map<String, Value>) -> Self {
        self.handlers
            .experimental
            .insert(name.into(), settings.into());
        self
    }

    /// Connects and negotiates.
    ///
    /// # Errors
    /// The server is unreachable, requires credentials, or the negotiation fails.
    pub async fn connect(self, target: impl Into<Target>) -> Result<Client, ClientError> {
        let target = target.into();
        let key = self.cache_key(&target);
        let (known, mut probe) = match (&self.era_cache, &key) {
            (Some(era_cache), Some(key)) => {
                let (known, probe) = era_cache.lookup(key).await;
                (known, Some(probe))
            }
            (Some(_) | None, _) => (None, None),
        };
        let prior = self.prior.or(known);
        let connected = self.connect_with(target, prior).await;
        if let Some(probe) = &mut probe {
            match &connected {
                Ok((_, Some(verdict))) => probe.learn(*verdict),
                Ok((_, None)) => {}
                Err(_) => probe.forget(),
            }
        }
        connected.map(|(client, _)| client)
    }

    /// Returns the key of a target in the era cache; it contains no secrets.
    fn cache_key(&self, target: &Target) -> Option<String> {
        match target {
            Target::Url(url) => {
                let mut hasher = DefaultHasher::new();
                url.hash(&mut hasher);
                self.headers.hash(&mut hasher);
                Some(format!("{} {:016x}", shown(url), hasher.finish()))
            }
            #[cfg(unix)]
            Target::Child(command) => {
                let mut hasher = DefaultHasher::new();
                command.args.hash(&mut hasher);
                command.env.hash(&mut hasher);
                let program = command.program.to_string_lossy();
                let modified = std::fs::metadata(&command.program)
                    .and_then(|metadata| metadata.modified())
                    .ok();
                modified.hash(&mut hasher);
                Some(format!("{program} {:016x}", hasher.finish()))
            }
            Target::Link(_) => None,
        }
    }

    async fn connect_with(
        self,
        target: Target,
        prior: Option<EraVerdict>,
    ) -> Result<(Client, Option<EraVerdict>), ClientError> {
        let name = target.name();
        let unreachable = |source| ClientError::unreachable(&name, source);
        let mut terms = ClientTerms::new(self.info, self.handlers.capabilities(), self.policy);
        terms.mode = self.mode;
        terms.floor = self.floor;
        terms.init_timeout = self.limits.timeout;
        terms.silence_limit = self.silence_limit.unwrap_or(terms.silence_limit);
        let shared = Arc::new(Shared::new(
            &name,
            terms,
            self.handlers,
            self.limits,
            self.log_level,
            self.validation,
        ));
        let mut http = None;
        let endpoint = match target {
            Target::Url(url) => {
                let mut settings = self.http;
                for (name, value) in &self.headers {
                    settings = settings.header(name, value).map_err(unreachable)?;
                }
                match Scheme::of(&url) {
                    Scheme::Http => {
                        let (url, settings) = http.insert((url, settings));
                        Endpoint::Http { url, settings }
                    }
                    Scheme::WebSocket => {
                        let link = websocket::connect(&url, &settings).await;
                        Endpoint::Link(Box::new(link.map_err(unreachable)?))
                    }
                    Scheme::Tcp => {
                        let host = url.trim_start_matches("tcp://").trim_end_matches('/');
                        Endpoint::Link(Box::new(tcp::connect(host).await.map_err(unreachable)?))
                    }
                }
            }
            #[cfg(unix)]
            Target::Child(ref command) => Endpoint::Command(command),
            Target::Link(link) => Endpoint::Link(Box::new(link)),
        };
        let (session, verdict) = Session::open(&shared, endpoint, prior).await?;
        let sessions = Sessions::new(Arc::clone(&shared), session, http);
        let client = Client { shared, sessions };
        if let Some(level) = self.log_level {
            // Many servers have no log.
            if let Err(error) = client.set_log_level(level).await {
                tracing::debug!(%error, "cannot set the log level");
            }
        }
        Ok((client, verdict))
    }
}

#[cfg(unix)]
use mcpact_transport::stdio::child::ChildCommand;

/// Target of a connection: URL, command or open connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// URL: `http://`, `https://`, `ws://`, `wss://`, or `tcp://` for line-based connections.
    Url(String),
    /// Command to start. It is restarted if it exits on the first modern request.
    #[cfg(unix)]
    Child(ChildCommand),
    /// Open line-based connection, such as a socket or memory.
    Link(Link),
}

/// Transport of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// HTTP; unknown schemes are rejected there.
    Http,
    /// WebSocket.
    WebSocket,
    /// Lines over TCP.
    Tcp,
}

impl Scheme {
    pub(super) fn of(url: &str) -> Self {
        match url.split_once("://") {
            Some(("ws" | "wss", _)) => Self::WebSocket,
            Some(("tcp", _)) => Self::Tcp,
            Some(_) | None => Self::Http,
        }
    }
}

impl Target {
    /// Returns the name for errors and logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Url(url) => format!("`{}`", shown(url)),
            #[cfg(unix)]
            Self::Child(command) => format!("`{}`", command.name),
            Self::Link(_) => "the server".to_owned(),
        }
    }
}

impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned())
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::Url(url)
    }
}

impl From<&String> for Target {
    fn from(url: &String) -> Self {
        Self::Url(url.clone())
    }
}

impl From<Link> for Target {
    fn from(link: Link) -> Self {
        Self::Link(link)
    }
}

#[cfg(unix)]
impl From<ChildCommand> for Target {
    fn from(command: ChildCommand) -> Self {
        Self::Child(command)
    }
}
