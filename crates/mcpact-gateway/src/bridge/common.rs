//! Lists that are fetched for many on a connection that clients use, and what the server asks meanwhile.
//!
//! A question on a pipe does not say what it is about. While nothing but such lists is under way it is about one of them,
//! and no client is asked: its answer would become part of what others are shown. Where calls are under way, too, one of
//! them may be meant, and what was listed at that time is not believed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The lists of one connection that many are shown.
#[derive(Debug, Default)]
pub(super) struct CommonLists {
    lists: AtomicUsize,
    /// How many of them count as calls.
    boarded: AtomicUsize,
    /// How many questions went to a client while there were some.
    doubts: AtomicU64,
}

/// What a question may be about that does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// Nothing but a list that many are shown.
    ForLists,
    /// Something that a client does.
    ForClients,
}

/// Whether a list counts as a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Boarded,
    Unnoticed,
}

/// A list that many are shown, for as long as this is held.
#[derive(Debug)]
pub(super) struct CommonList<'a> {
    lists: &'a CommonLists,
    passage: Passage,
    doubts: u64,
}

impl CommonLists {
    /// A list is asked for.
    pub(super) fn begin(&self, passage: Passage) -> CommonList<'_> {
        self.lists.fetch_add(1, Ordering::AcqRel);
        if passage == Passage::Boarded {
            self.boarded.fetch_add(1, Ordering::AcqRel);
        }
        CommonList {
            lists: self,
            passage,
            doubts: self.doubts.load(Ordering::Acquire),
        }
    }

    /// A client is asked something during its call, on a connection that does not say what a question is about. A list
    /// that is fetched meanwhile may be meant.
    pub(super) fn doubt(&self) {
        if self.lists.load(Ordering::Acquire) > 0 {
            self.doubts.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// What a question may be about, if there are so many calls.
    pub(super) fn meant(&self, calls: impl FnOnce() -> usize) -> Meant {
        if self.lists.load(Ordering::Acquire) == 0 {
            return Meant::ForClients;
        }
        if calls() <= self.boarded.load(Ordering::Acquire) {
            return Meant::ForLists;
        }
        self.doubt();
        Meant::ForClients
    }
}

impl CommonList<'_> {
    /// Whether a client may have answered for it.
    pub(super) fn is_doubtful(&self) -> bool {
        self.lists.doubts.load(Ordering::Acquire) != self.doubts
    }
}

impl Drop for CommonList<'_> {
    fn drop(&mut self) {
        self.lists.lists.fetch_sub(1, Ordering::AcqRel);
        if self.passage == Passage::Boarded {
            self.lists.boarded.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question is put to no client while only lists are under way that others are shown, and one that may be
    /// about such a list is noticed.
    #[test]
    fn no_client_answers_for_a_list_of_many() {
        let lists = CommonLists::default();
        assert_eq!(lists.meant(|| 0), Meant::ForClients);
        for (passage, own) in [(Passage::Boarded, 1), (Passage::Unnoticed, 0)] {
            let list = lists.begin(passage);
            assert_eq!(lists.meant(|| own), Meant::ForLists, "{passage:?}");
            assert!(!list.is_doubtful());
            assert_eq!(lists.meant(|| own + 1), Meant::ForClients, "{passage:?}");
            assert!(list.is_doubtful());
            let next = lists.begin(passage);
            assert!(!next.is_doubtful(), "the next one is not");
            lists.doubt();
            assert!(next.is_doubtful(), "a call was asked: {passage:?}");
        }
        assert_eq!(lists.meant(|| 1), Meant::ForClients);
    }
}
