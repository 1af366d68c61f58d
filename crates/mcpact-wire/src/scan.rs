//! One pass over a JSON text: is it well-formed, and where does each value end?

use alloc::borrow::Cow;
use alloc::string::String;

/// How deep objects and arrays may nest.
pub const MAX_DEPTH: u32 = 128;

/// Why a text is not acceptable JSON.
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
    /// What is wrong there.
    pub fault: ScanFault,
}

/// A walk over a text, one value at a time.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks, in the high bit of each byte, where a string may not simply go on: a quote, a backslash
/// or a control character. Only the lowest mark is exact, and only that one is used.
const fn stops(word: u64) -> u64 {
    let quote = word ^ (LOW * 0x22);
    let slash = word ^ (LOW * 0x5c);
    ((quote.wrapping_sub(LOW) & !quote)
        | (slash.wrapping_sub(LOW) & !slash)
        | (word.wrapping_sub(LOW * 0x20) & !word))
        & HIGH
}

/// Whether a block of bytes has no stop at all; the loop has no exit, so it becomes vector code.
fn is_plain(block: &[u8; 32]) -> bool {
    let mut stop = 0_u8;
    for &b in block {
        stop |= u8::from(b == b'"') | u8::from(b == b'\\') | u8::from(b < 0x20);
    }
    stop == 0
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
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
            self.skip_space();
            let start = self.at;
            self.skip_string()?;
            let key = unquote(self.since(start));
            self.expect(b':')?;
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

    /// The nesting below `base` lives in the bits of one integer: 1 is an object, 0 an array. That
    /// is what makes 128 the limit, and recursion and allocation unnecessary.
    fn skip_value(&mut self, base: u32) -> Result<(), ScanError> {
        let mut kinds: u128 = 0;
        let mut depth = base;
        loop {
            match self.next_byte()? {
                opening @ (b'{' | b'[') => {
                    if depth >= MAX_DEPTH {
                        return self.fail(ScanFault::Depth);
                    }
                    self.at += 1;
                    let is_object = opening == b'{';
                    if self.next_byte()? == opening + 2 {
                        self.at += 1;
                    } else {
                        depth += 1;
                        kinds = (kinds << 1) | u128::from(is_object);
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.skip_string()?,
                b'-' | b'0'..=b'9' => self.skip_number()?,
                b't' => self.skip_word("true")?,
                b'f' => self.skip_word("false")?,
                b'n' => self.skip_word("null")?,
                _ => return self.fail(ScanFault::Byte),
            }
            loop {
                if depth == base {
                    return Ok(());
                }
                let in_object = kinds & 1 == 1;
                match self.next_byte()? {
                    b',' => {
                        self.at += 1;
                        if in_object {
                            self.skip_key()?;
                        }
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return self.fail(ScanFault::Byte),
                }
                self.at += 1;
                depth -= 1;
                kinds >>= 1;
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), ScanError> {
        self.skip_space();
        self.skip_string()?;
        self.expect(b':')
    }

    fn skip_word(&mut self, word: &str) -> Result<(), ScanError> {
        if self.bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            self.fail(ScanFault::Byte)
        }
    }

    fn skip_string(&mut self) -> Result<(), ScanError> {
        if self.peek() != Some(b'"') {
            return self.fail(if self.peek().is_none() {
                ScanFault::End
            } else {
                ScanFault::Byte
            });
        }
        self.at += 1;
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.skip_escape()?,
                Some(_) => return self.fail(ScanFault::Text),
                None => return self.fail(ScanFault::End),
            }
        }
    }

    /// Moves to the next quote, backslash or control character, or to the end.
    fn skip_plain(&mut self) {
        let mut rest = &self.bytes()[self.at..];
        while let Some((word, _)) = rest.split_first_chunk::<8>() {
            let marks = stops(u64::from_le_bytes(*word));
            if marks != 0 {
                self.at += (marks.trailing_zeros() / 8) as usize;
                return;
            }
            rest = &rest[8..];
            self.at += 8;
            while let Some((block, tail)) = rest.split_first_chunk::<32>() {
                if !is_plain(block) {
                    break;
                }
                rest = tail;
                self.at += 32;
            }
        }
        self.at += rest
            .iter()
            .take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\')
            .count();
    }

    fn skip_escape(&mut self) -> Result<(), ScanError> {
        let length = match self.bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = self.bytes().get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return self.fail(ScanFault::Text);
                }
                6
            }
            Some(_) => return self.fail(ScanFault::Text),
            None => return self.fail(ScanFault::End),
        };
        self.at += length;
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), ScanError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.skip_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        match self.peek() {
            Some(b'0'..=b'9') => self.fail(ScanFault::Number),
            _ => Ok(()),
        }
    }

    fn skip_digits(&mut self) -> Result<(), ScanError> {
        let count = self.bytes()[self.at..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        self.at += count;
        if count == 0 {
            self.fail(ScanFault::Number)
        } else {
            Ok(())
        }
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

/// Whether `text` is exactly one well-formed JSON value.
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

/// The text of a raw value that is a string; none for every other kind.
#[must_use]
pub fn text(raw: &str) -> Option<Cow<'_, str>> {
    raw.starts_with('"').then(|| unquote(raw))
}

/// Only for strings that serde refuses, which are those with lone surrogates.
fn unescape_lossy(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find("\\u") {
        let (plain, escape) = rest.split_at(at);
        out.push_str(plain);
        let code = escape
            .get(2..6)
            .and_then(|d| u32::from_str_radix(d, 16).ok());
        out.push(
            code.and_then(char::from_u32)
                .unwrap_or(char::REPLACEMENT_CHARACTER),
        );
        rest = escape.get(6..).unwrap_or_default();
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
    let mut plain = 0;
    for (at, b) in text.bytes().enumerate() {
        let escape = match b {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if escape.is_empty() {
            const HEX: [char; 16] = [
                '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
            ];
            out.push_str("\\u00");
            out.push(HEX[usize::from(b >> 4)]);
            out.push(HEX[usize::from(b & 15)]);
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests;
