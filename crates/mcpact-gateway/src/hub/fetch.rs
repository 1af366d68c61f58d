//! The lists of the servers: fetched once, kept, and looked at again without waking anybody.

use std::sync::{Arc, Weak};

use crate::error::ServeError;
use futures_util::future::join_all;
use mcpact_spec::{Capability, ErrorCode};
use tokio::time::Instant;

use super::errand::Errand;
use super::guest::Guest;
use super::member::Member;
use super::slot::{Basis, ListSlot, Look, News};
use super::whose::Whose;
use super::{Hub, Roster};
use crate::aggregate::list_kind::ListKind;
use crate::bridge::{Listing, Readers, Unlisted};
use crate::metrics::Outcome;

/// How a server is reached for its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It is started if it has to be.
    Starting,
    /// Only if it is awake, and without keeping it so.
    Awake,
}

/// What a client is shown of every server.
#[derive(Debug)]
pub(super) struct Shown {
    /// None for those that are missing.
    pub(super) listings: Vec<Option<Arc<Listing>>>,
    /// Who else is shown the same.
    pub(super) readers: Readers,
}

impl Shown {
    /// Takes note of what a client is shown.
    fn new(hub: &Hub, errands: &[Errand], listings: Vec<Option<Arc<Listing>>>) -> Self {
        let mut readers = Readers::Many;
        for (errand, listing) in errands.iter().zip(&listings) {
            if errand.seen_by(listing.as_ref()) == Readers::One {
                readers = Readers::One;
            }
            if let Some(listing) = listing {
                hub.note_shown(errand, listing);
            }
        }
        Self { listings, readers }
    }
}

impl Hub {
    /// The list of every server, fetched where it has to be.
    pub(super) async fn listings(
        self: &Arc<Self>,
        roster: &Roster,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Shown {
        let members = roster.members.iter();
        let errands: Vec<_> = members
            .map(|member| Errand::new(member, guest, kind))
            .collect();
        let looked: Vec<_> = errands
            .iter()
            .map(|errand| {
                errand.slot.wanted_by(guest);
                let shown = self.shown(errand);
                let metrics = errand.member.bridge.metrics();
                metrics.list_requested(shown.is_some());
                shown
            })
            .collect();
        if looked.iter().all(Option::is_some) {
            return Shown::new(self, &errands, looked);
        }
        let fetching = errands
            .iter()
            .zip(looked)
            .map(|(errand, shown)| async move {
                match shown {
                    Some(listing) => Some(listing),
                    None => self.fetched(errand).await,
                }
            });
        let listings = join_all(fetching).await;
        Shown::new(self, &errands, listings)
    }

    /// What there is of a list.
    fn look(&self, errand: &Errand) -> Look {
        let age = self.settings.list_age;
        errand.slot.look(errand.basis(), |when| {
            when.is_some_and(|when| when.elapsed() < age)
                || (errand.member.tells_of(errand.kind) && errand.awake().is_some())
        })
    }

    /// The list of a server that has just answered, as it is now; as it was if it does not come.
    pub(super) async fn filtered_method(
        self: &Arc<Self>,
        member: &Arc<Member>,
        guest: &Arc<Guest>,
        kind: ListKind,
    ) -> Option<Arc<Listing>> {
        let errand = Errand::new(member, guest, kind);
        match self.look(&errand) {
            Look::Fresh(listing) => Some(listing),
            Look::Old(_) | Look::Missing => self.asked_for(errand).await,
        }
    }

    /// The list as the server has it now; as it was if it does not come.
    pub(super) async fn asked_for(self: &Arc<Self>, errand: Errand) -> Option<Arc<Listing>> {
        let slot = Arc::clone(&errand.slot);
        let mut done = slot.subscribe();
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
    fn shown(self: &Arc<Self>, errand: &Errand) -> Option<Arc<Listing>> {
        let listing = match self.look(errand) {
            Look::Fresh(listing) => return Some(listing),
            Look::Old(listing) => listing,
            Look::Missing => return None,
        };
        self.fetch_meanwhile(errand);
        Some(listing)
    }

    /// Looks at a list that may not be true any more, or was never seen, if that wakes nobody.
    pub(super) fn look_anew(self: &Arc<Self>, errand: &Errand) {
        match self.look(errand) {
            Look::Fresh(_) => {}
            Look::Old(_) | Look::Missing => self.fetch_meanwhile(errand),
        }
    }

    fn fetch_meanwhile(self: &Arc<Self>, errand: &Errand) {
        let (way, hold) = match errand.awake() {
            // It was woken by somebody who may be done before it is asked.
            Some(caller) => (Way::Awake, caller.hold()),
            None if errand.member.bridge.is_remote() => (Way::Starting, None),
            None => return,
        };
        if errand.slot.begin() {
            let (hub, errand) = (Arc::clone(self), errand.clone());
            tokio::spawn(async move {
                hub.fetch(errand, way).await;
                drop(hold);
            });
        }
    }

    /// Fetches a list, or waits for whoever does.
    async fn fetched(self: &Arc<Self>, errand: &Errand) -> Option<Arc<Listing>> {
        let Errand {
            member, kind, slot, ..
        } = errand;
        // Nobody is woken for what it is known not to have.
        if member.known().is_some() && !member.has(needed(*kind)) && slot.begin() {
            let none = Arc::new(Listing::empty(*kind, member.revision()));
            let basis = Basis {
                when: None,
                ..errand.basis()
            };
            self.hand_on(errand, slot.end(Some(none), basis));
            return slot.listing();
        }
        let mut done = slot.subscribe();
        // Who has just failed is left alone for a while, which nobody has to wait for.
        let is_resting = member.bridge.is_resting() || slot.was_late();
        if slot.begin() {
            // Whoever waits may go away; the others need it all the same.
            tokio::spawn(Arc::clone(self).fetch(errand.clone(), Way::Starting));
        }
        if is_resting {
            slot.miss();
            return errand.meanwhile();
        }
        // Nobody waits again for a server that has kept others waiting.
        let since = match errand.whose {
            Whose::Own => slot.fetching_since(),
            Whose::Kind | Whose::Nobody => member.waited_for_since(),
        };
        let until = since.unwrap_or_else(Instant::now) + self.settings.list_wait;
        let waited = tokio::time::timeout_at(until, done.changed()).await;
        if waited.is_err() {
            errand.is_late();
        }
        if slot.unchanged(errand.basis().changes).is_none() {
            slot.miss();
        }
        errand.meanwhile()
    }

    async fn fetch(self: Arc<Self>, errand: Errand, way: Way) {
        let (member, slot) = (&errand.member, &errand.slot);
        let basis = errand.basis();
        let is_first = !slot.is_of(basis.wakes);
        let fetched = self.fetch_list(&errand, way).await;
        let mut is_full = false;
        let listing = match fetched {
            Ok(listing) => listing,
            // It may have fallen asleep meanwhile.
            Err(Unlisted::Lost(error)) if way == Way::Awake => {
                let error = member.bridge.covered(error.message().into_owned());
                tracing::debug!(server = %member.name, error, "a list could not be looked at again");
                None
            }
            // It works for others, and is not missing.
            Err(Unlisted::Lost(error)) if has_no_room(&error) && member.known().is_some() => {
                is_full = true;
                slot.miss();
                errand.do_without(&error);
                None
            }
            Err(Unlisted::Lost(error)) => {
                member.judge(Some(&error));
                member.bridge.did_without();
                None
            }
            Err(Unlisted::Late(error)) => {
                slot.rest();
                errand.do_without(&error);
                None
            }
            Err(Unlisted::Refused(error)) => {
                member.judge(None);
                errand.do_without(&error);
                None
            }
        };
        if listing.is_some() {
            member.judge(None);
        }
        let listing = listing.map(|listing| errand.taken(listing));
        self.hand_on(&errand, slot.end(listing, basis));
        if is_first && errand.whose == Whose::Own {
            self.doubt_common(&errand);
        }
        // Who has an instance finds room in it.
        if is_full && errand.whose != Whose::Own {
            self.try_soon(&errand);
        }
    }

    /// Hands on what a fetch has brought: to everybody, or to the one client whose list it is.
    fn hand_on(&self, errand: &Errand, news: News) {
        let Errand {
            member,
            guest,
            kind,
            whose,
            slot,
        } = errand;
        if *whose != Whose::Own {
            return member.spread(*kind, news);
        }
        let own = &guest.own;
        let is_other = slot
            .listing()
            .is_some_and(|listing| own.is_news(member.number, *kind, &listing));
        if is_other || news == News::Changed {
            self.tell_guest(guest, kind.changed());
        }
    }

    /// A client is shown this. What its own instance has may have come meanwhile.
    fn note_shown(&self, errand: &Errand, listing: &Listing) {
        let Errand {
            member,
            guest,
            kind,
            whose,
            ..
        } = errand;
        if *whose == Whose::Kind {
            return;
        }
        guest.own.shows(member.number, *kind, listing);
        let own = guest.own_slot(member, *kind);
        let own = own.and_then(|slot| slot.listing());
        if own.is_some_and(|own| guest.own.is_news(member.number, *kind, &own)) {
            self.tell_guest(guest, kind.changed());
        }
    }

    /// An instance that has just been started has something else than those are shown who have none: that is looked at
    /// again, if it may be the list of an earlier version of the server.
    fn doubt_common(self: &Arc<Self>, errand: &Errand) {
        let common = errand.common();
        let (Look::Old(shown), Some(own)) = (self.look(&common), errand.slot.listing()) else {
            return;
        };
        if !own.is_same(&shown) && common.slot.begin() {
            tokio::spawn(Arc::clone(self).fetch(common, Way::Starting));
        }
    }

    /// None if it would have to be woken, and is not to be.
    async fn fetch_list(
        self: &Arc<Self>,
        errand: &Errand,
        way: Way,
    ) -> Result<Option<Listing>, Unlisted> {
        let (member, kind) = (&errand.member, errand.kind);
        let caller = match way {
            Way::Starting => Some(errand.caller(self).await.map_err(Unlisted::Lost)?),
            Way::Awake => errand.awake(),
        };
        let Some(caller) = caller else {
            return Ok(None);
        };
        if !member.has(needed(kind)) {
            return Ok(Some(Listing::empty(kind, member.revision())));
        }
        let (bridge, readers) = (&member.bridge, errand.readers());
        let listed = match way {
            Way::Starting => bridge.list(&caller, kind, readers).await.map(Some),
            Way::Awake => {
                let listed = bridge.list_awake(&caller, kind, readers).await;
                listed.transpose()
            }
        };
        match listed {
            // The server declares more than it has.
            Err(Unlisted::Refused(error)) if error.code() == ErrorCode::MethodNotFound.code() => {
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
                let errand = Errand {
                    slot,
                    ..Errand::of_many(member, &guest, kind)
                };
                let _ = self.shown(&errand);
            }
        }
    }

    /// Tries again to get the lists that somebody had to do without.
    pub(super) fn try_again(self: &Arc<Self>, member: &Arc<Member>) {
        for (kind, slot) in member.slots() {
            self.fetch_missed(member, kind, slot);
        }
    }

    fn fetch_missed(self: &Arc<Self>, member: &Arc<Member>, kind: ListKind, slot: Arc<ListSlot>) {
        let Some(guest) = slot.patron().filter(|_| slot.is_missed()) else {
            return;
        };
        if slot.begin() {
            let errand = Errand {
                slot,
                ..Errand::of_many(member, &guest, kind)
            };
            tokio::spawn(Arc::clone(self).fetch(errand, Way::Starting));
        }
    }

    /// Tries again to get a list for which the server had no room, in a while.
    fn try_soon(self: &Arc<Self>, errand: &Errand) {
        let Errand {
            member, slot, kind, ..
        } = errand;
        let (pause, kind) = (member.bridge.pauses().pause(slot.found_no_room()), *kind);
        let (hub, member) = (Arc::downgrade(self), Arc::downgrade(member));
        let slot = Arc::downgrade(slot);
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let still = (hub.upgrade(), member.upgrade(), slot.upgrade());
            if let (Some(hub), Some(member), Some(slot)) = still {
                hub.fetch_missed(&member, kind, slot);
            }
        });
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
                    for guest in hub.guests() {
                        hub.look_at_own_again(member, &guest);
                    }
                }
            }
        });
    }
}

impl Errand {
    /// What has come, as it is kept. A list of one client is nobody else's business; one that is like that of many is the
    /// same.
    fn taken(&self, listing: Listing) -> Arc<Listing> {
        if self.whose != Whose::Own {
            self.member.look_over(self.kind, &listing);
            return Arc::new(listing);
        }
        let common = self.common().slot.listing();
        let same = common.filter(|common| common.is_same(&listing));
        same.unwrap_or_else(|| Arc::new(listing))
    }

    /// It has not come, and why.
    fn do_without(&self, error: &ServeError) {
        if self.whose != Whose::Own {
            let method = self.kind.method();
            let why = format!("its `{method}` is missing: {}", error.message());
            self.member.do_without(self.kind, why);
        }
    }

    /// It has not come yet.
    fn is_late(&self) {
        if self.whose == Whose::Own {
            return;
        }
        match self.member.known() {
            None => self.member.missing("it has not answered yet".into()),
            Some(_) => {
                let why = format!("its `{}` has not come yet", self.kind.method());
                self.member.do_without(self.kind, why);
            }
        }
    }
}

/// Whether a server is there, and has no room for a request.
fn has_no_room(error: &ServeError) -> bool {
    Outcome::of(Err(error)) == Outcome::Busy
}

const fn needed(kind: ListKind) -> Capability {
    match kind {
        ListKind::Tools => Capability::Tools,
        ListKind::Prompts => Capability::Prompts,
        ListKind::Resources | ListKind::Templates => Capability::Resources,
    }
}
