//! Framing of response bodies.

use bytes::{Buf, Bytes, BytesMut};
use httparse::{InvalidChunkSize, Status, parse_chunk_size};

/// Maximum length of a chunk size line, and of all trailers.
const MAX_LINE: usize = 16 * 1024;

/// End of the rest of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunk),
    /// At EOF.
    UntilClosed,
}

/// State of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Before a chunk size.
    Size,
    /// Within a chunk, with this many bytes left.
    Bytes(u64),
    /// Before the line ending of a chunk.
    End,
    /// Within the trailers, after this many bytes.
    Trailers(usize),
}

/// Next part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    Data(Bytes),
    /// More input is needed.
    Incomplete,
    /// End of the body.
    End,
}

/// Invalid body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("invalid chunk size")]
    Size,
    #[error("invalid end of a chunk")]
    End,
    #[error("a line between chunks is longer than {MAX_LINE} bytes")]
    TooLong,
    #[error("the connection was closed in the middle of the response")]
    Cut,
}

impl Framing {
    /// Start of a chunked body.
    pub(super) const fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    /// Minimum number of remaining bytes.
    pub(super) const fn expected(self) -> u64 {
        match self {
            Self::Length(left) => left,
            Self::Chunked(_) | Self::UntilClosed => 0,
        }
    }

    /// Handles EOF; an error if the body is not complete.
    pub(super) const fn closed(self) -> Result<(), BodyError> {
        match self {
            Self::Length(0) | Self::UntilClosed => Ok(()),
            Self::Length(_) | Self::Chunked(_) => Err(BodyError::Cut),
        }
    }

    /// Takes the next part of the body from the buffer.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPart, BodyError> {
        match self {
            Self::Length(0) => Ok(BodyPart::End),
            Self::UntilClosed if buffer.is_empty() => Ok(BodyPart::Incomplete),
            Self::UntilClosed => Ok(BodyPart::Data(buffer.split().freeze())),
            Self::Length(left) => Ok(up_to(left, buffer)),
            Self::Chunked(chunk) => {
                let piece = chunk.take(buffer)?;
                if piece == BodyPart::End {
                    *self = Self::Length(0);
                }
                Ok(piece)
            }
        }
    }
}

impl Chunk {
    fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPart, BodyError> {
        loop {
            match self {
                Self::Size => match size(buffer)? {
                    None => return Ok(BodyPart::Incomplete),
                    Some(0) => *self = Self::Trailers(0),
                    Some(size) => *self = Self::Bytes(size),
                },
                Self::Bytes(0) => *self = Self::End,
                Self::Bytes(left) => return Ok(up_to(left, buffer)),
                Self::End => match buffer.get(..2) {
                    None => return Ok(BodyPart::Incomplete),
                    Some(b"\r\n") => {
                        buffer.advance(2);
                        *self = Self::Size;
                    }
                    Some(_) => return Err(BodyError::End),
                },
                // Trailers are ignored.
                Self::Trailers(before) => match line(buffer) {
                    Some(2) => {
                        buffer.advance(2);
                        return Ok(BodyPart::End);
                    }
                    Some(length) if *before + length <= MAX_LINE => {
                        buffer.advance(length);
                        *before += length;
                    }
                    // The end of all trailers does not count.
                    None if *before + buffer.len() <= MAX_LINE || &buffer[..] == b"\r" => {
                        return Ok(BodyPart::Incomplete);
                    }
                    Some(_) | None => return Err(BodyError::TooLong),
                },
            }
        }
    }
}

/// Takes a chunk size line, once it is complete.
fn size(buffer: &mut BytesMut) -> Result<Option<u64>, BodyError> {
    match buffer.first() {
        None => return Ok(None),
        Some(first) if first.is_ascii_hexdigit() => {}
        Some(_) => return Err(BodyError::Size),
    }
    match parse_chunk_size(buffer) {
        Ok(Status::Complete((length, _))) if length > MAX_LINE => Err(BodyError::TooLong),
        Ok(Status::Complete((length, size))) => {
            buffer.advance(length);
            Ok(Some(size))
        }
        Ok(Status::Partial) if buffer.len() > MAX_LINE => Err(BodyError::TooLong),
        Ok(Status::Partial) => Ok(None),
        Err(InvalidChunkSize) => Err(BodyError::Size),
    }
}

/// Length of the first line with its ending.
fn line(buffer: &[u8]) -> Option<usize> {
    let end = buffer.windows(2).position(|two| two == b"\r\n")?;
    Some(end + 2)
}

/// Takes at most `left` bytes.
fn up_to(left: &mut u64, buffer: &mut BytesMut) -> BodyPart {
    let here = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    if here == 0 {
        return BodyPart::Incomplete;
    }
    *left -= here as u64;
    BodyPart::Data(buffer.split_to(here).freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that arrives in steps; returns it and the bytes after it.
    fn read(framing: Framing, text: &str, step: usize) -> Result<(String, String), BodyError> {
        let (mut framing, mut buffer, mut all) = (framing, BytesMut::new(), Vec::new());
        let mut coming = text.as_bytes().chunks(step);
        loop {
            match framing.take(&mut buffer)? {
                BodyPart::Data(data) => all.extend_from_slice(&data),
                BodyPart::End => break,
                BodyPart::Incomplete => match coming.next() {
                    Some(more) => buffer.extend_from_slice(more),
                    None => {
                        framing.closed()?;
                        break;
                    }
                },
            }
        }
        let left: Vec<u8> = buffer
            .iter()
            .copied()
            .chain(coming.flatten().copied())
            .collect();
        Ok((
            String::from_utf8(all).unwrap(),
            String::from_utf8(left).unwrap(),
        ))
    }

    /// T9: a body does not depend on the sizes of reads.
    #[test]
    fn body_does_not_depend_on_read_sizes() {
        let chunks =
            "5\r\nhello\r\n1;x=\"y\"\r\n \r\n00a \r\n0123456789\r\n0\r\nLate: 1\r\n\r\nNEXT";
        let rows = [
            (Framing::Length(4), "bodyNEXT", "body", "NEXT"),
            (Framing::Length(0), "NEXT", "", "NEXT"),
            (Framing::UntilClosed, "bodyNEXT", "bodyNEXT", ""),
            (Framing::chunked(), chunks, "hello 0123456789", "NEXT"),
            (Framing::chunked(), "0\r\n\r\nNEXT", "", "NEXT"),
        ];
        for (framing, text, body, left) in rows {
            for step in 1..=text.len() {
                let whole = (body.to_owned(), left.to_owned());
                assert_eq!(read(framing, text, step), Ok(whole), "{text} by {step}");
            }
        }
    }

    /// T9: invalid and truncated bodies are errors.
    #[test]
    fn invalid_bodies_are_errors() {
        let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(MAX_LINE));
        let late = format!("0\r\n{}\r\n", "A: 1\r\n".repeat(MAX_LINE / 4));
        let rows = [
            (Framing::Length(5), "body", BodyError::Cut),
            (Framing::chunked(), "5\r\nhell", BodyError::Cut),
            (Framing::chunked(), "5\r\nhello\r\n", BodyError::Cut),
            (Framing::chunked(), "5\r\nhello\r\n0\r\n", BodyError::Cut),
            (
                Framing::chunked(),
                "5\r\nhelloX\r\n0\r\n\r\n",
                BodyError::End,
            ),
            (Framing::chunked(), "\r\n\r\n", BodyError::Size),
            (
                Framing::chunked(),
                "+5\r\nhello\r\n0\r\n\r\n",
                BodyError::Size,
            ),
            (Framing::chunked(), "5\nhello\r\n0\r\n\r\n", BodyError::Size),
            (Framing::chunked(), "11111111111111111\r\n", BodyError::Size),
            (Framing::chunked(), &long, BodyError::TooLong),
            (Framing::chunked(), &late, BodyError::TooLong),
        ];
        for (framing, text, fault) in rows {
            for step in [1, 7, text.len()] {
                assert_eq!(
                    read(framing, text, step),
                    Err(fault),
                    "{text:.40} by {step}"
                );
            }
        }
    }
}
