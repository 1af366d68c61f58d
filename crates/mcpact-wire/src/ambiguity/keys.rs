//! Keys as they stand in a text: equality, order, and spellings of protocol keys.

use core::cmp::Ordering;

use mcpact_spec::ProtocolKeys;
use smallvec::SmallVec;

/// A key in a text, without its quotes, and a digest of what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySpan {
    digest: u32,
    start: u32,
    length: u32,
}

impl KeySpan {
    /// The key between two places. Texts above 4 GiB are refused by every reader; their keys count as equal.
    #[inline(always)]
    pub(super) fn new(raw: &str, start: usize, end: usize) -> Self {
        let token = raw.get(start..end).unwrap_or_default();
        let digest = match is_escaped(token) {
            false => digest(token.as_bytes()),
            true => escaped_digest(token),
        };
        Self {
            digest,
            start: u32::try_from(start).unwrap_or(u32::MAX),
            length: u32::try_from(token.len()).unwrap_or(u32::MAX),
        }
    }

    /// The key with its escapes.
    pub(super) fn of(self, raw: &str) -> &str {
        let start = self.start as usize;
        raw.get(start..start + self.length as usize)
            .unwrap_or_default()
    }

    pub(super) fn is_same(self, other: Self, raw: &str) -> bool {
        self.digest == other.digest && compare(self.of(raw), other.of(raw)) == Ordering::Equal
    }

    /// Total order in which equal keys are neighbours.
    pub(super) fn order(self, other: Self, raw: &str) -> Ordering {
        let by_digest = self.digest.cmp(&other.digest);
        by_digest.then_with(|| compare(self.of(raw), other.of(raw)))
    }

    pub(super) const fn later(self, other: Self) -> Self {
        if self.start > other.start {
            self
        } else {
            other
        }
    }
}

fn is_escaped(token: &str) -> bool {
    token.as_bytes().contains(&b'\\')
}

/// Compares the code points of two keys, which are in the order of their bytes in UTF-8.
fn compare(one: &str, other: &str) -> Ordering {
    if is_escaped(one) || is_escaped(other) {
        CodePoints(one).cmp(CodePoints(other))
    } else {
        one.cmp(other)
    }
}

/// Digest of length, start and end. Keys that share it are compared, so it need not be strong.
#[inline(always)]
fn digest(bytes: &[u8]) -> u32 {
    let (head, tail) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => {
            let short = |start: u64, byte: &u8| (start << 8) | u64::from(*byte);
            (bytes.iter().fold(0, short), 0)
        }
    };
    let mixed = (head ^ tail.rotate_left(29) ^ ((bytes.len() as u64) << 56))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

/// Digest of a key with escapes: that of its meaning in UTF-8, where a lone surrogate has three bytes of its own.
fn escaped_digest(token: &str) -> u32 {
    let mut bytes: SmallVec<[u8; 64]> = SmallVec::new();
    for point in CodePoints(token) {
        match char::from_u32(point) {
            Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => bytes.extend_from_slice(&[
                0xed,
                0x80 | (point >> 6 & 0x3f) as u8,
                0x80 | (point & 0x3f) as u8,
            ]),
        }
    }
    digest(&bytes)
}

/// Code points of a string token without quotes. An escaped pair of surrogates is one; a lone one stands for itself.
struct CodePoints<'a>(&'a str);

impl CodePoints<'_> {
    /// The code unit of a `\u` escape at the start.
    fn unit(text: &str) -> Option<u32> {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let text = self.0;
        let first = text.chars().next()?;
        let behind = |length: usize| text.get(length..).unwrap_or_default();
        if first != '\\' {
            self.0 = behind(first.len_utf8());
            return Some(first.into());
        }
        if let Some(high) = Self::unit(text) {
            self.0 = behind(6);
            let low = Self::unit(self.0).filter(|low| (0xdc00..0xe000).contains(low));
            if (0xd800..0xdc00).contains(&high)
                && let Some(low) = low
            {
                self.0 = behind(12);
                return Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            return Some(high);
        }
        let second = text.chars().nth(1).unwrap_or('\\');
        self.0 = behind(1 + second.len_utf8());
        Some(match second {
            'b' => 0x08,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            other => other.into(),
        })
    }
}

/// A key compared with the keys of the protocol.
pub(super) enum Spelling {
    /// It is one of them; the keys of the object below it.
    Exact(Option<&'static ProtocolKeys>),
    /// It is none of them in any case.
    Other,
    /// It is another spelling of this one.
    Folded(&'static str),
}

pub(super) fn spelling(token: &str, keys: &'static ProtocolKeys) -> Spelling {
    // A key with escapes is found below: no protocol key has a backslash.
    if let Some(below) = keys.find(token) {
        return Spelling::Exact(below);
    }
    let is_plain = token.is_ascii() && !is_escaped(token);
    let is_folded = |name: &&str| match is_plain {
        true => token.eq_ignore_ascii_case(name),
        false => is_same_folded(token, name),
    };
    match keys.names().find(is_folded) {
        None => Spelling::Other,
        Some(name) if CodePoints(token).eq(name.chars().map(u32::from)) => {
            Spelling::Exact(keys.find(name).flatten())
        }
        Some(name) => Spelling::Folded(name),
    }
}

/// Characters beyond ASCII that some reader takes for ASCII when it ignores case: by simple folding, by full folding
/// (ligatures, sharp s), or by comparing upper case (dotted and dotless i).
pub(super) const FOLDED: [(char, &str); 13] = [
    ('\u{17f}', "s"),
    ('\u{212a}', "k"),
    ('\u{130}', "i"),
    ('\u{131}', "i"),
    ('\u{df}', "ss"),
    ('\u{1e9e}', "ss"),
    ('\u{fb00}', "ff"),
    ('\u{fb01}', "fi"),
    ('\u{fb02}', "fl"),
    ('\u{fb03}', "ffi"),
    ('\u{fb04}', "ffl"),
    ('\u{fb05}', "st"),
    ('\u{fb06}', "st"),
];

/// Returns whether a key is a protocol key, which is ASCII, if case is ignored.
fn is_same_folded(token: &str, name: &str) -> bool {
    let mut rest = name.as_bytes();
    for point in CodePoints(token) {
        let mut ascii = [0; 4];
        let folded = match char::from_u32(point) {
            Some(c) if c.is_ascii() => &*c.encode_utf8(&mut ascii),
            Some(c) => match FOLDED.iter().find(|(from, _)| *from == c) {
                Some((_, to)) => to,
                None => return false,
            },
            None => return false,
        };
        match rest.split_at_checked(folded.len()) {
            Some((start, tail)) if start.eq_ignore_ascii_case(folded.as_bytes()) => rest = tail,
            _ => return false,
        }
    }
    rest.is_empty()
}
