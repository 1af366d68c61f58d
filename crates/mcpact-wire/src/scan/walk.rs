//! The inner loop of the scanner: every byte of a message goes through here, once.

use wide::u8x16;

use super::seen::KeyRecord;
use super::{MAX_DEPTH, ScanFault};

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

/// Bytes that one step over a long string looks at.
const BLOCK: usize = 64;

/// Marks quotes, backslashes and control characters, one bit for each of 16 bytes.
#[inline(always)]
fn stops_in_chunk(bytes: [u8; 16]) -> u32 {
    let bytes = u8x16::new(bytes);
    // Without its second bit a quote is next to the control characters: one comparison for both.
    let low = (bytes ^ u8x16::splat(2)).max(u8x16::splat(0x20));
    let stop = low.simd_eq(u8x16::splat(0x20)) | bytes.simd_eq(u8x16::splat(b'\\'));
    stop.to_bitmask()
}

/// Applies a function that marks bytes to all chunks of a block. Returns one bit for each byte.
#[inline(always)]
fn marks(block: &[u8; BLOCK], chunk: impl Fn([u8; 16]) -> u32) -> u64 {
    let chunks = block.as_chunks().0.iter();
    chunks.rfold(0, |mask, bytes| (mask << 16) | u64::from(chunk(*bytes)))
}

/// Marks the bytes behind an active backslash. `carry` is 1 if the block before ends with one; it is set for the next.
///
/// In a run of backslashes every second one is active. Subtracting finds the parity of all runs at once.
const fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let candidates = backslashes & !*carry;
    let ends = (((candidates << 1) | ODD).wrapping_sub(candidates)) ^ ODD;
    let escaped = ends ^ (backslashes | *carry);
    *carry = (ends & backslashes) >> 63;
    escaped
}

/// Lengths of escapes by the byte behind the backslash; 0 for a byte that must not stand there.
const ESCAPES: [u8; 256] = {
    let mut lengths = [0; 256];
    let simple = b"\"\\/bfnrt";
    let mut at = 0;
    while at < simple.len() {
        lengths[simple[at] as usize] = 2;
        at += 1;
    }
    lengths[b'u' as usize] = 6;
    lengths
};

/// Number of bytes from the start that need no escape in a string.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks();
    let mut at = 0;
    for chunk in chunks {
        let marks = stops_in_chunk(*chunk);
        if marks != 0 {
            return at + marks.trailing_zeros() as usize;
        }
        at += chunk.len();
    }
    let is_plain = |&&b: &&u8| b >= 0x20 && b != b'"' && b != b'\\';
    at + rest.iter().take_while(is_plain).count()
}

/// A fault that fits into a register: results of the inner loop never go through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkError {
    End,
    Byte,
    Text,
    Number,
    Depth,
}

impl From<WalkError> for ScanFault {
    fn from(slip: WalkError) -> Self {
        match slip {
            WalkError::End => Self::End,
            WalkError::Byte => Self::Byte,
            WalkError::Text => Self::Text,
            WalkError::Number => Self::Number,
            WalkError::Depth => Self::Depth,
        }
    }
}

/// The inner loop, apart from the cursor so that its place stays in a register.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(crate) fn next_byte(&mut self) -> Result<u8, WalkError> {
        loop {
            match self.peek() {
                Some(b) if b > b' ' => return Ok(b),
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(b) => return Ok(b),
                None => return Err(WalkError::End),
            }
        }
    }

    /// The nesting below `base` lives in the bits of one integer: 1 is an object, 0 an array. That
    /// is what makes 128 the limit, and recursion and allocation unnecessary.
    pub(crate) fn value(&mut self, base: u32, keys: &mut KeyRecord) -> Result<(), WalkError> {
        let mut kinds: u128 = 0;
        let mut depth = base;
        loop {
            match self.next_byte()? {
                b'"' => {
                    self.string()?;
                }
                opening @ (b'{' | b'[') => {
                    if depth >= MAX_DEPTH {
                        return Err(WalkError::Depth);
                    }
                    self.at += 1;
                    if self.next_byte()? == opening + 2 {
                        self.at += 1;
                    } else {
                        depth += 1;
                        let is_object = opening == b'{';
                        kinds = (kinds << 1) | u128::from(is_object);
                        if is_object {
                            self.key(keys, depth)?;
                        }
                        continue;
                    }
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.word(*b"true")?,
                b'f' => {
                    self.at += 1;
                    self.word(*b"alse").inspect_err(|_| self.at -= 1)?;
                }
                b'n' => self.word(*b"null")?,
                _ => return Err(WalkError::Byte),
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
                            self.key(keys, depth)?;
                        }
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return Err(WalkError::Byte),
                }
                self.at += 1;
                depth -= 1;
                kinds >>= 1;
            }
        }
    }

    #[inline(always)]
    fn key(&mut self, keys: &mut KeyRecord, depth: u32) -> Result<(), WalkError> {
        if self.next_byte()? != b'"' {
            return Err(WalkError::Byte);
        }
        let start = self.at + 1;
        let is_escaped = self.string()?;
        let key = self.bytes.get(start..self.at - 1).unwrap_or_default();
        keys.add(key, is_escaped, depth);
        if self.next_byte()? != b':' {
            return Err(WalkError::Byte);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: [u8; 4]) -> Result<(), WalkError> {
        let found = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        if found == Some(&word) {
            self.at += 4;
            Ok(())
        } else {
            Err(WalkError::Byte)
        }
    }

    /// Steps over the string at the cursor and returns whether it has escapes.
    #[inline(always)]
    pub(crate) fn string(&mut self) -> Result<bool, WalkError> {
        self.at += 1;
        self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.rest_of_string()
    }

    /// Moves towards the next quote, backslash or control character. Stops before it only in a long string.
    #[inline(always)]
    fn plain(&mut self) {
        // Most strings are short: one word tells where they end.
        if let Some(word) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            let marks = stops(u64::from_le_bytes(*word));
            if marks != 0 {
                self.at += (marks.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
        for _ in 0..3 {
            let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) else {
                return;
            };
            let marks = stops_in_chunk(*chunk);
            if marks != 0 {
                self.at += marks.trailing_zeros() as usize;
                return;
            }
            self.at += 16;
        }
    }

    /// Steps over the rest of a string, a block at a time, and returns whether it has escapes.
    #[inline(never)]
    fn rest_of_string(&mut self) -> Result<bool, WalkError> {
        let (mut has_escapes, mut carry) = (false, 0);
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            // The last block is filled up with control characters, which end a string as well.
            let mut last = [0; BLOCK];
            let block = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    if let Some(start) = last.get_mut(..rest.len()) {
                        start.copy_from_slice(rest);
                    }
                    &last
                }
            };
            let stops = marks(block, stops_in_chunk);
            if stops == 0 && carry == 0 {
                self.at += BLOCK;
                continue;
            }
            let backslashes = marks(block, |bytes| {
                u8x16::new(bytes).simd_eq(u8x16::splat(b'\\')).to_bitmask()
            });
            let quotes = marks(block, |bytes| {
                u8x16::new(bytes).simd_eq(u8x16::splat(b'"')).to_bitmask()
            });
            let escaped = escaped(backslashes, &mut carry);
            // Control characters end the string also behind a backslash.
            let ends = stops & !backslashes & !(quotes & escaped);
            let end = ends.trailing_zeros();
            let inside = u64::MAX.checked_shr(BLOCK as u32 - end).unwrap_or(0);
            let mut escapes = escaped & inside;
            has_escapes |= escapes != 0;
            while escapes != 0 {
                self.check_escape(self.at + escapes.trailing_zeros() as usize)?;
                escapes &= escapes - 1;
            }
            self.at += end as usize;
            if ends != 0 {
                return match self.peek() {
                    Some(b'"') => {
                        self.at += 1;
                        Ok(has_escapes)
                    }
                    Some(_) => Err(WalkError::Text),
                    None => {
                        self.at = self.bytes.len();
                        Err(WalkError::End)
                    }
                };
            }
        }
    }

    /// Checks the escape whose second byte is here.
    #[inline(always)]
    fn check_escape(&mut self, at: usize) -> Result<(), WalkError> {
        let kind = self.bytes.get(at).copied().unwrap_or_default();
        let is_valid = match ESCAPES.get(usize::from(kind)) {
            Some(2) => true,
            Some(6) => {
                let digits = self.bytes.get(at + 1..at + 5);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            }
            _ => false,
        };
        if is_valid {
            return Ok(());
        }
        self.at = at - 1;
        Err(WalkError::Text)
    }

    #[inline(always)]
    fn number(&mut self) -> Result<(), WalkError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        match self.peek() {
            Some(b'0'..=b'9') => Err(WalkError::Number),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn digits(&mut self) -> Result<(), WalkError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(WalkError::Number)
        } else {
            Ok(())
        }
    }
}
