//! ListScope a connection is that clients share.
//!
//! A server may keep what a client has told it: the folders of one would be served to whoever comes after. So a
//! connection on which a client was asked something that need not belong to its call is that client's from then on.
//! Whoever else comes gets another one. Where there is no room for that, or its client has gone, the connection is let
//! go of: calls that run there finish, and then it ends.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use mcpact_engine::pact::Pact;
use mcpact_spec::{Kind, Method, Side};

use crate::connection::UpstreamConnection;
use crate::connection::slot::ConnectionSlot;
use crate::downstream::sink::ClientSink;
use crate::exchange::Exchange;
use crate::supervisor::{SharingPolicy, sharing_policy};
use mcpact::connection::{ServerRequest, related_task};

/// A client, for as long as its session lasts; known again, and not kept.
#[derive(Clone, Debug)]
pub(crate) struct ClientRef(Weak<dyn Any + Send + Sync>);

impl ClientRef {
    pub(crate) fn by(session: Weak<impl Any + Send + Sync>) -> Self {
        Self(session)
    }

    fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl PartialEq for ClientRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// On whose behalf a connection is looked for.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionUser {
    /// Nobody's: to have one, or to know what the server says of itself.
    Gateway,
    /// That of a client which is not known again when it comes back.
    Stranger,
    /// That of a client which stays.
    Client(ClientRef),
}

/// When a client is asked something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionContext {
    /// During the call or the task that it is about.
    Call,
    /// During a call, on a carrier that does not say what a question is about.
    Unclear,
    /// Outside of any call.
    Outside,
}

/// Whether what a client answers may stay with the server. It asks for roots to keep them: it is told when they
/// change.
pub(crate) fn is_kept(sharing: SharingPolicy, occasion: QuestionContext, method: Method) -> bool {
    match (sharing, occasion) {
        // It is its client's already, or everybody's because the config says so.
        (SharingPolicy::Exclusive | SharingPolicy::All, _)
        | (SharingPolicy::SameAffinity, QuestionContext::Call) => false,
        (SharingPolicy::SameAffinity, QuestionContext::Unclear) => method == Method::RootsList,
        (SharingPolicy::SameAffinity, QuestionContext::Outside) => true,
    }
}

/// What a connection is to somebody who looks for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnershipRelation {
    /// Anybody's.
    Common,
    /// Its own, which it takes rather than another.
    Own,
    /// Another client's.
    Foreign,
    /// A client's that has gone.
    Left,
}

/// Whether there is room for another connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    Full,
}

impl OwnershipRelation {
    /// Whether somebody who looks for a connection lets go of this one.
    pub(crate) const fn is_let_go(self, space: Room) -> bool {
        match self {
            Self::Common | Self::Own => false,
            Self::Foreign => matches!(space, Room::Full),
            Self::Left => true,
        }
    }
}

/// ListScope a connection is, once it is somebody's.
#[derive(Debug, Default)]
pub(crate) struct Ownership(OnceLock<ClientRef>);

impl Ownership {
    /// Makes it this client's, from before the server hears the answer; whether it is.
    pub(crate) fn take(&self, who: &ClientRef) -> bool {
        self.0.get_or_init(|| who.clone()) == who
    }

    /// ListScope it is.
    pub(crate) fn holder(&self) -> Option<&ClientRef> {
        self.0.get()
    }

    /// What it is to this one.
    pub(crate) fn relation(&self, user: &ConnectionUser) -> OwnershipRelation {
        match (self.holder(), user) {
            (None, _) | (Some(_), ConnectionUser::Gateway) => OwnershipRelation::Common,
            (Some(holder), ConnectionUser::Client(who)) if holder == who => OwnershipRelation::Own,
            (Some(holder), _) if holder.is_there() => OwnershipRelation::Foreign,
            (Some(_), _) => OwnershipRelation::Left,
        }
    }

    /// Whether this one may use it.
    pub(crate) fn admits(&self, user: &ConnectionUser) -> bool {
        matches!(
            self.relation(user),
            OwnershipRelation::Common | OwnershipRelation::Own
        )
    }
}

impl UpstreamConnection {
    /// When a client is asked this, if it is asked during a call.
    pub(crate) fn occasion(&self, ask: &ServerRequest) -> QuestionContext {
        match self.upstream.has_own_streams() || related_task(&ask.params).is_some() {
            true => QuestionContext::Call,
            false => QuestionContext::Unclear,
        }
    }

    /// The client whose session this is, and nobody else's who uses it.
    pub(crate) fn confidant(&self) -> Option<ClientSink> {
        let holder = self.ownership.holder();
        let is_heard_by_others = sharing_policy(self.strategy) == SharingPolicy::SameAffinity
            && holder.is_none()
            && self.subscribers.listens.is_active();
        match is_heard_by_others {
            true => None,
            false => self.subscribers.owner(holder),
        }
    }

    /// Whether a legacy client may be asked this: what the server keeps makes the session that client's.
    pub(crate) fn may_hear(
        &self,
        sink: &ClientSink,
        occasion: QuestionContext,
        method: Method,
    ) -> bool {
        let rule = |pact: Arc<Pact>| pact.rule_on(Side::Server, Kind::Request, method).is_open();
        let is_asked = sink.pact().is_some_and(rule);
        !is_asked
            || !is_kept(sharing_policy(self.strategy), occasion, method)
            || self.ownership.take(&sink.who())
    }

    /// Whether what a client is still asked when its call is over may be its own matter: the session is that client's then.
    pub(crate) fn becomes_of(&self, sink: &ClientSink) -> bool {
        let is_shared = sharing_policy(self.strategy) == SharingPolicy::SameAffinity;
        !is_shared || self.ownership.take(&sink.who())
    }
}

impl ConnectionSlot {
    /// Its connection, if it is open for this one.
    pub(crate) fn live_for(&self, user: &ConnectionUser) -> Option<Arc<UpstreamConnection>> {
        self.live()
            .filter(|connection| connection.ownership.admits(user))
    }

    /// What its connection is to this one, if it is open.
    pub(crate) fn relation(&self, user: &ConnectionUser) -> Option<OwnershipRelation> {
        Some(self.live()?.ownership.relation(user))
    }

    /// Lets go of a connection that another client has made its own, unless a task runs there. Whoever has a call there
    /// keeps it until then.
    pub(crate) fn let_go(&self, user: &ConnectionUser, space: Room) {
        let is_let_go = |connection: &mut Arc<UpstreamConnection>| {
            connection.ownership.relation(user).is_let_go(space) && !connection.kept.are_running()
        };
        let foreign = self.current().take_if(is_let_go);
        // Nobody is kept waiting by what ends with it.
        drop(foreign);
    }
}

/// What a client told the server during its call, which nobody must meet there after it.
#[derive(Debug)]
pub(crate) struct DisclosureGuard {
    connection: Arc<UpstreamConnection>,
    who: ClientRef,
}

impl Drop for DisclosureGuard {
    fn drop(&mut self) {
        self.connection.ownership.take(&self.who);
    }
}

impl Exchange {
    /// Whether a modern client would answer this to a server that keeps it for another client; then it is refused. What
    /// is kept for this one is spent with its call: it is not known again, but comes back during it.
    pub(crate) fn tells_another(&mut self, ask: &ServerRequest, method: Method) -> bool {
        let connection = &self.connection;
        if !is_kept(
            sharing_policy(connection.strategy),
            connection.occasion(ask),
            method,
        ) {
            return false;
        }
        if connection.ownership.holder().is_some() {
            return true;
        }
        let (connection, who) = (Arc::clone(connection), self.inbound.sink.who());
        let secret = DisclosureGuard { connection, who };
        match &mut self.turn {
            Some(turn) => turn.tell(secret),
            None => drop(secret),
        }
        false
    }
}

#[cfg(test)]
mod tests;
