//! Why a server cannot say now what it has.

use super::Member;
use crate::aggregate::kind::ListKind;
use crate::error::{AGAIN, Explanation};

/// How a server is that may have what is looked for, and cannot say so.
#[derive(Debug)]
pub(in crate::hub) struct Unwell {
    /// In a word.
    pub(in crate::hub) state: &'static str,
    /// Cause and advice.
    pub(in crate::hub) why: Explanation,
    /// What can be done.
    pub(in crate::hub) advice: String,
}

impl Member {
    /// Whether nobody knows what it has of this kind, and nothing is known to be wrong with it: it is on its way,
    /// or left alone for a moment.
    pub(in crate::hub) fn is_coming(&self, kind: ListKind) -> bool {
        let slots = self.slots();
        let mut lists = slots.iter().filter(|(of, _)| *of == kind);
        lists.all(|(_, slot)| slot.listing().is_none())
            && self.failure().is_none()
            && self.without(kind).is_none()
    }

    /// Why it may have things of this kind that are in no list, if it may.
    pub(in crate::hub) fn unwell(&self, kind: ListKind) -> Option<Unwell> {
        let status = self.bridge.status();
        let failure = self.explanation();
        let state = status.word(failure.is_some());
        let wait = status.state.wait();
        let rests = || wait.and(status.last_error.as_ref());
        let why = failure
            .or_else(|| self.without(kind).map(Explanation::from))
            .or_else(|| rests().map(|mishap| mishap.why.clone().into()))?;
        let again = match wait.or(status.tried_in) {
            Some(wait) => format!("{AGAIN}{wait:.1?}"),
            None => String::from("call again later"),
        };
        Some(Unwell {
            state,
            why,
            advice: format!("{again}; `mcpact status {}` shows how it is", self.name),
        })
    }
}
