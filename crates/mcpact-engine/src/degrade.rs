//! Doing without: a fallback for what was not negotiated, and a note of what was lost.

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::Side;

use crate::pact::Pact;

/// A capability that is not available, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailableCapability {
    /// Side that did not declare it.
    pub owner: Side,
    /// The dotted path.
    pub path: String,
    /// Reason as a sentence.
    pub why: String,
}

impl Pact {
    /// Runs `with` when the path is in effect, `without` otherwise; the latter learns why.
    pub fn when_supported<T>(
        &self,
        owner: Side,
        path: &str,
        with: impl FnOnce() -> T,
        without: impl FnOnce(UnavailableCapability) -> T,
    ) -> T {
        match self.why_not(owner, path) {
            None => with(),
            Some(disabled) => without(disabled),
        }
    }

    /// Reason why a path is not in effect, if it is not.
    #[must_use]
    pub fn why_not(&self, owner: Side, path: &str) -> Option<UnavailableCapability> {
        if self.has(owner, path) {
            return None;
        }
        let dropped = self.ignored();
        let known = dropped
            .iter()
            .find(|d| d.owner == owner && &*d.path == path);
        let why = known.map_or_else(
            || alloc::format!("the {owner} did not declare `{path}`"),
            |d| alloc::format!("the {owner} declared `{path}`, but {}", d.why.explain()),
        );
        Some(UnavailableCapability {
            owner,
            path: String::from(path),
            why,
        })
    }

    /// The reasons for everything in a wish list that is not available.
    #[must_use]
    pub fn disabled<'w>(
        &self,
        wishes: impl IntoIterator<Item = (Side, &'w str)>,
    ) -> Vec<UnavailableCapability> {
        wishes
            .into_iter()
            .filter_map(|(owner, path)| self.why_not(owner, path))
            .collect()
    }
}
