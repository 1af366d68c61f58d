//! Ambiguous messages: texts that two JSON readers understand differently.
//!
//! RFC 8259, section 4, leaves open which of two members with the same name counts, and some readers ignore the case of
//! names. [`check`] refuses what such readers disagree about. It is one pass over a text that was scanned before.

mod keys;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter, Write};

use mcpact_spec::ProtocolKeys;
use smallvec::SmallVec;

use crate::scan::walk::Walk;
use crate::scan::{quote, unquote};
use keys::{KeySpan, Spelling, spelling};

/// Up to this many keys of an object are compared each with each.
const FEW: usize = 8;
/// Keys and objects that need no allocation.
const INLINE_KEYS: usize = 24;
const INLINE_OBJECTS: usize = 8;
/// Maximum number of keys that are compared at a time: those of all open objects. It bounds memory to 18 MiB.
pub const MAX_KEYS: usize = 1 << 20;
/// Longest part of a path and of a key that an error shows, in characters.
const SHOWN: usize = 64;
/// Innermost parts of a path that an error shows.
const SHOWN_PARTS: usize = 6;

/// A key about which readers disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousKey {
    /// The key, without escapes and shortened.
    pub key: String,
    /// The members and elements that lead to it, shortened: `arguments.files[1].path`.
    pub path: String,
    /// Cause.
    pub kind: AmbiguityKind,
}

/// Reason why readers disagree about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmbiguityKind {
    /// The object has the key twice: some readers take the first value, others the last.
    Duplicate,
    /// It is another spelling of this key of the protocol: readers that ignore case take it for that key.
    Folded(&'static str),
    /// The object, with those around it, has more than [`MAX_KEYS`] keys, which are not compared.
    TooMany,
}

impl Display for AmbiguousKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> core::fmt::Result {
        match self.kind {
            AmbiguityKind::Duplicate => write!(f, "duplicate key `{}`", self.path),
            AmbiguityKind::Folded(name) => {
                write!(f, "key `{}` is another spelling of `{name}`", self.path)
            }
            AmbiguityKind::TooMany => {
                write!(f, "more than {MAX_KEYS} keys before `{}`", self.path)
            }
        }
    }
}

impl core::error::Error for AmbiguousKey {}

/// Checks that all readers see the same members in a well-formed value: no object has a key twice, and no object with
/// keys of the protocol has another spelling of one. `keys` are those of the value itself.
///
/// # Errors
/// An ambiguous key, or more keys than are compared.
pub fn check(raw: &str, keys: &'static ProtocolKeys) -> Result<(), AmbiguousKey> {
    find(raw, keys).map_err(|found| found.describe(raw))
}

/// Kind and place of an ambiguous key.
struct Found {
    kind: AmbiguityKind,
    key: KeySpan,
}

/// An open object.
#[derive(Clone, Copy)]
struct OpenObject {
    /// Number of keys before its own.
    base: usize,
    keys: Option<&'static ProtocolKeys>,
}

/// All keys of the open objects are in one stack; those of an object are compared when it ends.
fn find(raw: &str, root: &'static ProtocolKeys) -> Result<(), Found> {
    let mut seen: SmallVec<[KeySpan; INLINE_KEYS]> = SmallVec::new();
    let mut open: SmallVec<[OpenObject; INLINE_OBJECTS]> = SmallVec::new();
    let mut current = OpenObject {
        base: 0,
        keys: None,
    };
    // Keys of the objects in the value that comes next; an array passes them on to its elements.
    let mut below = Some(root);
    let mut tokens = Tokens::new(raw);
    while let Some(token) = tokens.next() {
        match token {
            Token::Key(start, end) => {
                let key = KeySpan::new(raw, start, end);
                below = match current.keys {
                    None => None,
                    Some(keys) => match spelling(key.of(raw), keys) {
                        Spelling::Exact(below) => below,
                        Spelling::Other => None,
                        Spelling::Folded(name) => {
                            let kind = AmbiguityKind::Folded(name);
                            return Err(Found { kind, key });
                        }
                    },
                };
                if seen.len() == MAX_KEYS {
                    let kind = AmbiguityKind::TooMany;
                    return Err(Found { kind, key });
                }
                seen.push(key);
            }
            Token::OpenObject => {
                open.push(current);
                current = OpenObject {
                    base: seen.len(),
                    keys: below,
                };
            }
            Token::CloseObject => {
                let own = seen.get_mut(current.base..).unwrap_or_default();
                if let Some(key) = twin(raw, own) {
                    let kind = AmbiguityKind::Duplicate;
                    return Err(Found { kind, key });
                }
                seen.truncate(current.base);
                below = current.keys;
                current = match open.pop() {
                    Some(outer) => outer,
                    // Not well-formed.
                    None => return Ok(()),
                };
            }
            Token::OpenArray | Token::CloseArray | Token::Comma => {}
        }
    }
    Ok(())
}

/// Returns the second of two equal keys.
fn twin(raw: &str, keys: &mut [KeySpan]) -> Option<KeySpan> {
    if keys.len() <= FEW {
        let mut rest = &*keys;
        while let Some((key, others)) = rest.split_last() {
            if others.iter().any(|other| other.is_same(*key, raw)) {
                return Some(*key);
            }
            rest = others;
        }
        return None;
    }
    // Sorting bounds the time for any input; a table of hashes does not.
    keys.sort_unstable_by(|one, other| one.order(*other, raw));
    let mut pairs = keys.windows(2);
    pairs.find_map(|pair| match pair {
        [one, other] if one.is_same(*other, raw) => Some(one.later(*other)),
        _ => None,
    })
}

/// Structure of a text. A key is given as the places behind its opening and before its closing quote.
enum Token {
    OpenObject,
    CloseObject,
    OpenArray,
    CloseArray,
    Comma,
    Key(usize, usize),
}

/// Steps over a well-formed text. Any other text gives other tokens, but no more than it has bytes.
struct Tokens<'a> {
    walk: Walk<'a>,
    /// The open objects and arrays, as in [`Walk::value`].
    kinds: u128,
    key_is_next: bool,
}

impl<'a> Tokens<'a> {
    const fn new(raw: &'a str) -> Self {
        Self {
            walk: Walk {
                bytes: raw.as_bytes(),
                at: 0,
            },
            kinds: 0,
            key_is_next: false,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.walk.bytes.get(self.walk.at)?;
            if byte == b'"' {
                let start = self.walk.at + 1;
                self.walk.string().ok()?;
                if self.key_is_next {
                    self.key_is_next = false;
                    return Some(Token::Key(start, self.walk.at - 1));
                }
                continue;
            }
            self.walk.at += 1;
            match byte {
                b'{' => {
                    self.kinds = (self.kinds << 1) | 1;
                    self.key_is_next = true;
                    return Some(Token::OpenObject);
                }
                b'[' => {
                    self.kinds <<= 1;
                    return Some(Token::OpenArray);
                }
                b'}' => {
                    self.kinds >>= 1;
                    self.key_is_next = false;
                    return Some(Token::CloseObject);
                }
                b']' => {
                    self.kinds >>= 1;
                    return Some(Token::CloseArray);
                }
                b',' => {
                    self.key_is_next = self.kinds & 1 == 1;
                    return Some(Token::Comma);
                }
                // White space, colons, numbers and words.
                _ => {}
            }
        }
    }
}

impl Found {
    #[cold]
    fn describe(self, raw: &str) -> AmbiguousKey {
        AmbiguousKey {
            key: shortened(&self.key.text(raw)),
            path: path(raw, self.key),
            kind: self.kind,
        }
    }
}

/// Member or element on the way to a key.
enum Part {
    Member(KeySpan),
    Element(usize),
}

/// Returns the path of a key.
fn path(raw: &str, wanted: KeySpan) -> String {
    let mut parts: Vec<Part> = Vec::new();
    // Number of parts outside of each open object and array.
    let mut open: Vec<usize> = Vec::new();
    let mut tokens = Tokens::new(raw);
    while let Some(token) = tokens.next() {
        let outer = open.last().copied().unwrap_or_default();
        match token {
            Token::Key(start, end) => {
                let key = KeySpan::new(raw, start, end);
                parts.truncate(outer);
                parts.push(Part::Member(key));
                if key == wanted {
                    break;
                }
            }
            Token::OpenObject => open.push(parts.len()),
            Token::OpenArray => {
                open.push(parts.len());
                parts.push(Part::Element(0));
            }
            Token::Comma => {
                parts.truncate(outer + 1);
                if let Some(Part::Element(index)) = parts.last_mut() {
                    *index += 1;
                }
            }
            Token::CloseObject | Token::CloseArray => {
                parts.truncate(outer);
                open.pop();
            }
        }
    }
    let skipped = parts.len().saturating_sub(SHOWN_PARTS);
    let mut out = String::from(if skipped > 0 { "…" } else { "" });
    for part in parts.iter().skip(skipped) {
        match part {
            Part::Member(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                push_member(&mut out, &key.text(raw));
            }
            // Writing to a string cannot fail.
            Part::Element(index) => drop(write!(out, "[{index}]")),
        }
    }
    out
}

/// Appends a key; one that could be taken for several, or has invisible characters, is quoted.
fn push_member(out: &mut String, key: &str) {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/');
    let shown = shortened(key);
    if !key.is_empty() && key.chars().all(is_plain) {
        out.push_str(&shown);
    } else {
        out.push_str(&quote(&shown));
    }
}

/// Returns the start of a key.
fn shortened(key: &str) -> String {
    match key.char_indices().nth(SHOWN) {
        Some((end, _)) => alloc::format!("{}…", key.get(..end).unwrap_or_default()),
        None => String::from(key),
    }
}

impl KeySpan {
    /// The key without escapes; a lone surrogate becomes U+FFFD.
    fn text(self, raw: &str) -> String {
        let token = alloc::format!("\"{}\"", self.of(raw));
        unquote(&token).into_owned()
    }
}

#[cfg(test)]
mod tests;
