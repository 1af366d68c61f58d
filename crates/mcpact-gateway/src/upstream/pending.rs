//! A client that was told what the server said of itself earlier, and meets it when it first needs it.

use crate::lists::bindings;
use crate::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::downstream::{ClientKind, ClientState};
use crate::error::ServeError;
use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::{Era, Method, Revision};
use mcpact_wire::envelope::{Meta, Params};
use tokio::sync::OnceCell;

use crate::downstream::sink::ClientSink;
use crate::downstream::sink::WeakClientSink;
use crate::handover::SuccessorBinding;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::LegacyHello;
use crate::upstream::binding::ServerBinding;

/// How a client began, for servers that it meets later.
#[derive(Debug)]
pub(crate) enum SavedHello {
    Handshake {
        params: Box<str>,
    },
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
            ClientHello::Request(params) => Self::Request {
                capabilities: Box::from(params.meta.client_capabilities.unwrap_or("{}")),
                info: params.meta.client_info.map(Box::from),
            },
        }
    }

    /// ClientRef stands for the client at a server, which is reached.
    pub(crate) async fn receive(
        &self,
        server: &UpstreamServer,
        identity: &ClientIdentity,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let (raw, meta) = match self {
            Self::Handshake { params } => (&**params, Meta::default()),
            Self::Request { capabilities, info } => {
                let meta = Meta {
                    // Only marks the request as modern.
                    protocol_version: Some(Revision::newest(Era::Modern).as_str()),
                    client_capabilities: Some(capabilities),
                    client_info: info.as_deref(),
                    ..Meta::default()
                };
                ("{}", meta)
            }
        };
        let params = Params {
            raw: Some(raw),
            meta,
            ..Params::default()
        };
        let hello = match self {
            Self::Handshake { .. } => ClientHello::Handshake(&params),
            Self::Request { .. } => ClientHello::Request(&params),
        };
        bindings::receive(server, hello, identity).await
    }
}

/// A client whose server sleeps.
#[derive(Debug)]
pub(crate) struct PendingBinding {
    hello: SavedHello,
    identity: ClientIdentity,
    binding: OnceCell<Arc<ServerBinding>>,
    /// ClientRef stands for it at a server that has taken the place of this one.
    followed: SuccessorBinding,
    /// A legacy client, which stays.
    sink: OnceLock<WeakClientSink>,
    is_ready: AtomicBool,
    /// Which log messages a legacy client wants, as it said it.
    level: Mutex<Option<BackendRequest>>,
}

impl PendingBinding {
    fn new(hello: &ClientHello<'_>, identity: &ClientIdentity) -> Self {
        Self {
            hello: SavedHello::of(hello),
            identity: identity.clone(),
            binding: OnceCell::new(),
            followed: SuccessorBinding::default(),
            sink: OnceLock::new(),
            is_ready: AtomicBool::new(false),
            level: Mutex::default(),
        }
    }

    /// It is there to stay.
    pub(crate) fn settle(&self, sink: &ClientSink) {
        // A session opens once.
        let _ = self.sink.set(sink.downgrade());
    }

    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        if method == Method::Initialized {
            self.is_ready.store(true, Ordering::Release);
        }
        if let Some(binding) = self.binding.get() {
            binding.observe(method, params);
        }
    }

    /// Remembers which log messages it wants; whether that is enough, because it has not profile the server.
    pub(crate) fn wants_logs(&self, job: &BackendRequest) -> bool {
        let mut level = lock(&self.level);
        *level = Some(again(job));
        !self.binding.initialized()
    }

    /// ClientRef stands for it at the server, which is woken if it sleeps.
    pub(crate) async fn binding(
        &self,
        server: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let profile = self.binding.get_or_try_init(|| self.meet(server));
        profile.await.cloned()
    }

    /// Whether it is there to stay, and has not profile the server.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_ready.load(Ordering::Acquire) && !self.binding.initialized()
    }

    /// Somebody else has woken the server: it hears of its changes from here on, and that there may have been some since
    /// it was told what the server said earlier.
    async fn hear(&self, server: &Arc<UpstreamServer>) -> Result<(), ServeError> {
        let binding = self.binding(server).await?;
        if let Some(emulated) = binding.emulated() {
            emulated.resync(&binding);
        }
        Ok(())
    }

    /// The same at the server that has taken the place of this one.
    pub(crate) async fn follow(
        &self,
        server: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        self.followed.to(server, self.meet(server)).await
    }

    async fn meet(&self, server: &Arc<UpstreamServer>) -> Result<Arc<ServerBinding>, ServeError> {
        let binding = self.hello.receive(server, &self.identity).await?;
        let sink = self.sink.get().and_then(WeakClientSink::near);
        if let Some(sink) = &sink {
            server.settle(&binding, sink);
        }
        if self.is_ready.load(Ordering::Acquire) {
            binding.observe(Method::Initialized, None);
        }
        let level = {
            let level = lock(&self.level);
            level.as_ref().map(again)
        };
        if let (Some(level), Some(sink)) = (level, sink) {
            // A server that keeps no log any more has nothing to leave out.
            let _ = server.carry(level, Arc::clone(&binding), sink).await;
        }
        Ok(binding)
    }
}

/// The same request once more.
pub(crate) fn again(job: &BackendRequest) -> BackendRequest {
    BackendRequest {
        id: job.id.clone(),
        method: job.method,
        name: job.name.clone(),
        params: job.params.clone(),
        progress_token: None,
        log_level: job.log_level,
        response_mode: job.response_mode,
        trace: job.trace.clone(),
        pact: Arc::clone(&job.pact),
    }
}

/// Lets clients that wait meet a modern server whenever it is woken by others.
pub(crate) fn introduce_latecomers(server: &Arc<UpstreamServer>) {
    let mut connections = server.shared.info_cache.connections();
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        while connections.changed().await.is_ok() {
            let Some(server) = server.upgrade() else {
                return;
            };
            // It is not woken again for those who only listen.
            let Some(_awake) = bindings::shared_binding(&server).and_then(|binding| binding.hold())
            else {
                continue;
            };
            for pending in server.direct_clients.pending_bindings() {
                if let Err(error) = pending.hear(&server).await {
                    tracing::debug!(
                        error = &*error.message(),
                        "a client hears of no changes yet"
                    );
                }
            }
        }
    });
}

/// On which terms a client is served while the server sleeps, if it is known well enough. Only whoever
/// keeps many servers lets them sleep.
pub(crate) fn welcome_asleep(
    server: &UpstreamServer,
    hello: &ClientHello<'_>,
    identity: &ClientIdentity,
) -> Option<ClientSetup<ClientState>> {
    if !server.shared.info_cache.has_herald() || server.is_awake_for(hello, identity) {
        return None;
    }
    let profile = server.shared.info_cache.profile()?;
    let revision = match hello {
        ClientHello::Handshake(params) => LegacyHello::parse(params)?.revision,
        ClientHello::Request(params) => {
            let named = params.meta.revision();
            named.unwrap_or(Revision::newest(Era::Modern))
        }
    };
    let terms = server.terms_of(
        &profile.introduction,
        profile.revision,
        revision,
        &identity.principal,
    );
    Some(ClientSetup {
        terms: Arc::new(terms),
        state: Some(ClientState(ClientKind::Pending(Arc::new(
            PendingBinding::new(hello, identity),
        )))),
    })
}
