//! The inner loop of the scanner: every byte of a message goes through here, once.

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

/// Rest after the blocks that have no stop at all. A function of its own, so that the operands of the
/// comparison stay in registers from block to block.
#[inline(never)]
fn behind_plain_blocks(mut rest: &[u8]) -> &[u8] {
    while let Some((block, tail)) = rest.split_first_chunk::<32>() {
        if !is_plain(block) {
            break;
        }
        rest = tail;
    }
    rest
}

/// Returns whether a block of bytes has no stop at all; the loop has no exit, so it becomes vector code.
#[inline(always)]
fn is_plain(block: &[u8; 32]) -> bool {
    let mut stop = 0_u8;
    for &b in block {
        // Without its second bit a quote is next to the control characters: one comparison for both.
        stop |= u8::from(b ^ 2 < 0x21) | u8::from(b == b'\\');
    }
    stop == 0
}

/// Number of bytes from the start that need no escape in a string.
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let mut walk = Walk { bytes, at: 0 };
    walk.plain();
    walk.at
}

/// A fault that fits into a register: results of the inner loop never go through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkError {
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
pub(super) struct Walk<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Walk<'a> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(super) fn next_byte(&mut self) -> Result<u8, WalkError> {
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
    pub(super) fn value(&mut self, base: u32) -> Result<(), WalkError> {
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
                            self.key()?;
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
                            self.key()?;
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
    fn key(&mut self) -> Result<(), WalkError> {
        if self.next_byte()? != b'"' {
            return Err(WalkError::Byte);
        }
        self.string()?;
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
    pub(super) fn string(&mut self) -> Result<bool, WalkError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(WalkError::Text),
                None => return Err(WalkError::End),
            }
        }
    }

    /// Moves to the next quote, backslash or control character, or to the end.
    #[inline(always)]
    fn plain(&mut self) {
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        // Most strings are short: one word tells where they end.
        if let Some((word, tail)) = rest.split_first_chunk::<8>() {
            let marks = stops(u64::from_le_bytes(*word));
            if marks != 0 {
                self.at += (marks.trailing_zeros() / 8) as usize;
                return;
            }
            rest = tail;
        }
        rest = behind_plain_blocks(rest);
        while let Some((word, tail)) = rest.split_first_chunk::<8>() {
            let marks = stops(u64::from_le_bytes(*word));
            if marks != 0 {
                self.at = self.bytes.len() - rest.len() + (marks.trailing_zeros() / 8) as usize;
                return;
            }
            rest = tail;
        }
        let last = rest
            .iter()
            .take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\')
            .count();
        self.at = self.bytes.len() - rest.len() + last;
    }

    fn escape(&mut self) -> Result<(), WalkError> {
        let length = match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(WalkError::Text);
                }
                6
            }
            Some(_) => return Err(WalkError::Text),
            None => return Err(WalkError::End),
        };
        self.at += length;
        Ok(())
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
