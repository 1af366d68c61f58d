//! Clients of idle servers: accepted with the cached server profile, bound on demand.

use std::sync::Arc;

use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::{Era, Method, Revision};
use tokio::sync::OnceCell;

use crate::downstream::{ClientKind, ClientState};
use crate::error::ServeError;
use crate::lists::server_list;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::LegacyHello;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::{SavedClient, SavedHello};

/// Client that was accepted with the cached profile of its server. It is bound to the server by its first request.
#[derive(Debug)]
pub(crate) struct PendingBinding {
    pub(crate) client: SavedClient,
    binding: OnceCell<Arc<ServerBinding>>,
}

impl PendingBinding {
    fn new(hello: &ClientHello<'_>, identity: &ClientIdentity) -> Self {
        Self {
            client: SavedClient::new(SavedHello::of(hello), identity),
            binding: OnceCell::new(),
        }
    }

    pub(crate) fn observe(&self, method: Method, params: Option<&str>) {
        self.client.observe(method);
        if let Some(binding) = self.binding.get() {
            binding.observe(method, params);
        }
    }

    /// Saves the log level that the client requests. Returns false if the server must be informed, too.
    pub(crate) fn save_level(&self, request: &BackendRequest) -> bool {
        self.client.save_level(request);
        !self.binding.initialized()
    }

    /// Returns the client's binding to its server, which is started if needed.
    pub(crate) async fn binding(
        &self,
        server: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let bind = || self.client.bind_with_level(server, None);
        self.binding.get_or_try_init(bind).await.cloned()
    }

    /// Returns true if the client is ready for notifications and not bound yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.client.is_initialized() && !self.binding.initialized()
    }

    /// Binds the client to its running server, and sends it the change notifications that it missed.
    async fn catch_up(&self, server: &Arc<UpstreamServer>) -> Result<(), ServeError> {
        let binding = self.binding(server).await?;
        if let Some(emulated) = binding.emulated() {
            emulated.missed(&binding);
        }
        Ok(())
    }

    /// Returns the client's binding to the successor of its server.
    pub(crate) async fn successor_binding(
        &self,
        server: &Arc<UpstreamServer>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let bind = self.client.bind_with_level(server, None);
        self.client.successor_binding(server, bind).await
    }
}

/// Starts a background job that binds waiting clients whenever a modern server is started for another client.
pub(crate) fn bind_on_connection(server: &Arc<UpstreamServer>) {
    let mut connections = server.shared.info_cache.connections();
    let server = Arc::downgrade(server);
    tokio::spawn(async move {
        while connections.changed().await.is_ok() {
            let Some(server) = server.upgrade() else {
                return;
            };
            // Waiting clients alone do not start the server.
            let Some(_awake) =
                server_list::shared_binding(&server).and_then(|binding| binding.hold())
            else {
                continue;
            };
            for pending in server.direct_clients.pending_bindings() {
                if let Err(error) = pending.catch_up(&server).await {
                    tracing::debug!(
                        error = &*error.message(),
                        "a client hears of no changes yet"
                    );
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
    let profile = server_list::profile(server)?;
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
