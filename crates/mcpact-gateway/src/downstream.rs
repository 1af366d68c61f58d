//! State of a downstream client, kept in its session.

pub(crate) mod client;
pub(crate) mod sink;

use std::sync::Arc;

use crate::downstream::client::DownstreamClient;
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;
use crate::upstream::saved_client::SavedClient;

/// State of a client of an [`UpstreamServer`](crate::UpstreamServer) or [`Aggregator`](crate::Aggregator).
#[derive(Clone, Debug)]
pub struct ClientState(pub(crate) ClientKind);

/// Relation of a client to its server or servers.
#[derive(Clone, Debug)]
pub(crate) enum ClientKind {
    /// Bound to one server, or to its successor if that accepted the client.
    Bound {
        binding: Arc<ServerBinding>,
        successor: Option<Arc<UpstreamServer>>,
    },
    /// Bound to one server when it first needs it.
    Pending(Arc<SavedClient>),
    /// Client of several servers.
    Aggregate(Arc<DownstreamClient>),
}

impl ClientState {
    pub(crate) const fn bound(&self) -> Option<&Arc<ServerBinding>> {
        match &self.0 {
            ClientKind::Bound { binding, .. } => Some(binding),
            _ => None,
        }
    }

    pub(crate) const fn pending(&self) -> Option<&Arc<SavedClient>> {
        match &self.0 {
            ClientKind::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    pub(crate) const fn aggregate(&self) -> Option<&Arc<DownstreamClient>> {
        match &self.0 {
            ClientKind::Aggregate(client) => Some(client),
            _ => None,
        }
    }
}

impl From<Arc<ServerBinding>> for ClientState {
    fn from(binding: Arc<ServerBinding>) -> Self {
        Self(ClientKind::Bound {
            binding,
            successor: None,
        })
    }
}
