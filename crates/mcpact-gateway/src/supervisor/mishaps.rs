//! What went wrong with a server, and whether it still does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mcpact_engine::time::Moment;

use super::run::{Supervisor, random};
use super::status::Mishap;
use crate::error::{FailureText, Trouble};

/// What went wrong last. It stands until something goes well.
#[derive(Debug, Default)]
pub(super) struct Mishaps {
    last: Option<(FailureText, Moment)>,
    /// How many calls and questions in a row did not reach the server.
    missed: usize,
    standing: Arc<Standing>,
    /// Since when something stands, if it does.
    since: Moment,
}

/// Whether something stands, for those who ask with every call.
#[derive(Debug, Default)]
pub(super) struct Standing {
    is_any: AtomicBool,
    turns: AtomicU64,
}

impl Standing {
    /// Whether anything does.
    pub(super) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// How often that, or what it is, has changed.
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }

    fn turn(&self, is_any: bool) {
        self.is_any.store(is_any, Ordering::Release);
        self.turns.fetch_add(1, Ordering::AcqRel);
    }
}

impl Mishaps {
    pub(super) const fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// What went wrong last.
    pub(super) fn last(&self, now: Moment) -> Option<Mishap> {
        self.last.as_ref().map(|(why, when)| Mishap {
            why: why.clone(),
            age: now.since(*when),
        })
    }

    /// Why it went wrong last.
    pub(super) fn why(&self) -> Option<&FailureText> {
        self.last.as_ref().map(|(why, _)| why)
    }

    /// What still goes wrong.
    pub(super) fn stands(&self) -> Option<&FailureText> {
        self.why().filter(|_| self.standing.is_any())
    }

    /// The same, and since when.
    pub(super) fn standing_one(&self, now: Moment) -> Option<Mishap> {
        self.stands().map(|why| Mishap {
            why: why.clone(),
            age: now.since(self.since),
        })
    }

    pub(super) const fn missed(&self) -> usize {
        self.missed
    }

    /// Something went wrong that the next call may do better; what stands is the better cause.
    pub(super) fn happened(&mut self, why: &FailureText, now: Moment) {
        let why = self.stands().unwrap_or(why).clone();
        self.last = Some((why, now));
    }

    /// Something went wrong, and does until something goes well.
    pub(super) fn stand(&mut self, why: FailureText, now: Moment) {
        let is_new = self.stands() != Some(&why);
        if !self.standing.is_any() {
            self.since = now;
        }
        self.last = Some((why, now));
        if is_new {
            self.standing.turn(true);
        }
    }

    /// What went wrong last does until something goes well.
    pub(super) fn stay(&mut self) {
        if let (Some((_, when)), false) = (&self.last, self.standing.is_any()) {
            self.since = *when;
            self.standing.turn(true);
        }
    }

    /// A call did not reach the server.
    pub(super) fn miss(&mut self, why: FailureText, now: Moment) {
        self.missed = self.missed.saturating_add(1);
        self.stand(why, now);
    }

    /// Something went well. Whether something stood until then.
    pub(super) fn over(&mut self) -> bool {
        self.missed = 0;
        let stood = self.standing.is_any();
        if stood {
            self.standing.turn(false);
        }
        stood
    }
}

impl Supervisor {
    /// What keeps the server from being used, until a call or a check succeeds.
    pub(crate) fn stands(&self) -> Option<Mishap> {
        let is_any = self.standing.is_any();
        is_any.then(|| self.fleet().mishaps().standing_one(self.now()))?
    }

    /// How often that has changed.
    pub(crate) fn turns(&self) -> u64 {
        self.standing.turns()
    }

    /// Somebody has to do without the server who does not ask again.
    pub(crate) fn did_without(&self) {
        self.fleet().did_without();
        self.changed();
    }

    /// A start was not even tried, for somebody has to agree to it.
    pub(crate) fn not_allowed(&self, trouble: &Trouble) {
        let why = trouble.text(&self.masks);
        self.fleet().not_allowed(&why, random(), self.now());
        self.changed();
    }
}
