//! Fetches of shared lists on a connection that clients use, and questions during them.
//!
//! A question on stdio does not name its request. If only shared lists are being fetched, one of them caused it. Then no
//! client is asked, because its answer would become part of a list that others see. If calls are in flight too, one of
//! them may have caused it, and the lists fetched at that time are discarded.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Shared lists that are being fetched on one connection.
#[derive(Debug, Default)]
pub(crate) struct SharedListFetches {
    lists: AtomicUsize,
    /// Number of fetches that count as calls.
    calls: AtomicUsize,
    /// Number of questions that went to a client during fetches.
    doubts: AtomicU64,
}

/// Fetch of a shared list, in flight until this is dropped.
#[derive(Debug)]
pub(crate) struct SharedListFetch<'a> {
    lists: &'a SharedListFetches,
    is_call: bool,
    doubts: u64,
}

impl SharedListFetches {
    /// Starts a fetch; `is_call` if it counts as a call of the connection.
    pub(crate) fn begin(&self, is_call: bool) -> SharedListFetch<'_> {
        self.lists.fetch_add(1, Ordering::AcqRel);
        if is_call {
            self.calls.fetch_add(1, Ordering::AcqRel);
        }
        SharedListFetch {
            lists: self,
            is_call,
            doubts: self.doubts.load(Ordering::Acquire),
        }
    }

    /// Records a question to a client that a fetch in flight may have caused.
    pub(crate) fn doubt(&self) {
        if self.lists.load(Ordering::Acquire) > 0 {
            self.doubts.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns true if only a fetch can have caused a question, given the number of calls on the connection.
    pub(crate) fn explains_question(&self, calls: impl FnOnce() -> usize) -> bool {
        if self.lists.load(Ordering::Acquire) == 0 {
            return false;
        }
        if calls() <= self.calls.load(Ordering::Acquire) {
            return true;
        }
        self.doubt();
        false
    }
}

impl SharedListFetch<'_> {
    /// Returns true if a client may have answered a question of this fetch.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.lists.doubts.load(Ordering::Acquire) != self.doubts
    }
}

impl Drop for SharedListFetch<'_> {
    fn drop(&mut self) {
        self.lists.lists.fetch_sub(1, Ordering::AcqRel);
        if self.is_call {
            self.lists.calls.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No client is asked while only shared lists are fetched. If calls are in flight too, a question makes the lists
    /// doubtful.
    #[test]
    fn no_client_answers_a_question_of_a_shared_list() {
        let lists = SharedListFetches::default();
        assert!(!lists.explains_question(|| 0));
        for (is_call, own) in [(true, 1), (false, 0)] {
            let list = lists.begin(is_call);
            assert!(lists.explains_question(|| own), "{is_call}");
            assert!(!list.is_doubtful());
            assert!(!lists.explains_question(|| own + 1), "{is_call}");
            assert!(list.is_doubtful());
            let next = lists.begin(is_call);
            assert!(!next.is_doubtful(), "the next one is not");
            lists.doubt();
            assert!(next.is_doubtful(), "a call was asked: {is_call}");
        }
        assert!(!lists.explains_question(|| 1));
    }
}
