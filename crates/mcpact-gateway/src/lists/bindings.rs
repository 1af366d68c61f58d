//! Bindings through which lists are fetched: for one client, for all, or of an instance that no client uses.

use std::sync::Arc;

use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_wire::envelope::Params;

use crate::connection::pool::ConnectionPool;
use crate::error::ServeError;
use crate::exchange::refuse;
use crate::supervisor::{InstanceSharing, StartCause};
use crate::sync::lock;
use crate::target::Target;
use crate::upstream::UpstreamServer;
use crate::upstream::accept::{LegacyHello, ReachedServer, mapped};
use crate::upstream::affinity::AffinityKey;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::SavedHello;

/// Accepts a client of the aggregator at one server.
pub(crate) async fn receive(
    server: &UpstreamServer,
    hello: ClientHello<'_>,
    identity: &ClientIdentity,
) -> Result<Arc<ServerBinding>, ServeError> {
    let ClientSetup { state, .. } = server.admit(hello, identity).await?;
    let binding = state.and_then(|state| state.bound().cloned());
    binding.ok_or_else(|| {
        let why = "invalid client information in the request";
        let revision = Revision::newest(Era::Modern);
        refuse(ErrorCode::InvalidParams, why, revision)
    })
}

/// Returns true for an HTTP server, which needs no local process.
pub(crate) fn is_remote(server: &UpstreamServer) -> bool {
    matches!(server.shared.target, Target::Url { .. })
}

/// Returns a binding for requests on behalf of all clients, if the server is modern and running.
pub(crate) fn shared_binding(server: &UpstreamServer) -> Option<Arc<ServerBinding>> {
    let pool = server.modern()?;
    let connection = pool.open_connection()?;
    let is_modern = connection.revision().era() == Era::Modern;
    is_modern.then(|| ServerBinding::of_pool(pool))
}

/// Returns the binding of modern clients with these capabilities, if their legacy server is running.
pub(crate) fn running_binding(
    server: &UpstreamServer,
    capabilities: &str,
    identity: &ClientIdentity,
) -> Option<Arc<ServerBinding>> {
    running(server.known_pool(capabilities, identity)?)
}

/// Returns a binding to an instance that no client uses, for clients that sent `hello`. Starts it if necessary.
pub(crate) async fn internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Result<Arc<ServerBinding>, ServeError> {
    let declared = declared(hello);
    let raw = declared.raw().to_owned();
    let group = server.group(internal_key(principal, &raw), || {
        let offer = server.offer(declared, server.gateway_info());
        let shared = Arc::clone(&server.shared);
        ConnectionPool::new(shared, offer, InstanceSharing::Internal, 1)
    });
    let reached = server.reach(group.pool.first(), Some(&group.pool), StartCause::Request);
    let ReachedServer { slot, pool, .. } = reached.await.map_err(ServeError::from)?;
    Ok(ServerBinding::new(slot, pool, None, None))
}

/// Returns the binding to an instance that no client uses, if it is running.
pub(crate) fn running_internal_binding(
    server: &UpstreamServer,
    hello: &SavedHello,
    principal: &str,
) -> Option<Arc<ServerBinding>> {
    let declared = declared(hello);
    let key = internal_key(principal, declared.raw());
    let group = lock(&server.groups).find(key)?;
    running(Arc::clone(&group.pool))
}

fn running(pool: Arc<ConnectionPool>) -> Option<Arc<ServerBinding>> {
    pool.open_connection()?;
    Some(ServerBinding::of_pool(pool))
}

fn internal_key<'a>(principal: &'a str, capabilities: &'a str) -> AffinityKey<'a> {
    AffinityKey {
        sharing: InstanceSharing::Internal,
        ..AffinityKey::shared(principal, capabilities)
    }
}

/// Returns the capabilities of a client as a legacy server gets them.
fn declared(hello: &SavedHello) -> CapabilitySet {
    match hello {
        SavedHello::Request { capabilities, .. } => mapped(capabilities),
        SavedHello::Handshake { params } => {
            let params = Params {
                raw: Some(params),
                ..Params::default()
            };
            let hello = LegacyHello::parse(&params);
            hello.map_or_else(|| mapped("{}"), |hello| hello.mapped())
        }
    }
}
