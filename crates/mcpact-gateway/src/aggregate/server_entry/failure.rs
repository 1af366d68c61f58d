//! Failures of a server, and why it cannot say now what it has.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::error::{Explanation, NEXT_START_IN, ServeError};
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::upstream::tool_filter;

/// How a server is that may have what is looked for, and cannot say so.
#[derive(Debug)]
pub(crate) struct Unwell {
    /// In a word.
    pub(crate) state: &'static str,
    /// Cause and advice.
    pub(crate) why: Explanation,
    /// What can be done.
    pub(crate) advice: String,
}

/// Missing part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListGap {
    /// True if the list, or its latest change, is missing as a whole.
    is_whole: bool,
    what: Box<str>,
}

impl ServerEntry {
    /// Remembers whether it could be used.
    pub(crate) fn judge(&self, failure: Option<&ServeError>) {
        self.note_failure(failure.map(ServeError::explanation));
    }

    /// Remembers that it cannot be used.
    pub(crate) fn missing(&self, why: Explanation) {
        self.note_failure(Some(why));
    }

    fn note_failure(&self, failure: Option<Explanation>) {
        let mut known = lock(&self.failure);
        if known.as_ref().map(|(why, _)| why) == failure.as_ref() {
            return;
        }
        let since = known
            .as_ref()
            .map_or_else(Instant::now, |(_, since)| *since);
        *known = failure.clone().map(|why| (why, since));
        drop(known);
        self.judgements.fetch_add(1, Ordering::Release);
        match failure {
            Some(error) => {
                tracing::warn!(event = "route_error", server = %self.name, %error, "a server is missing");
            }
            None => tracing::info!(server = %self.name, "a server is back"),
        }
    }

    /// Why it is missing, if it is, in one line and without its log.
    pub(crate) fn failure_in_short(&self) -> Option<String> {
        self.explanation().map(|failure| failure.in_short())
    }

    /// Why it is missing, if it is.
    #[must_use]
    pub fn failure(&self) -> Option<Box<str>> {
        let failure = self.explanation()?;
        Some(failure.to_string().into())
    }

    /// Why it is missing, if it is, in parts.
    pub(crate) fn explanation(&self) -> Option<Explanation> {
        let judged = lock(&self.failure).clone();
        let judged = judged.map(|(why, _)| why);
        judged.or_else(|| Some(self.server.shared.supervisor.outage()?.why.into()))
    }

    /// For how long it has been missing, if it is.
    pub(crate) fn missing_for(&self) -> Option<Duration> {
        let judged = lock(&self.failure)
            .as_ref()
            .map(|(_, since)| since.elapsed());
        let outage = self
            .server
            .shared
            .supervisor
            .outage()
            .map(|failure| failure.age);
        judged.max(outage)
    }

    /// Returns true if no list of this kind is known and no failure either: the server is starting, or waits for a
    /// retry.
    pub(crate) fn is_coming(&self, kind: ListKind) -> bool {
        let slots = self.slots();
        let mut lists = slots.iter().filter(|(of, _)| *of == kind);
        lists.all(|(_, slot)| slot.listing().is_none())
            && self.failure().is_none()
            && self.without(kind).is_none()
    }

    /// Why it may have things of this kind that are in no list, if it may.
    pub(crate) fn unwell(&self, kind: ListKind) -> Option<Unwell> {
        let status = self.server.status();
        let failure = self.explanation();
        let state = status.word(failure.is_some());
        let wait = status.state.wait();
        let rests = || wait.and(status.last_error.as_ref());
        let why = failure
            .or_else(|| self.without(kind).map(Explanation::from))
            .or_else(|| rests().map(|failure| failure.why.clone().into()))?;
        let again = match wait.or(status.retry_in) {
            Some(wait) => format!("{NEXT_START_IN}{wait:.1?}"),
            None => String::from("call again later"),
        };
        Some(Unwell {
            state,
            why,
            advice: format!("{again}; `mcpact status {}` shows how it is", self.name),
        })
    }

    /// Remembers what a list lacks that has come.
    pub(crate) fn look_over(&self, kind: ListKind, listing: &ServerList) {
        let unnamed = || tool_filter::unnamed(&self.server, kind, listing);
        let what = listing.left_out().or_else(unnamed);
        self.lack(kind, what, false);
    }

    /// Remembers why a list has not come.
    pub(crate) fn do_without(&self, kind: ListKind, why: String) {
        self.lack(kind, Some(why), true);
    }

    /// Why a list has not come, if it has not.
    pub(crate) fn without(&self, kind: ListKind) -> Option<String> {
        let lacking = lock(&self.lacking);
        let gap = lacking.get(&kind)?;
        gap.is_whole.then(|| gap.what.to_string())
    }

    fn lack(&self, kind: ListKind, what: Option<String>, is_whole: bool) {
        let gap = what.map(|what| ListGap {
            is_whole,
            what: self.server.shared.masks.cover(what).into(),
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
