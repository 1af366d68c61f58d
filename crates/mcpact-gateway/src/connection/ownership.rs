//! Exclusive ownership of a shared connection, and its users.
//!
//! A server may store the answers of a client: the roots of one client would be used for the next one. So a client owns a
//! connection from the first answer that need not belong to its call. Other clients get another connection. If there is no
//! capacity for that, or the owner has disconnected, the connection is released: calls in flight finish, then it closes.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use mcpact_engine::pact::Pact;
use mcpact_engine::server::Scope;
use mcpact_spec::{Kind, Method, Side};

use crate::connection::UpstreamConnection;
use crate::downstream::sink::ClientSink;
use crate::exchange::Exchange;
use crate::reason::LOG_OF_WHOM;
use crate::supervisor::{OwnershipRelation, SharingPolicy, sharing_policy};
use crate::sync::lock;
use mcpact::connection::{ServerNotification, ServerRequest, related_task};

/// Identity of a client session; does not keep the session alive.
#[derive(Clone, Debug)]
pub(crate) struct ClientRef(Weak<dyn Any + Send + Sync>);

impl ClientRef {
    pub(crate) fn by(session: Weak<impl Any + Send + Sync>) -> Self {
        Self(session)
    }

    fn is_connected(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl PartialEq for ClientRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// User of a connection.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionUser {
    /// The gateway itself, to start the server or to read its description.
    Gateway,
    /// Client without a session.
    Stranger,
    /// Client with a session.
    Client(ClientRef),
}

/// Relation of a question to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionContext {
    /// The question belongs to this call or task.
    Call,
    /// A call is in flight, and the transport does not show if the question belongs to it.
    Unclear,
    /// The question belongs to no call.
    Outside,
}

/// Returns true if the server may store the answer beyond the call. Servers store roots: they are notified when roots
/// change.
pub(crate) fn is_kept(sharing: SharingPolicy, context: QuestionContext, method: Method) -> bool {
    match (sharing, context) {
        // The connection has one client, or the config shares it between all clients.
        (SharingPolicy::Exclusive | SharingPolicy::All, _)
        | (SharingPolicy::SameAffinity, QuestionContext::Call) => false,
        (SharingPolicy::SameAffinity, QuestionContext::Unclear) => method == Method::RootsList,
        (SharingPolicy::SameAffinity, QuestionContext::Outside) => true,
    }
}

/// Owner of a connection, once it has one.
#[derive(Debug, Default)]
pub(crate) struct Ownership(OnceLock<ClientRef>);

impl Ownership {
    /// Makes this client the owner, before its answer is sent. Returns true if it is the owner.
    pub(crate) fn take(&self, client: &ClientRef) -> bool {
        self.0.get_or_init(|| client.clone()) == client
    }

    /// Returns the owner.
    pub(crate) fn owner(&self) -> Option<&ClientRef> {
        self.0.get()
    }

    /// Returns the relation of the connection to a user.
    pub(crate) fn relation(&self, user: &ConnectionUser) -> OwnershipRelation {
        match (self.owner(), user) {
            (None, _) | (Some(_), ConnectionUser::Gateway) => OwnershipRelation::Common,
            (Some(owner), ConnectionUser::Client(client)) if owner == client => {
                OwnershipRelation::Own
            }
            (Some(owner), _) if owner.is_connected() => OwnershipRelation::Foreign,
            (Some(_), _) => OwnershipRelation::Left,
        }
    }

    /// Returns true if this user may use the connection.
    pub(crate) fn admits(&self, user: &ConnectionUser) -> bool {
        self.relation(user).is_admitted()
    }
}

impl UpstreamConnection {
    /// Returns the context of a question that arrives during a call.
    pub(crate) fn question_context(&self, ask: &ServerRequest) -> QuestionContext {
        match self.upstream.has_own_streams() || related_task(&ask.params).is_some() {
            true => QuestionContext::Call,
            false => QuestionContext::Unclear,
        }
    }

    /// Returns the only legacy client that may have caused a question outside a call: it owns the session, or no other
    /// client has used the session. After a call of another client, a late question may belong to that call.
    pub(crate) fn only_client(&self) -> Option<ClientSink> {
        let owner = self.ownership.owner();
        let client = self.subscribers.owner(owner)?;
        let sharing = sharing_policy(self.strategy);
        if owner.is_some() || sharing == SharingPolicy::Exclusive {
            // The call of a modern client may have started before the session had an owner.
            return self.askable.is_empty().then_some(client);
        }
        let has_other_listeners =
            sharing == SharingPolicy::SameAffinity && self.subscribers.listens.is_active();
        let has_other_users = match &*lock(&self.users) {
            ConnectionUsers::None => false,
            ConnectionUsers::One(only) => client.client_ref() != *only,
            ConnectionUsers::Several => true,
        };
        (!has_other_listeners && !has_other_users).then_some(client)
    }

    /// Returns true if a legacy client may receive this question. It becomes the owner if the server may store the answer.
    pub(crate) fn may_ask_client(
        &self,
        sink: &ClientSink,
        context: QuestionContext,
        method: Method,
    ) -> bool {
        let rule = |pact: Arc<Pact>| pact.rule_on(Side::Server, Kind::Request, method).is_open();
        let is_asked = sink.pact().is_some_and(rule);
        !is_asked
            || !is_kept(sharing_policy(self.strategy), context, method)
            || self.ownership.take(&sink.client_ref())
    }

    /// Makes a client the owner of a shared session whose questions outlast its call. Returns false if another client is
    /// the owner.
    pub(crate) fn claim_for(&self, sink: &ClientSink) -> bool {
        let is_shared = sharing_policy(self.strategy) == SharingPolicy::SameAffinity;
        !is_shared || self.ownership.take(&sink.client_ref())
    }

    /// Forwards a log message that belongs to no call, if it cannot concern a call of another client.
    pub(crate) fn forward_log(&self, note: &ServerNotification) {
        match self.log_client() {
            Some(sink) => sink.try_notify(&Scope::Connection, note.method, &note.params),
            None if self.subscribers.has_owner() => self.metrics.dropped(LOG_OF_WHOM),
            // Modern clients get log messages of their own requests only.
            None => {}
        }
    }

    /// Returns the legacy client that owns the session or alone has made calls.
    fn log_client(&self) -> Option<ClientSink> {
        let owner = self.ownership.owner();
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        let users = lock(&self.users).clone();
        match users {
            ConnectionUsers::One(only) => self.subscribers.owner(owner.or(Some(&only))),
            ConnectionUsers::Several if is_shared && owner.is_none() => None,
            ConnectionUsers::None | ConnectionUsers::Several => self.subscribers.owner(owner),
        }
    }
}

/// Clients that have made calls on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) enum ConnectionUsers {
    #[default]
    None,
    One(ClientRef),
    Several,
}

impl ConnectionUsers {
    /// Records a call.
    pub(crate) fn add(&mut self, user: &ConnectionUser) {
        *self = match (&*self, user) {
            (_, ConnectionUser::Gateway) | (Self::Several, _) => return,
            (Self::One(known), ConnectionUser::Client(client)) if known == client => return,
            (Self::None, ConnectionUser::Client(client)) => Self::One(client.clone()),
            (Self::None | Self::One(_), _) => Self::Several,
        };
    }
}

impl Exchange {
    /// Returns true if the answer of a modern client would reach a connection that another client owns. Otherwise the
    /// connection becomes owned when the call ends: the client has no session and is unknown afterwards.
    pub(crate) fn is_owned_by_other(&mut self, ask: &ServerRequest, method: Method) -> bool {
        let connection = &self.connection;
        if !is_kept(
            sharing_policy(connection.strategy),
            connection.question_context(ask),
            method,
        ) {
            return false;
        }
        if connection.ownership.owner().is_some() {
            return true;
        }
        let (connection, client) = (Arc::clone(connection), self.inbound.sink.client_ref());
        match &mut self.turn {
            Some(turn) => turn.next_owner = Some((connection, client)),
            None => {
                connection.ownership.take(&client);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
