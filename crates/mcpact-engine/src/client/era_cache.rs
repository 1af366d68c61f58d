//! Cache of detected eras, so that the next connection needs no probe.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::time::Moment;

/// Detected era of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EraVerdict {
    /// It serves requests with metadata.
    Modern,
    /// It wants a handshake.
    Legacy,
    /// It wants a handshake, and a probe kills it.
    LegacyDiesOnProbe,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    verdict: EraVerdict,
    learned: Moment,
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraLookup {
    /// This was learned not long ago.
    Known(EraVerdict),
    /// Ask, and tell the outcome; others who come meanwhile will be told to wait.
    Ask,
    /// Another connection probes already.
    Wait,
}

/// Verdicts by key, dated and bounded. The key is the owner's: for a process its command, arguments,
/// environment hash and binary date; for HTTP the origin and the credential.
#[derive(Clone, Debug)]
pub struct EraCache {
    entries: BTreeMap<Box<str>, Entry>,
    asking: BTreeMap<Box<str>, Moment>,
    holds_for: Duration,
    limit: usize,
}

/// Time that one prober may keep the others waiting.
const ASKING_LIMIT: Duration = Duration::from_secs(60);

impl EraCache {
    /// A book that keeps this many verdicts for this long.
    #[must_use]
    pub const fn new(limit: usize, holds_for: Duration) -> Self {
        Self {
            entries: BTreeMap::new(),
            asking: BTreeMap::new(),
            holds_for,
            limit,
        }
    }

    /// Looks up a server.
    pub fn lookup(&mut self, key: &str, now: Moment) -> EraLookup {
        match self.entries.get(key) {
            Some(entry) if now.since(entry.learned) < self.holds_for => {
                return EraLookup::Known(entry.verdict);
            }
            Some(_) => drop(self.entries.remove(key)),
            None => {}
        }
        match self.asking.get(key) {
            Some(since) if now.since(*since) < ASKING_LIMIT => EraLookup::Wait,
            Some(_) | None => {
                self.asking.insert(Box::from(key), now);
                EraLookup::Ask
            }
        }
    }

    /// Writes down what was learned; the oldest entry makes room.
    pub fn learn(&mut self, key: &str, verdict: EraVerdict, now: Moment) {
        self.asking.remove(key);
        if self.limit == 0 {
            return;
        }
        if !self.entries.contains_key(key) && self.entries.len() >= self.limit {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.learned);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.entries.insert(
            Box::from(key),
            Entry {
                verdict,
                learned: now,
            },
        );
    }

    /// Nothing was learned, or what was known has been contradicted.
    pub fn forget(&mut self, key: &str) {
        self.asking.remove(key);
        self.entries.remove(key);
    }

    /// Number of verdicts kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
