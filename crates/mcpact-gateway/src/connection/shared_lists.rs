//! Lists that are fetched for many on a connection that clients use, and what the server asks meanwhile.
//!
//! A question on a pipe does not say what it is about. While nothing but such lists is under way it is about one of them,
//! and no client is asked: its answer would become part of what others are shown. Where calls are under way, too, one of
//! them may be meant, and what was listed at that time is not believed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The lists of one connection that many are shown.
#[derive(Debug, Default)]
pub(crate) struct SharedListFetches {
    lists: AtomicUsize,
    /// How many of them count as calls.
    lease: AtomicUsize,
    /// How many questions went to a client while there were some.
    doubts: AtomicU64,
}

/// What a question may be about that does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionOrigin {
    /// Nothing but a list that many are shown.
    ForLists,
    /// Something that a client does.
    ForClients,
}

/// Whether a list counts as a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchMode {
    Lease,
    Unnoticed,
}

/// A list that many are shown, for as long as this is held.
#[derive(Debug)]
pub(crate) struct SharedListFetch<'a> {
    lists: &'a SharedListFetches,
    passage: FetchMode,
    doubts: u64,
}

impl SharedListFetches {
    /// A list is asked for.
    pub(crate) fn begin(&self, passage: FetchMode) -> SharedListFetch<'_> {
        self.lists.fetch_add(1, Ordering::AcqRel);
        if passage == FetchMode::Lease {
            self.lease.fetch_add(1, Ordering::AcqRel);
        }
        SharedListFetch {
            lists: self,
            passage,
            doubts: self.doubts.load(Ordering::Acquire),
        }
    }

    /// A client is asked something during its call, on a connection that does not say what a question is about. A list
    /// that is fetched meanwhile may be meant.
    pub(crate) fn doubt(&self) {
        if self.lists.load(Ordering::Acquire) > 0 {
            self.doubts.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// What a question may be about, if there are so many calls.
    pub(crate) fn meant(&self, calls: impl FnOnce() -> usize) -> QuestionOrigin {
        if self.lists.load(Ordering::Acquire) == 0 {
            return QuestionOrigin::ForClients;
        }
        if calls() <= self.lease.load(Ordering::Acquire) {
            return QuestionOrigin::ForLists;
        }
        self.doubt();
        QuestionOrigin::ForClients
    }
}

impl SharedListFetch<'_> {
    /// Whether a client may have answered for it.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.lists.doubts.load(Ordering::Acquire) != self.doubts
    }
}

impl Drop for SharedListFetch<'_> {
    fn drop(&mut self) {
        self.lists.lists.fetch_sub(1, Ordering::AcqRel);
        if self.passage == FetchMode::Lease {
            self.lists.lease.fetch_sub(1, Ordering::AcqRel);
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
        let lists = SharedListFetches::default();
        assert_eq!(lists.meant(|| 0), QuestionOrigin::ForClients);
        for (passage, own) in [(FetchMode::Lease, 1), (FetchMode::Unnoticed, 0)] {
            let list = lists.begin(passage);
            assert_eq!(lists.meant(|| own), QuestionOrigin::ForLists, "{passage:?}");
            assert!(!list.is_doubtful());
            assert_eq!(
                lists.meant(|| own + 1),
                QuestionOrigin::ForClients,
                "{passage:?}"
            );
            assert!(list.is_doubtful());
            let next = lists.begin(passage);
            assert!(!next.is_doubtful(), "the next one is not");
            lists.doubt();
            assert!(next.is_doubtful(), "a call was asked: {passage:?}");
        }
        assert_eq!(lists.meant(|| 1), QuestionOrigin::ForClients);
    }
}
