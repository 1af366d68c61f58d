//! A small table of counters, for what does not happen with every call.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counters under keys of which there are few.
#[derive(Debug)]
pub(super) struct Tally<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Copy> Tally<K> {
    pub(super) fn add(&self, key: K) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(key).or_default() += 1;
    }

    pub(super) fn all(&self) -> Vec<(K, u64)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(key, count)| (*key, *count)).collect()
    }
}
