//! A text with a name, and places in it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

/// Where something stands in a text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Span {
    /// From one byte up to another.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

/// A line and a column, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A config as it lies in its file. Its `Debug` does not show the text, which may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// What people call it: the path that they gave.
    pub name: String,
    /// The text, without a byte order mark.
    pub text: String,
    /// The files that it takes values from, as they were read; none where one could not be.
    pub files: BTreeMap<PathBuf, Option<Digest>>,
}

/// Tells a text from another one, without keeping its secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Source");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    /// A text under a name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: without_mark(text.into()),
            files: BTreeMap::new(),
        }
    }

    /// The place of a byte.
    #[must_use]
    pub fn place(&self, offset: usize) -> Place {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The line with this number, counted from one.
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

/// A text without the byte order mark that some editors put before it.
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
    fn places_are_counted_from_one_and_in_characters() {
        let source = Source::new("a", "\u{feff}ab\nçd\n");
        let at = |offset| source.place(offset).to_string();
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
