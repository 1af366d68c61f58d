//! One list of one server, for those who are shown the same.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use mcpact_translate::input::Backoff;
use mcpact_translate::lifecycle::Fingerprint;
use tokio::sync::watch;
use tokio::time::Instant;

use super::guest::Guest;
use super::lock;
use super::whose::Whose;
use crate::aggregate::list_kind::ListKind;
use crate::bridge::Listing;
use crate::target::digest;

/// The pauses before a server is asked again for a list that did not come.
const PAUSES: Backoff = Backoff {
    first: Duration::from_secs(5),
    longest: Duration::from_secs(300),
};

/// Who sees the same list of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ListKey {
    pub(super) kind: ListKind,
    pub(super) whose: Whose,
    pub(super) principal: Box<str>,
    /// None where it does not matter who asks.
    pub(super) fingerprint: Option<Fingerprint>,
}

impl ListKey {
    /// Who that is, so that nobody can read it.
    pub(super) fn reader(&self) -> Box<str> {
        let declared = self.fingerprint.as_ref().map(ToString::to_string);
        let declared = declared.as_deref().unwrap_or_default();
        let who = digest([self.principal.as_bytes(), declared.as_bytes()]);
        self.whose.reader(&who).into()
    }
}

/// One list of one server.
#[derive(Debug, Default)]
pub(super) struct ListSlot {
    held: Mutex<Held>,
    /// Tells when whoever fetches it is done.
    fetched: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Held {
    listing: Option<Arc<Listing>>,
    basis: Option<Basis>,
    /// Since when somebody fetches it.
    fetching: Option<Instant>,
    /// Whether somebody had to do without it.
    is_missed: bool,
    /// How often in a row it did not come, and until when it is not asked for again.
    rest: Option<(u32, Instant)>,
    /// How often in a row the server had no room for whoever fetched it.
    crowded_out: u32,
    /// Who asked last.
    patron: Weak<Guest>,
}

/// When a list was true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Basis {
    /// How often it had changed.
    pub(super) changes: u64,
    /// How often the server had woken up.
    pub(super) wakes: u64,
    /// When that was; none if it was in an earlier run.
    pub(super) when: Option<Instant>,
}

/// What there is of a list.
#[derive(Debug)]
pub(super) enum Look {
    /// As good as new.
    Fresh(Arc<Listing>),
    /// It was true before, and nobody has said that it is not any more.
    Old(Arc<Listing>),
    /// Nothing that could be shown without asking.
    Missing,
}

/// What a fetch has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing that others would have to hear of.
    Nothing,
    /// Something to write down.
    Learned,
    /// Something else than was shown before, which the server has not told of.
    Changed,
}

impl ListSlot {
    /// How many items it had when it was fetched last.
    pub(super) fn count(&self) -> Option<usize> {
        let listing = self.held().listing.clone()?;
        Some(listing.count())
    }

    /// A list of an earlier run.
    pub(super) fn recalled(listing: Arc<Listing>, changes: u64) -> Self {
        let slot = Self::default();
        let mut held = slot.held();
        held.listing = Some(listing);
        held.basis = Some(Basis {
            changes,
            wakes: 0,
            when: None,
        });
        drop(held);
        slot
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }

    /// What there is, as things are now; `is_young` says for how long a list is as good as new.
    pub(super) fn look(&self, now: Basis, is_young: impl FnOnce(Option<Instant>) -> bool) -> Look {
        let held = self.held();
        let (Some(listing), Some(basis)) = (held.listing.clone(), held.basis) else {
            return Look::Missing;
        };
        drop(held);
        if basis.changes != now.changes {
            return Look::Missing;
        }
        if basis.wakes == now.wakes && is_young(basis.when) {
            return Look::Fresh(listing);
        }
        Look::Old(listing)
    }

    /// Whether it was fetched when the server had woken up as often.
    pub(super) fn is_of(&self, wakes: u64) -> bool {
        let basis = self.held().basis;
        basis.is_some_and(|basis| basis.wakes == wakes)
    }

    /// The list, whatever it is worth.
    pub(super) fn listing(&self) -> Option<Arc<Listing>> {
        self.held().listing.clone()
    }

    /// The list, if nobody has said that it has changed since.
    pub(super) fn unchanged(&self, changes: u64) -> Option<Arc<Listing>> {
        let held = self.held();
        held.basis.filter(|basis| basis.changes == changes)?;
        held.listing.clone()
    }

    /// Somebody asks for it.
    pub(super) fn wanted_by(&self, guest: &Arc<Guest>) {
        let mut held = self.held();
        if held.patron.as_ptr() != Arc::as_ptr(guest) {
            held.patron = Arc::downgrade(guest);
        }
    }

    /// Who asked last, if that one is still known.
    pub(super) fn patron(&self) -> Option<Arc<Guest>> {
        self.held().patron.upgrade()
    }

    /// Whether somebody had to do without it.
    pub(super) fn is_missed(&self) -> bool {
        self.held().is_missed
    }

    /// Somebody has to do without it, or with an old one.
    pub(super) fn miss(&self) {
        self.held().is_missed = true;
    }

    /// Tells when a fetch is done that is not done yet.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        let mut done = self.fetched.subscribe();
        done.mark_unchanged();
        done
    }

    /// Since when somebody fetches it.
    pub(super) fn fetching_since(&self) -> Option<Instant> {
        self.held().fetching
    }

    /// Whether it did not come when it was asked for last.
    pub(super) fn was_late(&self) -> bool {
        self.held().rest.is_some()
    }

    /// It did not come, and is not asked for again for ever longer.
    pub(super) fn rest(&self) {
        let mut held = self.held();
        let times = held.rest.map_or(0, |(times, _)| times);
        held.rest = Some((
            times.saturating_add(1),
            Instant::now() + PAUSES.pause(times),
        ));
    }

    /// The server had no room for whoever fetched it; how often it had none before, in a row.
    pub(super) fn found_no_room(&self) -> u32 {
        let mut held = self.held();
        let before = held.crowded_out;
        held.crowded_out = before.saturating_add(1);
        before
    }

    /// Whether it is ours to fetch.
    pub(super) fn begin(&self) -> bool {
        let mut held = self.held();
        if held.is_resting() {
            return false;
        }
        let is_ours = held.fetching.is_none();
        held.fetching.get_or_insert_with(Instant::now);
        is_ours
    }

    /// Whoever fetched it is done.
    pub(super) fn end(&self, listing: Option<Arc<Listing>>, basis: Basis) -> News {
        let mut held = self.held();
        held.fetching = None;
        let news = match listing {
            Some(listing) => held.take(listing, basis),
            None => News::Nothing,
        };
        drop(held);
        self.fetched.send_modify(|times| *times += 1);
        news
    }
}

impl Held {
    fn is_resting(&self) -> bool {
        self.rest.is_some_and(|(_, until)| Instant::now() < until)
    }

    fn take(&mut self, listing: Arc<Listing>, basis: Basis) -> News {
        self.rest = None;
        self.crowded_out = 0;
        let was_missed = std::mem::take(&mut self.is_missed);
        let before = self.basis.replace(basis);
        if self.listing.as_ref().is_some_and(|l| l.is_same(&listing)) {
            return News::Learned;
        }
        let had_one = self.listing.replace(listing).is_some();
        let was_untold = before.is_some_and(|before| before.changes == basis.changes);
        if was_missed || (had_one && was_untold) {
            News::Changed
        } else {
            News::Learned
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::*;

    const NOW: Basis = Basis {
        changes: 1,
        wakes: 1,
        when: None,
    };

    fn listing(tool: &str) -> Arc<Listing> {
        let page = format!(r#"{{"tools":[{{"name":"{tool}"}}],"nextCursor":null}}"#);
        let listing = Listing::new(ListKind::Tools, Revision::V2026_07_28, vec![page.into()]);
        Arc::new(listing)
    }

    fn looked(slot: &ListSlot, now: Basis, is_young: bool) -> &'static str {
        match slot.look(now, |_| is_young) {
            Look::Fresh(_) => "fresh",
            Look::Old(_) => "old",
            Look::Missing => "missing",
        }
    }

    /// What a list is worth, by what has happened since.
    #[test]
    fn what_a_list_is_worth() {
        let slot = ListSlot::default();
        assert_eq!(looked(&slot, NOW, true), "missing");
        slot.end(Some(listing("a")), NOW);
        let changed = Basis { changes: 2, ..NOW };
        let woken = Basis { wakes: 2, ..NOW };
        for (now, is_young, expected) in [
            (NOW, true, "fresh"),
            (NOW, false, "old"),
            (woken, true, "old"),
            (changed, true, "missing"),
        ] {
            assert_eq!(looked(&slot, now, is_young), expected, "{now:?} {is_young}");
        }
        let recalled = ListSlot::recalled(listing("a"), 0);
        let first = Basis {
            changes: 0,
            wakes: 0,
            when: None,
        };
        assert_eq!(looked(&recalled, first, false), "old");
    }

    /// Clients are told what they cannot know: another list than they were shown, unless the server
    /// has told of it itself, and one that they had to do without.
    #[test]
    fn what_is_told() {
        let slot = ListSlot::default();
        assert_eq!(slot.end(Some(listing("a")), NOW), News::Learned);
        assert_eq!(slot.end(Some(listing("a")), NOW), News::Learned);
        assert_eq!(slot.end(Some(listing("b")), NOW), News::Changed);
        assert_eq!(slot.end(None, NOW), News::Nothing);
        let told = Basis { changes: 2, ..NOW };
        assert_eq!(slot.end(Some(listing("c")), told), News::Learned);
        let late = ListSlot::default();
        late.miss();
        assert_eq!(late.end(Some(listing("a")), NOW), News::Changed);
        assert!(!late.is_missed());
    }
}
