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

/// Cuts a byte stream into lines.
///
/// Call [`push`](Self::push), then [`next_line`](Self::next_line) until it gives `None`. An owner
/// that does so makes the reader hold at most the limit plus one chunk. The work is linear in the
/// number of bytes, however they are cut into chunks.
#[derive(Debug)]
pub struct LineReader {
    backlog: Backlog,
    limit: usize,
    skipping: bool,
}

/// One line, without its line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that starts like a JSON-RPC message or batch; nothing else about it is checked.
    Json(&'a [u8]),
    /// A line that cannot be JSON-RPC, in any encoding or none.
    Noise(&'a [u8]),
    /// A line that was longer than the limit and is lost; reading goes on after it.
    TooLong {
        /// The limit in bytes.
        limit: usize,
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
            skipping: false,
        }
    }

    /// Takes bytes as they arrived, cut anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        // While a line is skipped the backlog is empty, so the chunk continues that line.
        let chunk = if self.skipping {
            match backlog::position(chunk, |byte| byte == b'\n') {
                Some(end) => {
                    self.skipping = false;
                    chunk.get(end + 1..).unwrap_or_default()
                }
                None => &[],
            }
        } else {
            chunk
        };
        self.backlog.push(chunk);
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
        while let Some((line, _)) = self.backlog.take_until(|byte| byte == b'\n') {
            let found = self.find(line);
            if found.is_some() {
                return found;
            }
        }
        if self.backlog.pending().len() > self.limit {
            self.skipping = true;
            self.backlog.truncate_pending(0);
            return Some(Found::TooLong);
        }
        None
    }

    fn rest(&mut self) -> Option<Found> {
        self.skipping = false;
        let line = self.backlog.take_pending();
        self.find(line)
    }

    /// The line without its carriage return; `None` when it is blank.
    fn find(&self, mut line: Range<usize>) -> Option<Found> {
        if line.len() > self.limit {
            return Some(Found::TooLong);
        }
        let bytes = self.backlog.slice(&line);
        if bytes.ends_with(b"\r") {
            line.end -= 1;
        }
        (!bytes.trim_ascii().is_empty()).then_some(Found::Bytes(line))
    }

    fn show(&self, found: Option<Found>) -> Option<Line<'_>> {
        Some(match found? {
            Found::TooLong => Line::TooLong { limit: self.limit },
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
