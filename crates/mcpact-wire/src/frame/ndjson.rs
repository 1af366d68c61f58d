//! One JSON-RPC message per line, as stdio carries it.
//!
//! `2026-07-28 basic/transports/stdio`: messages are delimited by newlines and must not
//! contain embedded ones. Real servers also print banners, blank lines and stack traces to the same
//! pipe, so a line that cannot be JSON-RPC is [`Line::Noise`] for the log, not a failure.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::ops::Range;

use super::backlog::{self, Backlog};

/// The line limit for owners that have no opinion: 16 MiB.
pub const DEFAULT_LINE_LIMIT: usize = 16 * 1024 * 1024;

/// Number of bytes kept of either end of an overlong line, for the error report.
pub const KEPT_END: usize = 128;

/// Cuts a byte stream into lines.
///
/// Call [`push`](Self::push), then [`next_line`](Self::next_line) until it gives `None`. An owner
/// that does so makes the reader hold at most the limit plus one chunk. The work is linear in the
/// number of bytes, however they are cut into chunks.
#[derive(Debug)]
pub struct LineReader {
    backlog: Backlog,
    limit: usize,
    place: Place,
    /// Both ends of the line that is or was too long.
    ends: Vec<u8>,
}

/// Position of the next byte in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Line,
    /// In a line that is too long already.
    Surplus,
    /// Behind the end of such a line, which was not handed out yet.
    Behind,
}

/// One line, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that starts like a JSON-RPC message or batch; nothing else about it is checked.
    Json(&'a [u8]),
    /// A line that cannot be JSON-RPC, in any encoding or none.
    Noise(&'a [u8]),
    /// A line that was longer than the limit and is lost, handed out when it has ended.
    TooLong {
        /// The limit in bytes.
        limit: usize,
        /// Its first and its last [`KEPT_END`] bytes, one after the other.
        ends: &'a [u8],
    },
}

enum Found {
    Bytes(Range<usize>),
    TooLong,
}

impl LineReader {
    /// A reader that refuses lines of more than `limit` bytes, counted up to the line feed.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            backlog: Backlog::new(limit),
            limit,
            place: Place::Line,
            ends: Vec::new(),
        }
    }

    /// Takes bytes as they arrived, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        // In a surplus the backlog is empty, so the chunk continues that line.
        let chunk = match self.place {
            Place::Line | Place::Behind => chunk,
            Place::Surplus => self.skip(chunk),
        };
        self.backlog.push(chunk);
    }

    /// Number of bytes of the unfinished line that are held.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.backlog.pending().len()
    }

    /// Drops the unfinished line as if it were longer than the limit. Call it after [`next_line`](Self::next_line) has
    /// given `None`.
    pub fn abandon(&mut self) {
        if self.place == Place::Line {
            self.drop_pending();
        }
    }

    fn drop_pending(&mut self) {
        self.place = Place::Surplus;
        self.ends.clear();
        keep_ends(&mut self.ends, self.backlog.pending());
        self.backlog.truncate_pending(0);
    }

    /// Bytes after the overlong line.
    fn skip<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let end = backlog::position(chunk, |byte| byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (chunk.get(..end), chunk.get(end + 1..)),
            None => (Some(chunk), None),
        };
        keep_ends(&mut self.ends, line.unwrap_or_default());
        if end.is_some() {
            self.place = Place::Behind;
        }
        rest.unwrap_or_default()
    }

    /// The next complete line that is not blank.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let found = self.advance();
        self.show(found)
    }

    /// Like [`next_line`](Self::next_line) when no more bytes will come: an unterminated last line
    /// is given as well.
    ///
    /// Call it until it gives `None`.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        let found = self.advance().or_else(|| self.rest());
        self.show(found)
    }

    fn advance(&mut self) -> Option<Found> {
        if self.place == Place::Behind {
            self.place = Place::Line;
            return Some(Found::TooLong);
        }
        while let Some((line, _)) = self.backlog.take_until(|byte| byte == b'\n') {
            let found = self.find(line);
            if found.is_some() {
                return found;
            }
        }
        if self.backlog.pending().len() > self.limit {
            self.drop_pending();
        }
        None
    }

    fn rest(&mut self) -> Option<Found> {
        if self.place == Place::Surplus {
            self.place = Place::Line;
            return Some(Found::TooLong);
        }
        let line = self.backlog.take_pending();
        self.find(line)
    }

    /// The line without its carriage return; `None` when it is blank.
    fn find(&mut self, mut line: Range<usize>) -> Option<Found> {
        let bytes = self.backlog.slice(&line);
        if line.len() > self.limit {
            self.ends.clear();
            keep_ends(&mut self.ends, bytes);
            return Some(Found::TooLong);
        }
        if bytes.ends_with(b"\r") {
            line.end -= 1;
        }
        (!bytes.trim_ascii().is_empty()).then_some(Found::Bytes(line))
    }

    fn show(&self, found: Option<Found>) -> Option<Line<'_>> {
        Some(match found? {
            Found::TooLong => Line::TooLong {
                limit: self.limit,
                ends: &self.ends,
            },
            Found::Bytes(line) => {
                let line = self.backlog.slice(&line);
                match line.trim_ascii_start().first() {
                    Some(b'{' | b'[') => Line::Json(line),
                    Some(_) | None => Line::Noise(line),
                }
            }
        })
    }
}

/// Adds more of a line to its ends.
fn keep_ends(ends: &mut Vec<u8>, more: &[u8]) {
    let room = KEPT_END.saturating_sub(ends.len()).min(more.len());
    let (first, more) = more.split_at(room);
    ends.extend_from_slice(first);
    let last = more.get(more.len().saturating_sub(KEPT_END)..);
    ends.extend_from_slice(last.unwrap_or_default());
    if ends.len() > 2 * KEPT_END {
        ends.drain(KEPT_END..ends.len() - KEPT_END);
    }
}

/// Appends a JSON text and its line feed.
///
/// Raw line breaks become spaces: in valid JSON they can only be whitespace between tokens. All
/// other bytes are left as they are.
pub fn write_line(out: &mut Vec<u8>, message: &str) {
    let from = out.len();
    out.reserve(message.len() + 1);
    out.extend_from_slice(message.as_bytes());
    let is_break = |byte| matches!(byte, b'\n' | b'\r');
    let written = out.get_mut(from..).unwrap_or_default();
    if backlog::position(written, is_break).is_some() {
        for byte in written.iter_mut().filter(|byte| is_break(**byte)) {
            *byte = b' ';
        }
    }
    out.push(b'\n');
}
