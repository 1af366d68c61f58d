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

/// Binding of a client to the successor of its server.
#[derive(Clone, Debug)]
pub(crate) struct MovedBinding {
    pub(crate) server: Arc<UpstreamServer>,
    pub(crate) binding: Arc<ServerBinding>,
}

/// Successor binding of a client with a session, created on demand.
#[derive(Debug, Default)]
pub(crate) struct SuccessorBinding(Mutex<Option<MovedBinding>>);

impl SuccessorBinding {
    /// Returns the binding to this server; the first call creates it.
    pub(crate) async fn to(
        &self,
        server: &Arc<UpstreamServer>,
        meeting: impl Future<Output = Result<Arc<ServerBinding>, ServeError>>,
    ) -> Result<Arc<ServerBinding>, ServeError> {
        let mut place = self.0.lock().await;
        if let Some(place) = place.as_ref().filter(|place| place.is_at(server)) {
            return Ok(Arc::clone(&place.binding));
        }
        let binding = meeting.await?;
        *place = Some(MovedBinding {
            server: Arc::clone(server),
            binding: Arc::clone(&binding),
        });
        Ok(binding)
    }
}

impl MovedBinding {
    fn is_at(&self, server: &Arc<UpstreamServer>) -> bool {
        Arc::ptr_eq(&self.server, server)
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

/// Accepts a new client at the successor of this server.
pub(crate) async fn welcome_onward(
    server: &UpstreamServer,
    hello: ClientHello<'_>,
    identity: &ClientIdentity,
) -> Option<Result<ClientSetup<ClientState>, ServeError>> {
    let next = successor(server)?;
    let welcome = match next.admit(hello, identity).await {
        Ok(welcome) => welcome,
        Err(error) => return Some(Err(error)),
    };
    let ClientSetup { terms, state } = welcome;
    let binding = state.and_then(|state| state.bound().cloned());
    let place = binding.map(|binding| MovedBinding {
        server: next,
        binding,
    });
    Some(Ok(ClientSetup {
        terms,
        state: place.map(|place| ClientState(ClientKind::Moved(Arc::new(place)))),
    }))
}

/// Returns the binding of a client of this server to the next one.
pub(crate) async fn binding_at(
    next: &Arc<UpstreamServer>,
    job: &BackendRequest,
    sink: &ClientSink,
) -> Result<Arc<ServerBinding>, ServeError> {
    let binding = match sink.state().map(|state| &state.0) {
        Some(ClientKind::Pending(pending)) => {
            let bind = pending.bind_with_level(next, None);
            return pending.successor.to(next, bind).await;
        }
        Some(ClientKind::Moved(place)) => Some(Arc::clone(&place.binding)),
        Some(ClientKind::Bound(binding)) => Some(Arc::clone(binding)),
        Some(ClientKind::Aggregate(_)) | None => None,
    };
    match binding
        .as_ref()
        .and_then(|binding| Some((binding, binding.rebind()?)))
    {
        Some((binding, rebind)) => rebind.successor_binding(next, binding).await,
        None => introduced(job).bind(next, sink.identity()).await,
    }
}

/// Returns the declaration of a modern client, taken from its request.
fn introduced(job: &BackendRequest) -> SavedHello {
    let client = job.pact.party(Side::Client);
    let info = client.info.as_deref();
    SavedHello::Request {
        capabilities: Box::from(client.capabilities.raw()),
        info: info.map(|info| info.encode(job.pact.revision()).into()),
    }
}
