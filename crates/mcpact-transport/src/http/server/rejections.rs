//! Counts of requests that listeners of this process rejected before a handler saw them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Status codes of rejections.
const STATUSES: [u16; 9] = [400, 401, 403, 408, 413, 415, 431, 501, 503];

static COUNTS: [AtomicU64; STATUSES.len()] = [const { AtomicU64::new(0) }; STATUSES.len()];

/// Counts a rejection with this status.
pub(super) fn count(status: u16) {
    let counts = STATUSES.iter().zip(&COUNTS);
    for (_, count) in counts.filter(|(known, _)| **known == status) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the status codes with their number of rejections.
pub fn rejections() -> impl Iterator<Item = (u16, u64)> {
    let counts = STATUSES.into_iter().zip(&COUNTS);
    counts.map(|(status, count)| (status, count.load(Ordering::Relaxed)))
}
