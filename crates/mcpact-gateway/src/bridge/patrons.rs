//! Whose calls a connection carries. What a server logs names no call, so it is for whoever is the only one.

use std::sync::{Mutex, PoisonError};

use mcpact_engine::server::Scope;

use super::claim::{User, Who};
use super::ear::Ear;
use super::lane::Lane;
use crate::stable::DropReason;
use crate::supervisor::{SharingPolicy, sharing_policy};
use mcpact::connection::ServerNotification;

/// Who has made calls on a connection.
#[derive(Debug, Default)]
pub(super) struct Patrons(Mutex<Patronage>);

#[derive(Clone, Debug, Default)]
enum Patronage {
    #[default]
    Nobody,
    One(Who),
    Several,
}

impl Patrons {
    /// Somebody makes a call.
    pub(super) fn came(&self, user: &User) {
        let mut patronage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match (&*patronage, user) {
            (_, User::Nobody) | (Patronage::Several, _) => return,
            (Patronage::One(known), User::Client(who)) if known == who => return,
            (Patronage::Nobody, User::Client(who)) => Patronage::One(who.clone()),
            (Patronage::Nobody | Patronage::One(_), _) => Patronage::Several,
        };
        *patronage = now;
    }

    fn all(&self) -> Patronage {
        let patronage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        patronage.clone()
    }
}

impl Lane {
    /// Passes on what the server logs outside of any call, if it cannot be about a call of somebody else.
    pub(super) fn tell_log(&self, note: &ServerNotification) {
        match self.hears_log() {
            Some(ear) => ear.hint(&Scope::Connection, note.method, &note.params),
            None if self.audience.is_any() => self.metrics.dropped(DropReason::LogOfWhom),
            // Modern clients hear of their own requests only.
            None => {}
        }
    }

    /// The legacy client whose session this is, or who alone has made calls here.
    fn hears_log(&self) -> Option<Ear> {
        let holder = self.claim.holder();
        let is_shared = sharing_policy(self.strategy) != SharingPolicy::Exclusive;
        match self.patrons.all() {
            Patronage::One(only) => self.audience.owner(holder.or(Some(&only))),
            Patronage::Several if is_shared && holder.is_none() => None,
            Patronage::Nobody | Patronage::Several => self.audience.owner(holder),
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
        let client = |session: &Arc<u8>| User::Client(Who::by(Arc::downgrade(session)));
        for other in [client(&bob), User::Stranger] {
            let patrons = Patrons::default();
            patrons.came(&User::Nobody);
            assert!(matches!(patrons.all(), Patronage::Nobody));
            for user in [client(&ann), User::Nobody, client(&ann)] {
                patrons.came(&user);
                let who = Who::by(Arc::downgrade(&ann));
                assert!(matches!(patrons.all(), Patronage::One(only) if only == who));
            }
            patrons.came(&other);
            patrons.came(&client(&ann));
            assert!(matches!(patrons.all(), Patronage::Several), "{other:?}");
        }
    }
}
