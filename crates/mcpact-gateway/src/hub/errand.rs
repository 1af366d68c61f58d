//! A list that is to be shown, and who is asked for it.

use std::sync::Arc;

use crate::error::ServeError;

use super::Hub;
use super::guest::Guest;
use super::member::Member;
use super::slot::{Basis, ListKey, ListSlot};
use super::whose::{Acquainted, Whose};
use crate::aggregate::list_kind::ListKind;
use crate::bridge::{Caller, Listing, Readers};

/// A list of a server, and for whom.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) member: Arc<Member>,
    pub(super) guest: Arc<Guest>,
    pub(super) kind: ListKind,
    pub(super) whose: Whose,
    pub(super) slot: Arc<ListSlot>,
}

impl Errand {
    /// The list that a client is shown now.
    pub(super) fn new(member: &Arc<Member>, guest: &Arc<Guest>, kind: ListKind) -> Self {
        match guest.own_slot(member, kind) {
            Some(_) => Self::of_own(member, guest, kind),
            None => Self::of_many(member, guest, kind),
        }
    }

    /// The list of a client's own instance, whether it has one or not.
    pub(super) fn of_own(member: &Arc<Member>, guest: &Arc<Guest>, kind: ListKind) -> Self {
        Self {
            member: Arc::clone(member),
            guest: Arc::clone(guest),
            kind,
            whose: Whose::Own,
            slot: guest.own.slot(member.number, kind),
        }
    }

    /// The list that all are shown who are like this client, and have no instance of their own.
    pub(super) fn of_many(member: &Arc<Member>, guest: &Arc<Guest>, kind: ListKind) -> Self {
        let key = key(member, guest, kind);
        Self {
            member: Arc::clone(member),
            guest: Arc::clone(guest),
            kind,
            whose: key.whose,
            slot: member.slot(key),
        }
    }

    /// What it rests on if it is fetched now.
    pub(super) fn basis(&self) -> Basis {
        match self.whose {
            Whose::Own => self.guest.own_basis(&self.member, self.kind),
            Whose::Kind | Whose::Nobody => self.member.basis(self.kind),
        }
    }

    /// Who is asked for it, if the server is awake.
    pub(super) fn awake(&self) -> Option<Arc<Caller>> {
        match self.whose {
            Whose::Nobody => self.guest.awake_nobody(&self.member),
            Whose::Kind | Whose::Own => self.guest.awake_part(&self.member),
        }
    }

    /// Who is asked for it; the server is started if it has to be.
    pub(super) async fn caller(&self, hub: &Arc<Hub>) -> Result<Arc<Caller>, ServeError> {
        match self.whose {
            Whose::Nobody => self.guest.nobody(hub, &self.member).await,
            Whose::Kind | Whose::Own => self.guest.part(hub, &self.member).await,
        }
    }

    /// Who is shown it.
    pub(super) fn readers(&self) -> Readers {
        match self.whose {
            Whose::Own => self.guest.readers(),
            Whose::Kind | Whose::Nobody => Readers::Many,
        }
    }

    /// The same list of those who have no instance of their own.
    pub(super) fn common(&self) -> Self {
        Self::of_many(&self.member, &self.guest, self.kind)
    }

    /// What there is to show while it does not come: an old list is better than none, and what others are shown is,
    /// too.
    pub(super) fn meanwhile(&self) -> Option<Arc<Listing>> {
        let key = key(&self.member, &self.guest, self.kind);
        let of_many = || self.member.slot(key.clone()).listing();
        let of_others = || self.member.shown_to_others(&key);
        self.slot.listing().or_else(of_many).or_else(of_others)
    }

    /// Whether nobody else is shown what is shown to the client.
    pub(super) fn seen_by(&self, listing: Option<&Arc<Listing>>) -> Readers {
        let Some(listing) = listing.filter(|_| self.whose == Whose::Own) else {
            return Readers::Many;
        };
        match self.common().slot.listing() {
            Some(common) if Arc::ptr_eq(&common, listing) => Readers::Many,
            Some(_) | None => Readers::One,
        }
    }
}

/// Which list all are shown who are like this client.
fn key(member: &Member, guest: &Guest, kind: ListKind) -> ListKey {
    ListKey {
        kind,
        whose: member.whose(Acquainted::No),
        principal: guest.principal().into(),
        fingerprint: (!member.is_modern()).then(|| guest.fingerprint.clone()),
    }
}
