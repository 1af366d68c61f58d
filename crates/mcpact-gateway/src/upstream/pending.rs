//! Clients of idle servers: accepted with the cached server profile, bound on demand.

use std::sync::Arc;

use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::{Era, Revision};

use crate::downstream::{ClientKind, ClientState};
use crate::lists::server_list;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::LegacyHello;
use crate::upstream::saved_client::{SavedClient, SavedHello};

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
            let Some(_awake) =
                server_list::shared_binding(&server).and_then(|binding| binding.hold())
            else {
                continue;
            };
            for client in server.direct_clients.waiting_clients() {
                match client.binding_to(&server).await {
                    Ok(binding) => {
                        if let Some(emulated) = binding.emulated() {
                            emulated.missed(&binding);
                        }
                    }
                    Err(error) => tracing::debug!(
                        error = &*error.message(),
                        "a client hears of no changes yet"
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
    let client = Arc::new(SavedClient::new(SavedHello::of(hello), identity));
    Some(ClientSetup {
        terms: Arc::new(terms),
        state: Some(ClientState(ClientKind::Pending(client))),
    })
}
