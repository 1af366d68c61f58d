//! The body of an answer: where it ends, and what of it has come.

use bytes::{Buf, Bytes, BytesMut};
use httparse::{InvalidChunkSize, Status, parse_chunk_size};

/// How long the line before a chunk, or what follows the last one, may be.
const MAX_LINE: usize = 16 * 1024;

/// How the rest of a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After a chunk without bytes.
    Chunked(Chunk),
    /// With the connection.
    UntilClosed,
}

/// What comes next in a body that comes in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// How long the next one is.
    Size,
    /// So many bytes of it.
    Bytes(u64),
    /// The end of its line.
    End,
    /// Headers that come late, of which this many bytes have come.
    Trailers(usize),
}

/// What has come of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Data(Bytes),
    /// Nothing that could be taken.
    Wanting,
    /// The body has ended.
    Over,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyFault {
    #[error("the answer is broken: what precedes a chunk is not its size")]
    Size,
    #[error("the answer is broken: a chunk does not end where it should")]
    End,
    #[error("the answer is broken: a line between its chunks is longer than {MAX_LINE} bytes")]
    TooLong,
    #[error("the connection ended in the middle of the answer")]
    Cut,
}

impl Framing {
    /// A body in chunks.
    pub(super) const fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    /// How many bytes will come at least.
    pub(super) const fn expected(self) -> u64 {
        match self {
            Self::Length(left) => left,
            Self::Chunked(_) | Self::UntilClosed => 0,
        }
    }

    /// The connection has ended; whether the body was meant to end with it.
    pub(super) const fn closed(self) -> Result<(), BodyFault> {
        match self {
            Self::Length(0) | Self::UntilClosed => Ok(()),
            Self::Length(_) | Self::Chunked(_) => Err(BodyFault::Cut),
        }
    }

    /// The next piece of the body in what has come.
    pub(super) fn take(&mut self, came: &mut BytesMut) -> Result<Piece, BodyFault> {
        match self {
            Self::Length(0) => Ok(Piece::Over),
            Self::UntilClosed if came.is_empty() => Ok(Piece::Wanting),
            Self::UntilClosed => Ok(Piece::Data(came.split().freeze())),
            Self::Length(left) => Ok(up_to(left, came)),
            Self::Chunked(chunk) => {
                let piece = chunk.take(came)?;
                if piece == Piece::Over {
                    *self = Self::Length(0);
                }
                Ok(piece)
            }
        }
    }
}

impl Chunk {
    fn take(&mut self, came: &mut BytesMut) -> Result<Piece, BodyFault> {
        loop {
            match self {
                Self::Size => match size(came)? {
                    None => return Ok(Piece::Wanting),
                    Some(0) => *self = Self::Trailers(0),
                    Some(size) => *self = Self::Bytes(size),
                },
                Self::Bytes(0) => *self = Self::End,
                Self::Bytes(left) => return Ok(up_to(left, came)),
                Self::End => match came.get(..2) {
                    None => return Ok(Piece::Wanting),
                    Some(b"\r\n") => {
                        came.advance(2);
                        *self = Self::Size;
                    }
                    Some(_) => return Err(BodyFault::End),
                },
                // Nobody needs them.
                Self::Trailers(before) => match line(came) {
                    Some(2) => {
                        came.advance(2);
                        return Ok(Piece::Over);
                    }
                    Some(length) if *before + length <= MAX_LINE => {
                        came.advance(length);
                        *before += length;
                    }
                    None if *before + came.len() <= MAX_LINE => return Ok(Piece::Wanting),
                    Some(_) | None => return Err(BodyFault::TooLong),
                },
            }
        }
    }
}

/// Takes the line with the size of a chunk, once it is there.
fn size(came: &mut BytesMut) -> Result<Option<u64>, BodyFault> {
    match came.first() {
        None => return Ok(None),
        Some(first) if first.is_ascii_hexdigit() => {}
        Some(_) => return Err(BodyFault::Size),
    }
    match parse_chunk_size(came) {
        Ok(Status::Complete((length, _))) if length > MAX_LINE => Err(BodyFault::TooLong),
        Ok(Status::Complete((length, size))) => {
            came.advance(length);
            Ok(Some(size))
        }
        Ok(Status::Partial) if came.len() > MAX_LINE => Err(BodyFault::TooLong),
        Ok(Status::Partial) => Ok(None),
        Err(InvalidChunkSize) => Err(BodyFault::Size),
    }
}

/// The length of the first line, with its end.
fn line(came: &[u8]) -> Option<usize> {
    let end = came.windows(2).position(|two| two == b"\r\n")?;
    Some(end + 2)
}

/// What has come, but no more than is left.
fn up_to(left: &mut u64, came: &mut BytesMut) -> Piece {
    let here = usize::try_from(*left).map_or(came.len(), |left| left.min(came.len()));
    if here == 0 {
        return Piece::Wanting;
    }
    *left -= here as u64;
    Piece::Data(came.split_to(here).freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that comes in steps of this many bytes: all of it, and what is left behind it.
    fn read(framing: Framing, text: &str, step: usize) -> Result<(String, String), BodyFault> {
        let (mut framing, mut came, mut all) = (framing, BytesMut::new(), Vec::new());
        let mut coming = text.as_bytes().chunks(step);
        loop {
            match framing.take(&mut came)? {
                Piece::Data(data) => all.extend_from_slice(&data),
                Piece::Over => break,
                Piece::Wanting => match coming.next() {
                    Some(more) => came.extend_from_slice(more),
                    None => {
                        framing.closed()?;
                        break;
                    }
                },
            }
        }
        let left: Vec<u8> = came
            .iter()
            .copied()
            .chain(coming.flatten().copied())
            .collect();
        Ok((
            String::from_utf8(all).unwrap(),
            String::from_utf8(left).unwrap(),
        ))
    }

    /// T9: a body is the same, however it comes, and ends where it ends.
    #[test]
    fn a_body_is_the_same_however_it_comes() {
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

    /// T9: whatever is broken is told, and never taken for the end.
    #[test]
    fn broken_bodies_are_told() {
        let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(MAX_LINE));
        let late = format!("0\r\n{}\r\n", "A: 1\r\n".repeat(MAX_LINE / 4));
        let rows = [
            (Framing::Length(5), "body", BodyFault::Cut),
            (Framing::chunked(), "5\r\nhell", BodyFault::Cut),
            (Framing::chunked(), "5\r\nhello\r\n", BodyFault::Cut),
            (Framing::chunked(), "5\r\nhello\r\n0\r\n", BodyFault::Cut),
            (
                Framing::chunked(),
                "5\r\nhelloX\r\n0\r\n\r\n",
                BodyFault::End,
            ),
            (Framing::chunked(), "\r\n\r\n", BodyFault::Size),
            (
                Framing::chunked(),
                "+5\r\nhello\r\n0\r\n\r\n",
                BodyFault::Size,
            ),
            (Framing::chunked(), "5\nhello\r\n0\r\n\r\n", BodyFault::Size),
            (Framing::chunked(), "11111111111111111\r\n", BodyFault::Size),
            (Framing::chunked(), &long, BodyFault::TooLong),
            (Framing::chunked(), &late, BodyFault::TooLong),
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
