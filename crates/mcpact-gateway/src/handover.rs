//! Handover to a successor: unsent calls of a replaced server move to its successor.

pub(crate) mod removed;
pub(crate) mod subscriptions;

use std::sync::{Arc, OnceLock, Weak};

use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::Side;
use tokio::sync::Mutex;

use crate::downstream::sink::ClientSink;
use crate::downstream::{ClientKind, ClientState};
use crate::error::ServeError;
use crate::suspended::registry::SuspendedRegistry;
use crate::tasks::hosted;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::SavedHello;

/// Maximum number of former servers to remember for their suspended calls.
const FORMER: usize = 8;

/// Links of a server to its successor and to its predecessors.
#[derive(Debug, Default)]
pub(crate) struct HandoverLinks {
    next: OnceLock<Weak<UpstreamServer>>,
    /// Suspended calls of predecessors, the latest first. A client that resumes one of them continues it or gets its
    /// outcome.
    before: OnceLock<Vec<Arc<SuspendedRegistry>>>,
}

/// Successor of a client's server and the client's binding to it, created on demand.
#[derive(Debug, Default)]
pub(crate) struct SuccessorBinding(Mutex<Option<(Arc<UpstreamServer>, Arc<ServerBinding>)>>);

impl SuccessorBinding {
    /// Returns the binding to this server; the first call creates it.
    pub(crate) async fn to(
        &self,
        server: &Arc<UpstreamServer>,
        bind: impl Future<Output = Result<Arc<ServerBinding>, ServeError>>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let mut known = self.0.lock().await;
        if let Some((successor, binding)) = &*known
            && Arc::ptr_eq(successor, server)
        {
            return Ok(Arc::clone(binding));
        }
        let binding = bind.await?;
        *known = Some((Arc::clone(server), Arc::clone(&binding)));
        Ok(binding)
    }
}

/// Sets the successor that serves clients in place of this server.
pub(crate) fn succeeded_by(server: &UpstreamServer, next: &Arc<UpstreamServer>) {
    // Each server has at most one successor and one predecessor.
    let _ = server.succession.next.set(Arc::downgrade(next));
    let suspended_registries = suspended_registries(server).take(FORMER).cloned().collect();
    let _ = next.succession.before.set(suspended_registries);
    let _ = next.hosted.set(Arc::clone(hosted::hosted(server)));
}

/// Returns the registries of suspended calls: this server's own, then those of its predecessors.
pub(crate) fn suspended_registries(
    server: &UpstreamServer,
) -> impl Iterator<Item = &Arc<SuspendedRegistry>> {
    let before = server.succession.before.get().into_iter().flatten();
    std::iter::once(&server.suspended).chain(before)
}

/// Returns the last server in the chain of successors.
pub(crate) fn successor(server: &UpstreamServer) -> Option<Arc<UpstreamServer>> {
    let next = |server: &UpstreamServer| server.succession.next.get().and_then(Weak::upgrade);
    let mut last = next(server)?;
    while let Some(one) = next(&last) {
        last = one;
    }
    Some(last)
}

/// Returns true if this server has a successor.
pub(crate) fn is_succeeded(server: &UpstreamServer) -> bool {
    successor(server).is_some()
}

/// Accepts a new client at the successor of its server.
pub(crate) async fn admit_at(
    next: Arc<UpstreamServer>,
    hello: ClientHello<'_>,
    identity: &ClientIdentity,
) -> Result<ClientSetup<ClientState>, ServeError> {
    let mut setup = next.admit(hello, identity).await?;
    if let Some(ClientState(ClientKind::Bound { successor, .. })) = &mut setup.state {
        *successor = Some(next);
    }
    Ok(setup)
}

/// Returns the binding of a client of this server to the next one.
pub(crate) async fn binding_at(
    next: &Arc<UpstreamServer>,
    job: &BackendRequest,
    sink: &ClientSink,
) -> Result<Arc<ServerBinding>, ServeError> {
    let state = sink.state();
    if let Some(pending) = state.and_then(ClientState::pending) {
        let bind = pending.bind_with_level(next, None);
        return pending.successor.to(next, bind).await;
    }
    let binding = state.and_then(ClientState::bound);
    match binding.and_then(|binding| Some((binding, binding.rebind()?))) {
        Some((binding, rebind)) => {
            let bind = rebind.bind(next, binding);
            rebind.client.successor.to(next, bind).await
        }
        // Each request of a modern client contains its declaration.
        None => {
            let client = job.pact.party(Side::Client);
            let info = client.info.as_deref();
            let hello = SavedHello::Request {
                capabilities: client.capabilities.raw().into(),
                info: info.map(|info| info.encode(job.pact.revision()).into()),
            };
            hello.bind(next, sink.identity()).await
        }
    }
}
