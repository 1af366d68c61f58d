//! Text of a config, and positions in it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

/// Returns whether a terminal obeys a character or does not show it: control characters, direction controls, and
/// invisible characters.
#[must_use]
pub fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Byte range in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
}

impl Span {
    /// Creates a range.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The part of the range in a text, with whole characters.
    pub(super) fn within(self, text: &str) -> Self {
        let start = text.floor_char_boundary(self.start);
        let end = text.ceil_char_boundary(self.end);
        Self::new(start, end.max(start))
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

/// Line and column, starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Text of a config file. `Debug` does not show the text, which may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// Path as given by the user.
    pub name: String,
    /// Text without byte order mark.
    pub text: String,
    /// Files it takes values from, with their digests; `None` for unreadable ones.
    pub files: BTreeMap<PathBuf, Option<Digest>>,
}

/// Digest for detecting changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Digest of a list of parts.
#[derive(Default)]
pub(super) struct PartsDigest(Sha256);

impl PartsDigest {
    pub(super) fn add(&mut self, part: &[u8]) {
        // The length prefix keeps adjacent parts distinct.
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// The first half of the digest, in hexadecimal.
    pub(super) fn finish(self) -> String {
        let digest = self.0.finalize();
        digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Source");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    /// Creates a source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: without_mark(text.into()),
            files: BTreeMap::new(),
        }
    }

    /// Position of a byte.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Position {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Line with this number, starting at 1.
    #[must_use]
    pub fn line(&self, number: usize) -> &str {
        self.text
            .lines()
            .nth(number.saturating_sub(1))
            .unwrap_or("")
    }

    fn before(&self, offset: usize) -> &str {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }
}

/// Removes a byte order mark.
pub(super) fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_start_at_one_and_count_characters() {
        let source = Source::new("a", "\u{feff}ab\nçd\n");
        let at = |offset| source.position(offset).to_string();
        assert_eq!(at(0), "1:1");
        assert_eq!(at(2), "1:3");
        assert_eq!(at(3), "2:1");
        assert_eq!(at(5), "2:2");
        assert_eq!(at(99), "3:1");
        assert_eq!(source.line(2), "çd");
        assert_eq!(source.line(9), "");
    }

    #[test]
    fn debug_shows_no_text() {
        assert!(!format!("{:?}", Source::new("a", "hunter2")).contains("hunter2"));
    }
}
