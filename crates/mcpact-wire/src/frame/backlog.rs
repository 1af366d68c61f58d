//! Bytes that arrived and were not handed out yet.

use alloc::vec::Vec;
use core::{fmt, ops::Range};

/// The UTF-8 byte order mark, which some writers put in front of a stream.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Capacity that an empty backlog may keep: one large message must not pin its size for the whole
/// life of a connection.
const KEPT_CAPACITY: usize = 256 * 1024;

/// A byte queue with a read cursor, without the byte order mark that may come first.
///
/// A range that it hands out holds until the next call that changes it.
///
/// ```text
/// bytes  | taken | pending: scanned | not scanned |
///        0       start              scanned       len
/// ```
pub(in crate::frame) struct Backlog {
    bytes: Vec<u8>,
    start: usize,
    scanned: usize,
    limit: usize,
    at_start: bool,
}

impl Backlog {
    /// A backlog; its owner keeps the pending part at or below `limit`.
    pub(in crate::frame) const fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            at_start: true,
        }
    }

    pub(in crate::frame) fn push(&mut self, chunk: &[u8]) {
        self.compact();
        self.grow(chunk.len());
        self.bytes.extend_from_slice(chunk);
    }

    /// Takes the bytes before the next one that `ends` accepts, and that byte.
    ///
    /// Each byte is looked at once, also when this gives `None` many times.
    pub(in crate::frame) fn take_until(
        &mut self,
        ends: impl Fn(u8) -> bool,
    ) -> Option<(Range<usize>, u8)> {
        self.drop_bom();
        let fresh = self.bytes.get(self.scanned..).unwrap_or_default();
        let hit = position(fresh, ends).map(|offset| self.scanned + offset);
        let Some((end, &terminator)) = hit.and_then(|end| Some((end, self.bytes.get(end)?))) else {
            self.scanned = self.bytes.len();
            self.release();
            return None;
        };
        let taken = self.start..end;
        self.start = end + 1;
        self.scanned = self.start;
        Some((taken, terminator))
    }

    /// Takes everything.
    pub(in crate::frame) fn take_pending(&mut self) -> Range<usize> {
        let taken = self.start..self.bytes.len();
        self.start = taken.end;
        self.scanned = taken.end;
        taken
    }

    /// Takes the next byte if it is this one.
    pub(in crate::frame) fn take_byte(&mut self, byte: u8) {
        if self.pending().first() == Some(&byte) {
            self.start += 1;
            self.scanned = self.scanned.max(self.start);
        }
    }

    /// Drops all but the first `keep` pending bytes.
    pub(in crate::frame) fn truncate_pending(&mut self, keep: usize) {
        self.bytes.truncate(self.start + keep);
        self.scanned = self.bytes.len();
        self.release();
    }

    /// The bytes that were not taken yet, unless they may still become a byte order mark.
    pub(in crate::frame) fn pending(&self) -> &[u8] {
        if self.at_start {
            return &[];
        }
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(in crate::frame) fn slice(&self, taken: &Range<usize>) -> &[u8] {
        self.bytes.get(taken.clone()).unwrap_or_default()
    }

    fn drop_bom(&mut self) {
        let undecided = self.bytes.len() < BOM.len() && BOM.starts_with(&self.bytes);
        if self.at_start && !undecided {
            self.at_start = false;
            if self.bytes.starts_with(BOM) {
                self.start = BOM.len();
                self.scanned = BOM.len();
            }
        }
    }

    /// Moves the pending bytes to the front when that is paid for: they are fewer than the bytes
    /// taken since the last move, or all of them are scanned, so they are the unfinished tail of
    /// the newest chunk.
    fn compact(&mut self) {
        let pending = self.bytes.len() - self.start;
        if self.start > 0 && (pending <= self.start || self.scanned == self.bytes.len()) {
            self.bytes.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
    }

    /// Doubles like `Vec`, but not past the limit as long as the owner stays below it.
    fn grow(&mut self, more: usize) {
        let len = self.bytes.len();
        let needed = len.saturating_add(more);
        if needed <= self.bytes.capacity() {
            return;
        }
        // A tiny limit does not count the few bytes that tell what a line is.
        let limit = self.limit.max(BOM.len());
        if len > limit {
            self.bytes.reserve(more);
        } else {
            let doubled = self.bytes.capacity().saturating_mul(2).min(limit);
            self.bytes.reserve_exact(needed.max(doubled) - len);
        }
    }

    fn release(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_CAPACITY);
            self.start = 0;
            self.scanned = 0;
        }
    }

    #[cfg(test)]
    pub(in crate::frame) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Shows sizes only: the contents belong to the peers.
impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog")
            .field("pending", &self.pending().len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Position of the first byte that `wanted` accepts.
pub(in crate::frame) fn position(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    // A block without an early exit compiles to vector instructions.
    let (blocks, _) = bytes.as_chunks::<32>();
    let clean = blocks
        .iter()
        .take_while(|block| !block.iter().fold(false, |hit, &byte| hit | wanted(byte)))
        .count();
    let from = clean * 32;
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter()
        .position(|&byte| wanted(byte))
        .map(|offset| from + offset)
}
