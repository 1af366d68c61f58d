//! Handover to a successor: unsent calls of a replaced server move to its successor.

pub(crate) mod removed;
pub(crate) mod subscriptions;

use std::sync::{Arc, OnceLock, Weak};

use bytestring::ByteString;
use mcpact::server::backend::{BackendRequest, ClientHello, ClientIdentity, ClientSetup};
use mcpact_spec::Side;
use tokio::sync::Mutex;

use crate::downstream::sink::ClientSink;
use crate::downstream::{ClientKind, ClientState};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::retry::{Attempt, Retry, RetryPolicy};
use crate::suspended::registry::SuspendedRegistry;
use crate::tasks::hosted;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::SavedHello;
use crate::upstream::{UpstreamServer, tool_filter};

/// Maximum number of former servers to remember for their suspended calls.
const FORMER: usize = 8;

/// Reason why a call has no result at this server; it may continue at the successor.
#[derive(Debug)]
pub(crate) enum Unserved {
    /// The error goes to the client.
    Failed(ServeError),
    /// The call did not reach the server, and a successor has replaced it.
    MoveToSuccessor,
}

impl From<ServeError> for Unserved {
    fn from(error: ServeError) -> Self {
        Self::Failed(error)
    }
}

/// Handover of a server to its successor, as one call sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handover {
    /// True if another server has replaced this one.
    pub(crate) has_successor: bool,
    /// Number of times the call was moved to a successor.
    pub(crate) moves: usize,
}

impl Handover {
    /// No successor is tried.
    pub(crate) const NONE: Self = Self {
        has_successor: false,
        moves: 0,
    };
}

impl Unserved {
    /// Decides if a failed call moves to the successor of its server.
    pub(crate) fn of(error: ServeError, handover: impl FnOnce() -> Handover) -> Self {
        // Most errors do not concern a handover: look up the successor only if needed.
        let handover = match error.is_retired() {
            true => handover(),
            false => Handover::NONE,
        };
        let attempt = Attempt {
            cause: error.retry_cause(),
            delivery: error.delivery(),
            state_lost: false,
            has_successor: handover.has_successor,
            retries: handover.moves,
        };
        match RetryPolicy::REMOTE.decide(attempt) {
            Retry::Successor => Self::MoveToSuccessor,
            Retry::FreshConnection | Retry::IfServerChanged | Retry::No => Self::Failed(error),
        }
    }
}

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

/// Serves an unsent request at the successors of this server.
pub(crate) async fn attend_onward(
    server: &UpstreamServer,
    job: BackendRequest,
    sink: ClientSink,
) -> Result<ByteString, ServeError> {
    for moves in 1..=RetryPolicy::REMOTE.successors {
        let Some(next) = successor(server) else {
            break;
        };
        tool_filter::check_served(&next, job.method, &job.params, job.pact.revision())?;
        let goes_on = || Handover {
            has_successor: is_succeeded(&next),
            moves,
        };
        let undone = match caller_at(&next, &job, &sink).await {
            Ok(binding) => {
                let (job, sink) = (job.clone(), sink.clone());
                match next.attend_for(job, binding, sink, goes_on).await {
                    Ok(raw) => return Ok(raw),
                    Err(undone) => undone,
                }
            }
            Err(error) => Unserved::of(error, goes_on),
        };
        if let Unserved::Failed(error) = undone {
            return Err(error);
        }
    }
    Err(server.shared.error(UpstreamErrorKind::Retired).into())
}

/// Returns the binding of a client of this server to the next one.
async fn caller_at(
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
