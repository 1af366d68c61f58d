//! State of a downstream client, kept in its session.

use std::sync::Arc;

use crate::bridge::{Caller, Latecomer, Place};
use crate::hub::Guest;

/// State of a client of a [`Bridge`](crate::Bridge) or [`Hub`](crate::Hub).
#[derive(Clone, Debug)]
pub struct ClientState(pub(crate) ClientKind);

/// Relation of a client to its server or servers.
#[derive(Clone, Debug)]
pub(crate) enum ClientKind {
    /// Bound to one server.
    Bound(Arc<Caller>),
    /// Bound to one server when it first needs it.
    Pending(Arc<Latecomer>),
    /// Bound to the successor of its server.
    Moved(Arc<Place>),
    /// Client of several servers.
    Aggregate(Arc<Guest>),
}

impl ClientState {
    pub(crate) const fn bound(&self) -> Option<&Arc<Caller>> {
        match &self.0 {
            ClientKind::Bound(caller) => Some(caller),
            ClientKind::Pending(_) | ClientKind::Moved(_) | ClientKind::Aggregate(_) => None,
        }
    }

    pub(crate) const fn pending(&self) -> Option<&Arc<Latecomer>> {
        match &self.0 {
            ClientKind::Pending(latecomer) => Some(latecomer),
            ClientKind::Bound(_) | ClientKind::Moved(_) | ClientKind::Aggregate(_) => None,
        }
    }

    pub(crate) const fn aggregate(&self) -> Option<&Arc<Guest>> {
        match &self.0 {
            ClientKind::Aggregate(guest) => Some(guest),
            ClientKind::Bound(_) | ClientKind::Pending(_) | ClientKind::Moved(_) => None,
        }
    }
}

impl From<Arc<Caller>> for ClientState {
    fn from(caller: Arc<Caller>) -> Self {
        Self(ClientKind::Bound(caller))
    }
}
