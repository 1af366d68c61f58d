//! One pass over a JSON text: is it well-formed, and where does each value end?

mod seen;
pub(crate) mod walk;

use alloc::borrow::Cow;
use alloc::string::String;

use walk::{Walk, WalkError, plain_length};

pub(crate) use seen::KeyRecord;
pub use seen::SeenKeys;

/// Nesting limit of objects and arrays.
pub const MAX_DEPTH: u32 = 128;

/// Reason why a text is not acceptable JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanFault {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// The text ends inside a value.
    #[error("unexpected end")]
    End,
    /// A byte that cannot stand here.
    #[error("unexpected byte")]
    Byte,
    /// Something follows the value.
    #[error("trailing bytes after the value")]
    Trailing,
    /// A control character or a bad escape in a string.
    #[error("malformed string")]
    Text,
    /// A malformed number.
    #[error("malformed number")]
    Number,
    /// More than [`MAX_DEPTH`] levels.
    #[error("nested deeper than 128 levels")]
    Depth,
    /// A protocol member stands twice; readers would disagree about which one counts.
    #[error("duplicate member `{0}`")]
    Duplicate(&'static str),
    /// Some member of an object stands twice.
    #[error("the same member stands twice in one object")]
    DuplicateMember,
    /// The text is longer than a span can tell.
    #[error("longer than 4 GiB")]
    Length,
}

/// A fault and the byte where it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct ScanError {
    /// Offset into the text.
    pub at: usize,
    /// Kind of fault.
    pub fault: ScanFault,
}

/// A walk over a text, one value at a time.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    keys: KeyRecord,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            keys: KeyRecord::default(),
        }
    }

    /// Starts a new record of keys, and returns the last one.
    pub(crate) const fn record(&mut self, keys: KeyRecord) -> KeyRecord {
        core::mem::replace(&mut self.keys, keys)
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) const fn fail<T>(&self, fault: ScanFault) -> Result<T, ScanError> {
        Err(ScanError { at: self.at, fault })
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// The text from `start` up to the cursor.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte after white space, which stays where it is.
    pub(crate) fn next_byte(&mut self) -> Result<u8, ScanError> {
        self.skip_space();
        self.peek().map_or_else(|| self.fail(ScanFault::End), Ok)
    }

    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.next_byte()? == byte {
            self.at += 1;
            Ok(())
        } else {
            self.fail(ScanFault::Byte)
        }
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        self.skip_space();
        if self.at == self.text.len() {
            Ok(())
        } else {
            self.fail(ScanFault::Trailing)
        }
    }

    /// Steps over a value that starts at `depth` and gives its text.
    pub(crate) fn value(&mut self, depth: u32) -> Result<&'a str, ScanError> {
        self.skip_space();
        let start = self.at;
        self.skip_value(depth)?;
        Ok(self.since(start))
    }

    /// Visits the members of an object. `visit` gets each key and must step over its value.
    pub(crate) fn members(
        &mut self,
        depth: u32,
        mut visit: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if depth >= MAX_DEPTH {
            return self.fail(ScanFault::Depth);
        }
        self.expect(b'{')?;
        if self.next_byte()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key(depth)?;
            visit(self, key)?;
            match self.next_byte()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail(ScanFault::Byte),
            }
        }
    }

    /// Visits the elements of an array. `visit` must step over each.
    pub(crate) fn elements(
        &mut self,
        mut visit: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.expect(b'[')?;
        if self.next_byte()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            visit(self)?;
            match self.next_byte()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.fail(ScanFault::Byte),
            }
        }
    }

    fn walk<T>(
        &mut self,
        step: impl FnOnce(&mut Walk<'a>, &mut KeyRecord) -> Result<T, WalkError>,
    ) -> Result<T, ScanError> {
        let mut walk = Walk {
            bytes: self.bytes(),
            at: self.at,
        };
        let outcome = step(&mut walk, &mut self.keys);
        self.at = walk.at;
        outcome.map_err(|slip| ScanError {
            at: walk.at,
            fault: slip.into(),
        })
    }

    /// Steps over a value that starts at `depth`.
    pub(crate) fn skip_value(&mut self, depth: u32) -> Result<(), ScanError> {
        self.walk(|walk, keys| walk.value(depth, keys))
    }

    /// Steps over a string and gives its text, if it stands there as it is; none if it has escapes.
    pub(crate) fn plain_string(&mut self) -> Result<Option<&'a str>, ScanError> {
        let start = self.at + 1;
        let escaped = self.walk(|walk, _| walk.string())?;
        let inner = self.text.get(start..self.at - 1).unwrap_or_default();
        Ok((!escaped).then_some(inner))
    }

    /// Steps over a key and its colon.
    fn key(&mut self, depth: u32) -> Result<Cow<'a, str>, ScanError> {
        let mut start = 0;
        let mut end = 0;
        let escaped = self.walk(|walk, keys| {
            if walk.next_byte()? != b'"' {
                return Err(WalkError::Byte);
            }
            start = walk.at;
            let escaped = walk.string()?;
            end = walk.at;
            let key = walk.bytes.get(start + 1..end - 1).unwrap_or_default();
            keys.add(key, escaped, depth);
            if walk.next_byte()? != b':' {
                return Err(WalkError::Byte);
            }
            walk.at += 1;
            Ok(escaped)
        })?;
        if escaped {
            return Ok(unquote(self.text.get(start..end).unwrap_or_default()));
        }
        let plain = self.text.get(start + 1..end - 1).unwrap_or_default();
        Ok(Cow::Borrowed(plain))
    }
}

/// The text as UTF-8, or where it stops being that.
///
/// # Errors
/// [`ScanFault::Utf8`] with the first bad byte.
pub fn utf8(bytes: &[u8]) -> Result<&str, ScanError> {
    core::str::from_utf8(bytes).map_err(|e| ScanError {
        at: e.valid_up_to(),
        fault: ScanFault::Utf8,
    })
}

/// Returns whether `text` is exactly one well-formed JSON value.
///
/// # Errors
/// The first fault.
pub fn check(text: &str) -> Result<(), ScanError> {
    let mut cursor = Cursor::new(text);
    cursor.value(0)?;
    cursor.end()
}

/// The text of a JSON string token, without quotes and escapes.
///
/// A lone surrogate, which JSON can write and UTF-8 cannot, becomes U+FFFD.
#[must_use]
pub fn unquote(token: &str) -> Cow<'_, str> {
    let inner = token
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .unwrap_or(token);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    match serde_json::from_str::<String>(token) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Owned(unescape_lossy(inner)),
    }
}

/// Returns whether a string token says something that no text can: it has a lone surrogate.
#[must_use]
pub(crate) fn is_unspeakable(token: &str) -> bool {
    token.contains('\\') && serde_json::from_str::<String>(token).is_err()
}

/// The text of a raw value that is a string; none for every other kind.
#[must_use]
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    raw.starts_with('"').then(|| unquote(raw))
}

/// Only for strings that serde refuses, which are those with lone surrogates: piece by piece, so that
/// only the piece that cannot be said is replaced.
fn unescape_lossy(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at..];
        let is_unicode = escape.as_bytes().get(1) == Some(&b'u');
        let single = if is_unicode { 6 } else { 2 };
        // A pair of surrogates is one character; try it before either half.
        let lengths = if is_unicode {
            [12, single]
        } else {
            [single, single]
        };
        let found = lengths.into_iter().find_map(|length| {
            let piece = escape.get(..length)?;
            let text = serde_json::from_str::<String>(&alloc::format!("\"{piece}\"")).ok()?;
            (length == single || text.chars().count() == 1).then_some((length, text))
        });
        match found {
            Some((length, text)) => {
                out.push_str(&text);
                rest = escape.get(length..).unwrap_or_default();
            }
            None => {
                out.push(char::REPLACEMENT_CHARACTER);
                rest = escape.get(single..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// A JSON string token for this text.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(&mut out, text);
    out
}

/// Appends a JSON string token for this text.
pub fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let (plain, tail) = rest.split_at(plain_length(rest.as_bytes()));
        out.push_str(plain);
        // Only ASCII ends a plain part, so the next character begins one byte later.
        let Some(b) = tail.bytes().next() else {
            break;
        };
        push_escape(out, b);
        rest = tail.get(1..).unwrap_or_default();
    }
    out.push('"');
}

fn push_escape(out: &mut String, b: u8) {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    match b {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        _ => {
            out.push_str("\\u00");
            out.push(HEX[usize::from(b >> 4)]);
            out.push(HEX[usize::from(b & 15)]);
        }
    }
}

#[cfg(test)]
mod tests;
