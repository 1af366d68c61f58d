//! Failures of a server, and missing parts of its lists.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerEntry;
use crate::error::{Explanation, NEXT_START_IN, ServeError};
use crate::lists::server_list::ServerList;
use crate::sync::lock;
use crate::upstream::tool_filter;

/// State of a server with incomplete lists, which may have an unknown item.
#[derive(Debug)]
pub(crate) struct Unavailability {
    /// State in one word.
    pub(crate) state: &'static str,
    /// Cause and hint.
    pub(crate) why: Explanation,
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
    /// Records whether the server could be used.
    pub(crate) fn note_outcome(&self, error: Option<&ServeError>) {
        self.note_failure(error.map(ServeError::explanation));
    }

    /// Records the cause of unavailability; none for an available server.
    pub(crate) fn note_failure(&self, failure: Option<Explanation>) {
        let mut known = lock(&self.failure);
        if known.as_ref().map(|(why, _)| why) == failure.as_ref() {
            return;
        }
        let since = known.as_ref().map(|(_, since)| *since);
        let since = since.unwrap_or_else(Instant::now);
        *known = failure.clone().map(|why| (why, since));
        drop(known);
        self.health_changes.fetch_add(1, Ordering::Release);
        match failure {
            Some(error) => {
                tracing::warn!(
                    event = "route_error",
                    server = %self.name,
                    state = self.server.status().state.as_str(),
                    error = %error.text,
                    advice = error.hint,
                    "a server is missing"
                );
            }
            None => tracing::info!(server = %self.name, "a server is back"),
        }
    }

    /// Returns the cause of unavailability in one line, without the log of the server.
    pub(crate) fn failure_in_short(&self) -> Option<String> {
        self.explanation().map(|failure| failure.in_short())
    }

    /// Returns the cause of unavailability.
    #[must_use]
    pub fn failure(&self) -> Option<Box<str>> {
        Some(self.explanation()?.to_string().into())
    }

    fn explanation(&self) -> Option<Explanation> {
        let known = lock(&self.failure).clone();
        let known = known.map(|(why, _)| why);
        known.or_else(|| Some(self.server.shared.supervisor.outage()?.explanation()))
    }

    /// Returns the remedy of the failure.
    pub(crate) fn remedy(&self) -> Option<String> {
        self.explanation()?.hint
    }

    /// Returns the time since which the server is unavailable.
    pub(crate) fn missing_for(&self) -> Option<Duration> {
        let since = lock(&self.failure).as_ref().map(|(_, since)| *since);
        let outage = self.server.shared.supervisor.outage();
        let outage = outage.map(|failure| failure.age);
        since.map(|since| since.elapsed()).max(outage)
    }

    /// Returns true if no list of this kind is known and no failure either: the server is starting, or waits for a
    /// retry.
    pub(crate) fn is_coming(&self, kind: ListKind) -> bool {
        !self.lists.has(kind) && self.failure().is_none() && self.missing_list(kind).is_none()
    }

    /// Returns the reason why the server may have items of this kind that are in no list.
    pub(crate) fn unavailability(&self, kind: ListKind) -> Option<Unavailability> {
        let status = self.server.status();
        let failure = self.explanation();
        let state = status.word(failure.is_some());
        let wait = status.state.wait();
        let last_error = || wait.and(status.last_error.as_ref());
        let why = failure
            .or_else(|| self.missing_list(kind).map(Explanation::from))
            .or_else(|| last_error().map(|failure| failure.clone().explanation()))?;
        let retry = match wait.or(status.retry_in) {
            Some(wait) => format!("{NEXT_START_IN}{wait:.1?}"),
            None => String::from("call again later"),
        };
        Some(Unavailability {
            state,
            why,
            advice: format!("{retry}; run `mcpact status {}` for details", self.name),
        })
    }

    /// Records the missing parts of a list that was fetched.
    pub(crate) fn note_defects(&self, kind: ListKind, list: &ServerList) {
        let unnamed = || tool_filter::unnamed(&self.server, kind, list);
        let what = list.left_out().or_else(unnamed);
        self.note_gap(kind, what, false);
    }

    /// Records that a list could not be fetched.
    pub(crate) fn note_missing_list(&self, kind: ListKind, why: String) {
        self.note_gap(kind, Some(why), true);
    }

    /// Returns the reason why a list could not be fetched.
    fn missing_list(&self, kind: ListKind) -> Option<String> {
        let gaps = lock(&self.gaps);
        let gap = gaps.get(&kind)?;
        gap.is_whole.then(|| gap.what.to_string())
    }

    fn note_gap(&self, kind: ListKind, what: Option<String>, is_whole: bool) {
        let gap = what.map(|what| ListGap {
            is_whole,
            what: self.server.shared.masks.cover(what).into(),
        });
        let mut gaps = lock(&self.gaps);
        if gaps.get(&kind) == gap.as_ref() {
            return;
        }
        let list = kind.method().as_str();
        match gap {
            Some(gap) => {
                tracing::warn!(event = "route_error", server = %self.name, list, error = &*gap.what, "list incomplete");
                gaps.insert(kind, gap);
            }
            None => {
                tracing::info!(server = %self.name, list, "list complete again");
                gaps.remove(&kind);
            }
        }
        drop(gaps);
        self.health_changes.fetch_add(1, Ordering::Release);
    }

    /// Describes the missing parts of the lists.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let gaps = lock(&self.gaps);
        gaps.values().map(|gap| gap.what.to_string()).collect()
    }
}
