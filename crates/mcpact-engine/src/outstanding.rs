//! Requests that wait for an answer: matched by id, bounded in number and in time.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use crate::refusal::ApiMisuse;
use crate::time::Moment;

/// Timeouts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeout {
    /// Without any sign of life.
    pub timeout: Duration,
    /// In all, whatever progress comes.
    pub maximum: Duration,
    /// Effect of progress on the timeout.
    pub on_progress: OnProgress,
}

/// Effect of progress on a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnProgress {
    /// Nothing.
    Ignore,
    /// It restarts.
    Extend,
}

impl Default for RequestTimeout {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            maximum: Duration::from_secs(600),
            on_progress: OnProgress::Extend,
        }
    }
}

#[derive(Clone, Debug)]
struct PendingRequest {
    method: Box<str>,
    progress_token: Option<Box<str>>,
    patience: RequestTimeout,
    until: Moment,
    at_most: Moment,
}

/// The requests of one side that have no answer yet.
#[derive(Clone, Debug)]
pub struct PendingRequests {
    waiting: BTreeMap<Id, PendingRequest>,
    limit: usize,
}

impl PendingRequests {
    /// Room for this many.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            limit,
        }
    }

    /// Number of pending requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether this id waits.
    #[must_use]
    pub fn contains(&self, id: &Id) -> bool {
        self.waiting.contains_key(id)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// The id is taken, or there is no room.
    pub fn add(
        &mut self,
        id: Id,
        method: &str,
        progress_token: Option<&str>,
        patience: RequestTimeout,
        now: Moment,
    ) -> Result<(), ApiMisuse> {
        if self.waiting.contains_key(&id) {
            return Err(ApiMisuse::IdReused(id.raw().into()));
        }
        if self.waiting.len() >= self.limit {
            return Err(ApiMisuse::TooMany { limit: self.limit });
        }
        let at_most = now.after(patience.maximum);
        let entry = PendingRequest {
            method: Box::from(method),
            progress_token: progress_token.map(Box::from),
            patience,
            until: now.after(patience.timeout).min(at_most),
            at_most,
        };
        self.waiting.insert(id, entry);
        Ok(())
    }

    /// Removes the request that an answer belongs to; none for unexpected answers.
    pub fn settle(&mut self, id: IdRef<'_>) -> Option<(Id, Box<str>)> {
        let (id, waiting) = self.waiting.remove_entry(&id.to_id())?;
        Some((id, waiting.method))
    }

    /// Notes progress under a raw token.
    pub fn progress(&mut self, token: &str, now: Moment) {
        let owner = self
            .waiting
            .values_mut()
            .find(|w| w.progress_token.as_deref() == Some(token));
        if let Some(waiting) = owner
            && waiting.patience.on_progress == OnProgress::Extend
        {
            waiting.until = now.after(waiting.patience.timeout).min(waiting.at_most);
        }
    }

    /// Notes progress, given the raw parameters of its notification.
    pub(crate) fn note_progress(&mut self, params: Option<&str>, now: Moment) {
        let params = Object::parse(params.unwrap_or("{}")).unwrap_or_default();
        if let Some(token) = params.get("progressToken") {
            self.progress(token, now);
        }
    }

    /// Removes every request that has timed out.
    pub fn expired(&mut self, now: Moment) -> Vec<(Id, Box<str>)> {
        self.waiting
            .extract_if(.., |_, waiting| waiting.until <= now)
            .map(|(id, waiting)| (id, waiting.method))
            .collect()
    }

    /// Takes every request: the connection is gone.
    pub fn drain(&mut self) -> Vec<(Id, Box<str>)> {
        core::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(id, waiting)| (id, waiting.method))
            .collect()
    }

    /// Earliest timeout.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Moment> {
        self.waiting.values().map(|w| w.until).min()
    }
}
