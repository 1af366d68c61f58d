//! Saved clients: introductions that are repeated at further servers, or made when an idle server is first needed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::Method;
use mcpact_wire::envelope::{Meta, Params};
use tokio::sync::OnceCell;

use crate::downstream::sink::{ClientSink, MessageRewriter, WeakClientSink};
use crate::downstream::{ClientKind, ClientState};
use crate::error::ServeError;
use crate::handover::SuccessorBinding;
use crate::lists::bindings;
use crate::pipeline;
use crate::sync::lock;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::{LegacyHello, modern_revision};
use crate::upstream::binding::ServerBinding;

/// Introduction of a client.
#[derive(Debug)]
pub(crate) enum SavedHello {
    /// Parameters of a legacy handshake.
    Handshake { params: Box<str> },
    /// Declaration in the requests of a modern client.
    Request {
        capabilities: Box<str>,
        info: Option<Box<str>>,
    },
}

impl SavedHello {
    pub(crate) fn of(hello: &ClientHello<'_>) -> Self {
        match hello {
            ClientHello::Handshake(params) => Self::Handshake {
                params: Box::from(params.raw.unwrap_or("{}")),
            },
            ClientHello::Request(params) => Self::of_request(&params.meta),
        }
    }

    pub(crate) fn of_request(meta: &Meta<'_>) -> Self {
        Self::Request {
            capabilities: Box::from(meta.client_capabilities.unwrap_or("{}")),
            info: meta.client_info.map(Box::from),
        }
    }

    /// Introduces the client to a server, which is started if needed.
    pub(crate) async fn bind(
        &self,
        server: &UpstreamServer,
        identity: &ClientIdentity,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let mut params = Params::default();
        let hello = match self {
            Self::Handshake { params: raw } => {
                params.raw = Some(raw);
                ClientHello::Handshake(&params)
            }
            Self::Request { capabilities, info } => {
                params.meta.client_capabilities = Some(capabilities);
                params.meta.client_info = info.as_deref();
                ClientHello::Request(&params)
            }
        };
        bindings::receive(server, hello, identity).await
    }
}

/// Client with everything that is repeated when it is bound to another server.
#[derive(Debug)]
pub(crate) struct SavedClient {
    pub(crate) hello: SavedHello,
    pub(crate) identity: ClientIdentity,
    /// Sink of a legacy client, set when its session opens.
    pub(crate) sink: OnceLock<WeakClientSink>,
    is_initialized: AtomicBool,
    /// Last `logging/setLevel` request of a legacy client.
    level: Mutex<Option<BackendRequest>>,
    /// Binding that is created on demand: to the server of a pending client, or to a server that changed its era.
    pub(crate) binding: OnceCell<Arc<ServerBinding>>,
    /// Binding to the successor of the server.
    pub(crate) successor: SuccessorBinding,
}

impl SavedClient {
    pub(crate) fn new(hello: SavedHello, identity: &ClientIdentity) -> Self {
        Self {
            hello,
            identity: identity.clone(),
            sink: OnceLock::new(),
            is_initialized: AtomicBool::new(false),
            level: Mutex::default(),
            binding: OnceCell::new(),
            successor: SuccessorBinding::default(),
        }
    }

    /// Sets the sink of a legacy client.
    pub(crate) fn set_sink(&self, sink: WeakClientSink) {
        // A session opens once.
        let _ = self.sink.set(sink);
    }

    fn sink(&self) -> Option<ClientSink> {
        self.sink.get().and_then(WeakClientSink::upgrade)
    }

    /// Processes a notification of the client.
    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_initialized.store(true, Ordering::Release);
        }
        if let Some(binding) = self.binding.get() {
            binding.observe(method, params);
        }
    }

    /// Returns true if the client is ready for notifications and not bound yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_initialized.load(Ordering::Acquire) && !self.binding.initialized()
    }

    /// Saves a `logging/setLevel` request for servers that the client is bound to later.
    pub(crate) fn save_level(&self, request: &BackendRequest) {
        *lock(&self.level) = Some(without_progress(request));
    }

    /// Binds the client to a server, which is started if needed.
    pub(crate) async fn bind(
        &self,
        server: &UpstreamServer,
        rewriter: Option<Arc<dyn MessageRewriter>>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.hello.bind(server, &self.identity).await?;
        if let Some(sink) = self.sink() {
            let sink = match rewriter {
                Some(rewriter) => sink.with_rewriter(rewriter),
                None => sink,
            };
            server.register_session(&binding, &sink);
        }
        if self.is_initialized.load(Ordering::Acquire) {
            binding.observe(Method::Initialized, None);
        }
        Ok(binding)
    }

    /// Like [`bind`](Self::bind), and repeats the saved `logging/setLevel` request.
    pub(crate) async fn bind_with_level(
        &self,
        server: &Arc<UpstreamServer>,
        rewriter: Option<Arc<dyn MessageRewriter>>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.bind(server, rewriter).await?;
        let level = lock(&self.level).clone();
        if let (Some(level), Some(sink)) = (level, self.sink()) {
            // A server without logs needs no level.
            let setting = pipeline::forward_to(server, Arc::clone(&binding), level, sink);
            let _ = Box::pin(setting).await;
        }
        Ok(binding)
    }

    /// Returns the binding of a pending client to its server, which is started if needed.
    pub(crate) async fn binding_to(
        &self,
        server: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        if let Some(binding) = self.binding.get() {
            return Ok(Arc::clone(binding));
        }
        let bind = || self.bind_with_level(server, None);
        Box::pin(self.binding.get_or_try_init(bind)).await.cloned()
    }
}

/// Returns a copy of a request that reports no progress.
pub(crate) fn without_progress(request: &BackendRequest) -> BackendRequest {
    BackendRequest {
        progress_token: None,
        ..request.clone()
    }
}

/// Starts a background job that binds waiting clients whenever a modern server is started for another client, and
/// sends them the change notifications that they missed.
pub(crate) fn bind_on_connection(server: &Arc<UpstreamServer>) {
    let mut connections = server.shared.info_cache.connections();
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        while connections.changed().await.is_ok() {
            let Some(server) = server.upgrade() else {
                return;
            };
            // Waiting clients alone do not start the server.
            let Some(_awake) = bindings::shared_binding(&server).and_then(|binding| binding.hold())
            else {
                continue;
            };
            for client in server.direct_clients.waiting_clients() {
                match client.binding_to(&server).await {
                    Ok(binding) => {
                        if let Some(emulated) = binding.emulated() {
                            emulated.resync(&binding);
                        }
                    }
                    Err(error) => tracing::debug!(
                        error = &*error.message(),
                        "change notifications of a server are not available yet"
                    ),
                }
            }
        }
    });
}

/// Accepts a client without starting its server. Returns `None` if the server runs, if its profile is unknown, or if
/// it does not belong to a gateway, which alone stops idle servers.
pub(crate) fn accept_pending(
    server: &UpstreamServer,
    hello: &ClientHello<'_>,
    identity: &ClientIdentity,
) -> Option<ClientSetup<ClientState>> {
    if !server.shared.info_cache.has_listener() || server.is_running_for(hello, identity) {
        return None;
    }
    let profile = server.shared.info_cache.profile()?;
    let revision = match hello {
        ClientHello::Handshake(params) => LegacyHello::parse(params)?.revision,
        ClientHello::Request(params) => modern_revision(params),
    };
    let introduction = &profile.introduction;
    let terms = server.terms_of(introduction, profile.revision, revision, identity);
    let client = Arc::new(SavedClient::new(SavedHello::of(hello), identity));
    Some(ClientSetup {
        terms: Arc::new(terms),
        state: Some(ClientState(ClientKind::Pending(client))),
    })
}
