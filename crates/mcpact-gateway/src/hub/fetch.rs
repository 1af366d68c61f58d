//! The lists of the servers: fetched once, kept, and looked at again without waking anybody.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use mcpact_spec::{Capability, ErrorCode};
use tokio::time::Instant;

use super::guest::Guest;
use super::member::Member;
use super::slot::{Basis, ListKey, ListSlot, Look};
use super::{Hub, Roster};
use crate::aggregate::kind::ListKind;
use crate::bridge::{Listing, Unlisted};

/// How a server is reached for its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is started if it has to be.
    Starting,
    /// Only if it is awake, and without keeping it so.
    Awake,
}

/// A list that is to be fetched, and for whom.
#[derive(Clone, Debug)]
struct Errand {
    member: Arc<Member>,
    guest: Arc<Guest>,
    kind: ListKind,
    slot: Arc<ListSlot>,
}

impl Hub {
    /// The list of every server, fetched where it has to be; none for those that are missing.
    pub(super) async fn listings(
        self: &Arc<Self>,
        roster: &Roster,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Vec<Option<Arc<Listing>>> {
        let looked: Vec<_> = roster
            .members
            .iter()
            .map(|member| {
                let slot = member.slot(key(member, guest, kind));
                slot.wanted_by(guest);
                let shown = self.shown(member, guest, kind, &slot);
                member.bridge.figures().list_needed(shown.is_some());
                (slot, shown)
            })
            .collect();
        if looked.iter().all(|(_, listing)| listing.is_some()) {
            return looked.into_iter().map(|(_, listing)| listing).collect();
        }
        let fetching =
            roster
                .members
                .iter()
                .zip(looked)
                .map(|(member, (slot, shown))| async move {
                    match shown {
                        Some(listing) => Some(listing),
                        None => {
                            let errand = Errand {
                                member: Arc::clone(member),
                                guest: Arc::clone(guest),
                                kind,
                                slot,
                            };
                            self.fetched(errand).await
                        }
                    }
                });
        join_all(fetching).await
    }

    /// What there is of a list.
    fn look(&self, member: &Member, guest: &Guest, kind: ListKind, slot: &ListSlot) -> Look {
        let age = self.settings.list_age;
        slot.look(member.basis(kind), |when| {
            when.is_some_and(|when| when.elapsed() < age)
                || (member.tells_of(kind) && guest.awake_part(member).is_some())
        })
    }

    /// The list of a server that has just answered, as it is now; as it was if it does not come.
    pub(super) async fn looked_at(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Option<Arc<Listing>> {
        let slot = member.slot(key(member, guest, kind));
        if let Look::Fresh(listing) = self.look(member, guest, kind, &slot) {
            return Some(listing);
        }
        let mut done = slot.subscribe();
        let errand = Errand {
            member: Arc::clone(member),
            guest: Arc::clone(guest),
            kind,
            slot: Arc::clone(&slot),
        };
        if slot.begin() {
            tokio::spawn(Arc::clone(self).fetch(errand, Way::Starting));
        }
        // What did not come lately is not asked for, and what is late is told when it comes.
        if slot.fetching_since().is_some() {
            let _ = tokio::time::timeout(self.settings.list_wait, done.changed()).await;
        }
        slot.listing()
    }

    /// What can be shown at once. A list that is only old is looked at again meanwhile, if that wakes
    /// nobody: who is shown something else then is told.
    fn shown(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
        slot: &Arc<ListSlot>,
    ) -> Option<Arc<Listing>> {
        let listing = match self.look(member, guest, kind, slot) {
            Look::Fresh(listing) => return Some(listing),
            Look::Old(listing) => listing,
            Look::Missing => return None,
        };
        let (way, hold) = match guest.awake_part(member) {
            // It was woken by somebody who may be done before it is asked.
            Some(caller) => (Way::Awake, caller.hold()),
            None if member.bridge.is_remote() => (Way::Starting, None),
            None => return Some(listing),
        };
        if slot.begin() {
            let errand = Errand {
                member: Arc::clone(member),
                guest: Arc::clone(guest),
                kind,
                slot: Arc::clone(slot),
            };
            let hub = Arc::clone(self);
            tokio::spawn(async move {
                hub.fetch(errand, way).await;
                drop(hold);
            });
        }
        Some(listing)
    }

    /// Fetches a list, or waits for whoever does.
    async fn fetched(self: &Arc<Self>, errand: Errand) -> Option<Arc<Listing>> {
        let slot = Arc::clone(&errand.slot);
        let member = Arc::clone(&errand.member);
        // Nobody is woken for what it is known not to have.
        if member.known().is_some() && !member.has(needed(errand.kind)) && slot.begin() {
            let none = Listing::empty(errand.kind, member.revision());
            let basis = Basis {
                when: None,
                ..member.basis(errand.kind)
            };
            member.spread(errand.kind, slot.end(Some(none), basis));
            return slot.listing();
        }
        let mut done = slot.subscribe();
        // Who has just failed is left alone for a while, which nobody has to wait for.
        let is_resting = member.bridge.is_resting() || slot.was_late();
        if slot.begin() {
            // Whoever waits may go away; the others need it all the same.
            tokio::spawn(Arc::clone(self).fetch(errand.clone(), Way::Starting));
        }
        // An old list is better than none, and what others are shown is, too.
        let meanwhile = || {
            let key = key(&member, &errand.guest, errand.kind);
            slot.listing().or_else(|| member.shown_to_others(&key))
        };
        if is_resting {
            slot.miss();
            return meanwhile();
        }
        // Nobody waits again for a server that has kept others waiting.
        let since = member.waited_for_since().unwrap_or_else(Instant::now);
        let until = since + self.settings.list_wait;
        let waited = tokio::time::timeout_at(until, done.changed()).await;
        match (waited, member.known()) {
            (Ok(_), _) => {}
            (Err(_), None) => member.judge(Some("it has not answered yet")),
            (Err(_), Some(_)) => {
                let why = format!("its `{}` has not come yet", errand.kind.method());
                member.do_without(errand.kind, why);
            }
        }
        let changes = member.basis(errand.kind).changes;
        if slot.unchanged(changes).is_none() {
            slot.miss();
        }
        meanwhile()
    }

    async fn fetch(self: Arc<Self>, errand: Errand, way: Way) {
        let Errand {
            member,
            guest,
            kind,
            slot,
        } = &errand;
        let basis = member.basis(*kind);
        let fetched = self.fetch_list(member, guest, *kind, way).await;
        let listing = match fetched {
            Ok(listing) => listing,
            // It may have fallen asleep meanwhile.
            Err(Unlisted::Lost(error)) if way == Way::Awake => {
                let error = member.bridge.covered(error.message);
                tracing::debug!(server = %member.name, error, "a list could not be looked at again");
                None
            }
            Err(Unlisted::Lost(error)) => {
                member.judge(Some(&error.message));
                member.bridge.did_without();
                None
            }
            Err(Unlisted::Late(error)) => {
                slot.rest();
                let why = format!("its `{}` is missing: {}", kind.method(), error.message);
                member.do_without(*kind, why);
                None
            }
            Err(Unlisted::Refused(error)) => {
                member.judge(None);
                let why = format!("its `{}` is missing: {}", kind.method(), error.message);
                member.do_without(*kind, why);
                None
            }
        };
        if let Some(listing) = &listing {
            member.judge(None);
            member.look_over(*kind, listing);
        }
        member.spread(*kind, slot.end(listing, basis));
    }

    /// None if it would have to be woken, and is not to be.
    async fn fetch_list(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
        way: Way,
    ) -> Result<Option<Listing>, Unlisted> {
        let caller = match way {
            Way::Starting => Some(guest.part(self, member).await.map_err(Unlisted::Lost)?),
            Way::Awake => guest.awake_part(member),
        };
        let Some(caller) = caller else {
            return Ok(None);
        };
        if !member.has(needed(kind)) {
            return Ok(Some(Listing::empty(kind, member.revision())));
        }
        let listed = match way {
            Way::Starting => member.bridge.list(&caller, kind).await.map(Some),
            Way::Awake => member.bridge.list_awake(&caller, kind).await.transpose(),
        };
        match listed {
            // G6: it declares more than it has.
            Err(Unlisted::Refused(error)) if error.code == ErrorCode::MethodNotFound.code() => {
                Ok(Some(Listing::empty(kind, member.revision())))
            }
            outcome => outcome,
        }
    }

    /// Looks at the lists of a server again that may not be true any more, if it is awake.
    pub(super) fn look_again(self: &Arc<Self>, member: &Arc<Member>) {
        for (kind, slot) in member.slots() {
            if let Some(guest) = slot.patron() {
                // Nobody waits for what is shown.
                let _ = self.shown(member, &guest, kind, &slot);
            }
        }
    }

    /// Tries again to get the lists that somebody had to do without.
    pub(super) fn try_again(self: &Arc<Self>, member: &Arc<Member>) {
        for (kind, slot) in member.slots() {
            let Some(guest) = slot.patron().filter(|_| slot.is_missed()) else {
                continue;
            };
            if slot.begin() {
                let errand = Errand {
                    member: Arc::clone(member),
                    guest,
                    kind,
                    slot,
                };
                tokio::spawn(Arc::clone(self).fetch(errand, Way::Starting));
            }
        }
    }

    /// Servers that do not tell of changes are asked now and then, for those who are told.
    pub(super) fn watch(self: &Arc<Self>) {
        let hub = Arc::downgrade(self);
        let age = self.settings.list_age;
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(age).await;
                let Some(hub) = Weak::upgrade(&hub) else {
                    return;
                };
                if !hub.changes.are_heard() {
                    continue;
                }
                for member in &hub.roster().members {
                    hub.look_again(member);
                    hub.try_again(member);
                }
            }
        });
    }
}

fn key(member: &Member, guest: &Guest, kind: ListKind) -> ListKey {
    ListKey {
        kind,
        principal: guest.principal().into(),
        fingerprint: (!member.is_modern()).then(|| guest.fingerprint.clone()),
    }
}

const fn needed(kind: ListKind) -> Capability {
    match kind {
        ListKind::Tools => Capability::Tools,
        ListKind::Prompts => Capability::Prompts,
        ListKind::Resources | ListKind::Templates => Capability::Resources,
    }
}
