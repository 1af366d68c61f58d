//! ListScope calls a connection carries. What a server logs names no call, so it is for whoever is the only one.

use crate::sync::lock;
use std::sync::Mutex;

use mcpact_engine::server::Scope;

use crate::connection::UpstreamConnection;
use crate::connection::ownership::ClientRef;
use crate::connection::ownership::ConnectionUser;
use crate::downstream::sink::ClientSink;
use crate::stable::DropReason;
use crate::supervisor::{SharingPolicy, sharing_policy};
use mcpact::connection::ServerNotification;

/// ClientRef has made calls on a connection.
#[derive(Debug, Default)]
pub(crate) struct UsageTracker(Mutex<ConnectionUsers>);

#[derive(Clone, Debug, Default)]
enum ConnectionUsers {
    #[default]
    None,
    One(ClientRef),
    Several,
}

impl UsageTracker {
    /// Somebody makes a call.
    pub(crate) fn came(&self, user: &ConnectionUser) {
        let mut patronage = lock(&self.0);
        let now = match (&*patronage, user) {
            (_, ConnectionUser::Gateway) | (ConnectionUsers::Several, _) => return,
            (ConnectionUsers::One(known), ConnectionUser::Client(who)) if known == who => return,
            (ConnectionUsers::None, ConnectionUser::Client(who)) => {
                ConnectionUsers::One(who.clone())
            }
            (ConnectionUsers::None | ConnectionUsers::One(_), _) => ConnectionUsers::Several,
        };
        *patronage = now;
    }

    fn all(&self) -> ConnectionUsers {
        let patronage = lock(&self.0);
        patronage.clone()
    }
}

impl UpstreamConnection {
    /// Passes on what the server logs outside of any call, if it cannot be about a call of somebody else.
    pub(crate) fn tell_log(&self, note: &ServerNotification) {
        match self.hears_log() {
            Some(sink) => sink.hint(&Scope::Connection, note.method, &note.params),
            None if self.subscribers.is_any() => self.metrics.dropped(DropReason::LogOfWhom),
            // Modern clients hear of their own requests only.
            None => {}
        }
    }

    /// The legacy client whose session this is, or who alone has made calls here.
    fn hears_log(&self) -> Option<ClientSink> {
        let holder = self.ownership.holder();
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        match self.usage.all() {
            ConnectionUsers::One(only) => self.subscribers.owner(holder.or(Some(&only))),
            ConnectionUsers::Several if is_shared && holder.is_none() => None,
            ConnectionUsers::None | ConnectionUsers::Several => self.subscribers.owner(holder),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// One client is known as the only one until another comes, also one that is not known again.
    #[test]
    fn the_only_one_is_known() {
        let (ann, bob) = (Arc::new(1), Arc::new(2));
        let client =
            |session: &Arc<u8>| ConnectionUser::Client(ClientRef::by(Arc::downgrade(session)));
        for other in [client(&bob), ConnectionUser::Stranger] {
            let usage = UsageTracker::default();
            usage.came(&ConnectionUser::Gateway);
            assert!(matches!(usage.all(), ConnectionUsers::None));
            for user in [client(&ann), ConnectionUser::Gateway, client(&ann)] {
                usage.came(&user);
                let who = ClientRef::by(Arc::downgrade(&ann));
                assert!(matches!(usage.all(), ConnectionUsers::One(only) if only == who));
            }
            usage.came(&other);
            usage.came(&client(&ann));
            assert!(matches!(usage.all(), ConnectionUsers::Several), "{other:?}");
        }
    }
}
