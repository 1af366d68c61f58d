//! Frames on their way to the WebSocket library.
//!
//! The library reserves the memory of a frame when it has read the header. Large frames are therefore cut into fragments,
//! which the protocol allows at any place, so that memory grows with the bytes that the peer has sent.

use std::mem;

use tokio::io::ReadBuf;

use crate::budget::FREE;

/// Maximum payload of a fragment; a multiple of four, because the mask has four bytes.
pub(super) const FRAGMENT: usize = 64 * 1024;

/// Maximum size of a frame header.
const MAX_HEADER: usize = 14;

const FINAL: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;

/// A header, in whole or in part.
#[derive(Clone, Copy, Debug, Default)]
struct Header {
    bytes: [u8; MAX_HEADER],
    len: usize,
}

impl Header {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(space) = self.bytes.get_mut(self.len..end) {
            space.copy_from_slice(bytes);
            self.len = end;
        }
    }

    /// Returns the size of the whole header, as far as it is known.
    fn expected(&self) -> usize {
        if self.len < 2 {
            return 2;
        }
        let mask = if self.bytes[1] & MASKED == 0 { 0 } else { 4 };
        mask + match self.bytes[1] & !MASKED {
            LENGTH_16 => 4,
            LENGTH_64 => 10,
            _ => 2,
        }
    }

    fn payload(&self) -> u64 {
        let [_, length, a, b, c, d, e, f, g, h, ..] = self.bytes;
        match length & !MASKED {
            LENGTH_16 => u16::from_be_bytes([a, b]).into(),
            LENGTH_64 => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            length => length.into(),
        }
    }

    fn opcode(&self) -> u8 {
        self.bytes[0] & OPCODE
    }

    /// Returns the header of a fragment with this payload.
    fn of_fragment(&self, payload: usize, is_first: bool, is_last: bool) -> Self {
        let [head, length, ..] = self.bytes;
        let kind = if is_first {
            head & !FINAL
        } else {
            CONTINUATION
        };
        let last = if is_last { head & FINAL } else { 0 };
        let mut header = Self::default();
        match (u8::try_from(payload), u16::try_from(payload)) {
            (Ok(short @ ..LENGTH_16), _) => header.push(&[kind | last, length & MASKED | short]),
            (_, Ok(short)) => {
                header.push(&[kind | last, length & MASKED | LENGTH_16]);
                header.push(&short.to_be_bytes());
            }
            _ => {
                header.push(&[kind | last, length & MASKED | LENGTH_64]);
                header.push(&(payload as u64).to_be_bytes());
            }
        }
        if length & MASKED != 0 {
            header.push(&self.bytes[self.len - 4..self.len]);
        }
        header
    }
}

/// Position in the input.
#[derive(Clone, Copy, Debug)]
enum State {
    /// In the head of the HTTP response that precedes the frames.
    Response {
        is_line_empty: bool,
    },
    Header,
    /// This header, or the rest of it, is delivered before a payload.
    Fragment {
        header: Header,
        sent: usize,
    },
    Payload,
}

/// Cuts large data frames into fragments, and counts the bytes of messages.
#[derive(Debug)]
pub(super) struct FrameSplitter {
    state: State,
    /// Header of the frame.
    header: Header,
    /// Rest of the payload of the frame, after the fragment.
    after: u64,
    /// Rest of the payload of the fragment.
    left: u64,
    /// Size of the message so far.
    message: usize,
    /// Set if a message above [`FREE`] bytes has ended.
    has_ended: bool,
    /// Frames above this size are refused by the library.
    limit: u64,
}

impl FrameSplitter {
    /// Creates a splitter for a connection after its upgrade.
    pub(super) fn after_upgrade(limit: usize) -> Self {
        Self {
            state: State::Header,
            header: Header::default(),
            after: 0,
            left: 0,
            message: 0,
            has_ended: false,
            limit: limit as u64,
        }
    }

    /// Creates a splitter for a connection on which the response to the upgrade comes first.
    pub(super) fn before_response(limit: usize) -> Self {
        Self {
            state: State::Response {
                is_line_empty: false,
            },
            ..Self::after_upgrade(limit)
        }
    }

    /// Returns the size of the unfinished message so far, or of a message that has just ended.
    pub(super) fn message(&self) -> usize {
        self.message
    }

    /// Forgets a message that has ended.
    pub(super) fn forget_ended(&mut self) {
        if mem::take(&mut self.has_ended) {
            self.message = 0;
        }
    }

    /// Returns whether a large message has ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Moves bytes from the input to the output. Stops at the end of a large message and of the HTTP response.
    pub(super) fn transfer(&mut self, input: &mut &[u8], output: &mut ReadBuf<'_>) {
        while output.remaining() > 0 && !self.has_ended {
            match &mut self.state {
                State::Response { is_line_empty } => {
                    let Some((byte, rest)) = input.split_first() else {
                        return;
                    };
                    output.put_slice(&[*byte]);
                    *input = rest;
                    match byte {
                        b'\n' if *is_line_empty => return self.state = State::Header,
                        b'\n' => *is_line_empty = true,
                        b'\r' => {}
                        _ => *is_line_empty = false,
                    }
                }
                State::Header => {
                    let missing = self.header.expected() - self.header.len;
                    let (part, rest) = input.split_at(missing.min(input.len()));
                    self.header.push(part);
                    *input = rest;
                    if self.header.len == self.header.expected() {
                        self.begin_frame();
                    } else if input.is_empty() {
                        return;
                    }
                }
                State::Fragment { header, sent } => {
                    let rest = &header.bytes[*sent..header.len];
                    let count = rest.len().min(output.remaining());
                    output.put_slice(&rest[..count]);
                    *sent += count;
                    if *sent == header.len {
                        self.state = State::Payload;
                        self.end_payload();
                    }
                }
                State::Payload => {
                    let left = usize::try_from(self.left).unwrap_or(usize::MAX);
                    let count = left.min(input.len()).min(output.remaining());
                    if count == 0 {
                        return;
                    }
                    let (part, rest) = input.split_at(count);
                    output.put_slice(part);
                    *input = rest;
                    self.left -= count as u64;
                    if self.is_data() {
                        self.message = self.message.saturating_add(count);
                    }
                    self.end_payload();
                }
            }
        }
    }

    fn is_data(&self) -> bool {
        self.header.opcode() <= BINARY
    }

    fn begin_frame(&mut self) {
        let payload = self.header.payload();
        if self.is_data() && self.header.opcode() != CONTINUATION {
            self.message = 0;
        }
        self.after = payload;
        match self.is_data() && payload > FRAGMENT as u64 && payload <= self.limit {
            true => self.begin_fragment(true),
            false => {
                (self.left, self.after) = (payload, 0);
                let (header, sent) = (self.header, 0);
                self.state = State::Fragment { header, sent };
            }
        }
    }

    fn begin_fragment(&mut self, is_first: bool) {
        let payload = usize::try_from(self.after).map_or(FRAGMENT, |after| after.min(FRAGMENT));
        self.left = payload as u64;
        self.after -= self.left;
        let header = self.header.of_fragment(payload, is_first, self.after == 0);
        self.state = State::Fragment { header, sent: 0 };
    }

    /// Continues after the payload of a fragment, if it is complete.
    fn end_payload(&mut self) {
        if self.left > 0 {
            return;
        }
        if self.after > 0 {
            return self.begin_fragment(false);
        }
        if self.is_data() && self.header.bytes[0] & FINAL != 0 {
            self.has_ended = self.message > FREE;
            if !self.has_ended {
                self.message = 0;
            }
        }
        self.header = Header::default();
        self.state = State::Header;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024 * 1024;

    /// Encodes a frame with a mask that depends on the position.
    fn frame(head: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = Header {
            bytes: [0; MAX_HEADER],
            len: 6,
        };
        header.bytes[..6].copy_from_slice(&[head, MASKED, 1, 2, 3, 4]);
        let header = header.of_fragment(payload.len(), true, true);
        let masked = payload.iter().zip([1, 2, 3, 4].iter().cycle());
        let mut frame = header.bytes[..header.len].to_vec();
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        frame
    }

    /// Passes input in pieces through a splitter with little space for output.
    fn passed(mut splitter: FrameSplitter, input: &[u8], piece: usize) -> Vec<u8> {
        let mut output = Vec::new();
        for mut piece in input.chunks(piece) {
            loop {
                let mut space = [0; 1000];
                let mut buffer = ReadBuf::new(&mut space);
                splitter.forget_ended();
                splitter.transfer(&mut piece, &mut buffer);
                if buffer.filled().is_empty() && piece.is_empty() {
                    break;
                }
                output.extend_from_slice(buffer.filled());
            }
        }
        output
    }

    /// Decodes frames into their first byte and their payload.
    fn decoded(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let mut header = Header::default();
            while header.len < header.expected() {
                let (now, rest) = bytes.split_at(header.expected() - header.len);
                header.push(now);
                bytes = rest;
            }
            let (payload, rest) = bytes.split_at(header.payload() as usize);
            let mask = header.bytes[header.len - 4..header.len].iter().cycle();
            let payload = payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask);
            frames.push((header.bytes[0], payload.collect()));
            bytes = rest;
        }
        frames
    }

    #[test]
    fn large_frames_are_cut_and_others_pass_unchanged() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
        let frames = [
            frame(0x81, b"{}"),
            frame(0x89, b"ping"),
            frame(0x01, &text),
            frame(0x89, b""),
            frame(0x80, &text[..FRAGMENT + 1]),
            frame(0x81, &text[..FRAGMENT]),
            frame(0x88, b""),
        ];
        for piece in [1, 7, 4096, usize::MAX] {
            let splitter = FrameSplitter::after_upgrade(LIMIT);
            let passed = decoded(&passed(splitter, &frames.concat(), piece));
            assert!(passed.iter().all(|(_, payload)| payload.len() <= FRAGMENT));
            let heads: Vec<u8> = passed.iter().map(|(head, _)| *head).collect();
            let middle = vec![0; text.len().div_ceil(FRAGMENT) - 1];
            let expected = [
                &[0x81, 0x89, 0x01][..],
                &middle,
                &[0x89, 0, 0x80, 0x81, 0x88],
            ];
            assert_eq!(heads, expected.concat(), "{piece}");
            let all = passed.into_iter().flat_map(|(_, payload)| payload);
            let sent = decoded(&frames.concat());
            assert!(all.eq(sent.into_iter().flat_map(|(_, payload)| payload)));
        }
    }

    /// The library refuses a frame above the limit by its header.
    #[test]
    fn frame_above_the_limit_keeps_its_header() {
        let large = frame(0x81, &vec![b'x'; LIMIT + 1]);
        let passed = passed(FrameSplitter::after_upgrade(LIMIT), &large, 4096);
        assert!(passed == large);
    }

    #[test]
    fn head_of_the_response_passes_unchanged() {
        let frames = [frame(0x81, b"\r\n\r\n"), frame(0x82, &[b'x'; 100_000])].concat();
        for head in ["HTTP/1.1 101 X\r\nA: b\r\n\r\n", "HTTP/1.1 101 X\n\n"] {
            let input = [head.as_bytes(), &frames].concat();
            for piece in [1, 5, usize::MAX] {
                let passed = passed(FrameSplitter::before_response(LIMIT), &input, piece);
                let (first, rest) = passed.split_at(head.len());
                assert_eq!(first, head.as_bytes());
                assert_eq!(decoded(rest).len(), 3);
            }
        }
    }

    #[test]
    fn message_size_grows_with_the_bytes_that_have_arrived() {
        let mut splitter = FrameSplitter::after_upgrade(LIMIT);
        let large = frame(0x81, &[b'x'; 200_000]);
        let mut space = vec![0; LIMIT];
        let mut buffer = ReadBuf::new(&mut space);
        splitter.transfer(&mut &large[..14], &mut buffer);
        assert_eq!(splitter.message(), 0);
        splitter.transfer(&mut &large[14..100_014], &mut buffer);
        assert_eq!(splitter.message(), 100_000);
        let rest = [&large[100_014..], &frame(0x81, b"{}")].concat();
        let mut rest = rest.as_slice();
        splitter.transfer(&mut rest, &mut buffer);
        assert_eq!(
            (splitter.message(), rest.len()),
            (200_000, 8),
            "it stops at the end"
        );
        splitter.forget_ended();
        assert_eq!(splitter.message(), 0);
    }
}
