//! What the lists of a server lack.

use crate::upstream::tool_filter;
use std::sync::atomic::Ordering;

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::lists::server_list::ServerList;
use crate::sync::lock;

/// Something of a list that is not there, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListGap {
    extent: GapExtent,
    what: Box<str>,
}

/// How much of a list is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GapExtent {
    /// Some of it.
    Part,
    /// All of it, or all that has changed since it came last.
    Whole,
}

impl ServerEntry {
    /// Remembers what a list lacks that has come.
    pub(crate) fn look_over(&self, kind: ListKind, listing: &ServerList) {
        let unnamed = || tool_filter::unnamed(&self.server, kind, listing);
        let what = listing.left_out().or_else(unnamed);
        self.lack(kind, what.map(|what| (GapExtent::Part, what)));
    }

    /// Remembers why a list has not come.
    pub(crate) fn do_without(&self, kind: ListKind, why: String) {
        self.lack(kind, Some((GapExtent::Whole, why)));
    }

    /// Why a list has not come, if it has not.
    pub(crate) fn without(&self, kind: ListKind) -> Option<String> {
        let lacking = lock(&self.lacking);
        let gap = lacking.get(&kind)?;
        (gap.extent == GapExtent::Whole).then(|| gap.what.to_string())
    }

    fn lack(&self, kind: ListKind, gap: Option<(GapExtent, String)>) {
        let gap = gap.map(|(extent, what)| ListGap {
            extent,
            what: self.server.covered(what).into(),
        });
        let mut lacking = lock(&self.lacking);
        if lacking.get(&kind) == gap.as_ref() {
            return;
        }
        let list = kind.method().as_str();
        match gap {
            Some(gap) => {
                tracing::warn!(event = "route_error", server = %self.name, list, error = &*gap.what, "a list is not whole");
                lacking.insert(kind, gap);
            }
            None => {
                tracing::info!(server = %self.name, list, "a list is whole again");
                lacking.remove(&kind);
            }
        }
        drop(lacking);
        self.judgements.fetch_add(1, Ordering::Release);
    }

    /// What its lists lack, in words.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let lacking = lock(&self.lacking);
        lacking.values().map(|gap| gap.what.to_string()).collect()
    }
}
