//! HTTP/1.1 client of the load generator: requests are prebuilt bytes, and only the framing of responses is read.
//!
//! A client library would take more processor time than the relay under load.

use bytes::BytesMut;
use httparse::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::LoadError;

/// Minimum room for a read.
const CHUNK: usize = 64 * 1024;

/// Maximum number of headers of a response.
const HEADERS: usize = 64;

/// Connection with the last response.
#[derive(Debug)]
pub struct RawCaller {
    stream: TcpStream,
    buffer: BytesMut,
    response: Progress,
}

/// Framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

/// Progress through a response.
#[derive(Debug, Default)]
struct Progress {
    status: u16,
    /// Framing of the body, once the head is read.
    framing: Option<Framing>,
    /// Start of the body.
    body: usize,
    /// Start of the next chunk.
    next: usize,
    /// Bytes of the body without framing.
    length: usize,
}

/// Status and length of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Bytes of the body without framing.
    pub length: usize,
}

impl RawCaller {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// The connection is refused.
    pub async fn connect(address: &str) -> Result<Self, LoadError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: BytesMut::with_capacity(CHUNK),
            response: Progress::default(),
        })
    }

    /// Sends a request and reads its response to the end.
    ///
    /// # Errors
    /// The connection breaks, or the response has no length.
    pub async fn call(&mut self, request: &[u8]) -> Result<Reply, LoadError> {
        self.buffer.clear();
        self.response = Progress::default();
        self.stream.write_all(request).await?;
        loop {
            self.buffer.reserve(CHUNK);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(self.wrong());
            }
            match self.response.advance(&self.buffer) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(_) => return Err(self.wrong()),
            }
        }
    }

    /// Body of the last response without framing.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        self.response.body(&self.buffer)
    }

    /// Error with the last response.
    #[must_use]
    pub fn wrong(&self) -> LoadError {
        LoadError::wrong(self.response.status, &self.buffer)
    }
}

/// Framing that is not understood.
#[derive(Debug)]
struct Unreadable;

impl Progress {
    /// Reads on in everything received so far. Returns the response once it is complete.
    fn advance(&mut self, received: &[u8]) -> Result<Option<Reply>, Unreadable> {
        if self.framing.is_none() {
            self.head(received)?;
        }
        let is_complete = match self.framing {
            None => false,
            Some(Framing::Length(length)) => {
                self.length = length;
                received.len() >= self.body + length
            }
            Some(Framing::Chunked) => self.chunks(received)?,
        };
        Ok(is_complete.then_some(Reply {
            status: self.status,
            length: self.length,
        }))
    }

    fn head(&mut self, received: &[u8]) -> Result<(), Unreadable> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let Status::Complete(body) = response.parse(received).map_err(|_| Unreadable)? else {
            return Ok(());
        };
        self.status = response.code.unwrap_or(0);
        let framing = response.headers.iter().find_map(framing);
        self.framing = Some(framing.ok_or(Unreadable)?);
        (self.body, self.next) = (body, body);
        Ok(())
    }

    /// Skips complete chunks. Returns `true` after the last one; trailers are not expected.
    fn chunks(&mut self, received: &[u8]) -> Result<bool, Unreadable> {
        while let Some(rest) = received.get(self.next..) {
            let Some((start, size)) = chunk(rest)? else {
                return Ok(false);
            };
            if size == 0 {
                return Ok(rest.len() >= start + 2);
            }
            self.length += size;
            self.next += start + size + 2;
        }
        Ok(false)
    }

    fn body(&self, received: &[u8]) -> Vec<u8> {
        let mut rest = received.get(self.body..).unwrap_or_default();
        if self.framing != Some(Framing::Chunked) {
            return rest.to_vec();
        }
        let mut body = Vec::with_capacity(self.length);
        while let Ok(Some((start, size))) = chunk(rest) {
            body.extend_from_slice(rest.get(start..start + size).unwrap_or_default());
            rest = rest.get(start + size + 2..).unwrap_or_default();
        }
        body
    }
}

fn framing(header: &httparse::Header<'_>) -> Option<Framing> {
    let value = std::str::from_utf8(header.value).ok()?.trim();
    if header.name.eq_ignore_ascii_case("content-length") {
        return value.parse().ok().map(Framing::Length);
    }
    let is_chunked = header.name.eq_ignore_ascii_case("transfer-encoding")
        && value.eq_ignore_ascii_case("chunked");
    is_chunked.then_some(Framing::Chunked)
}

/// Start and size of the chunk at the beginning, once its first line is complete.
fn chunk(rest: &[u8]) -> Result<Option<(usize, usize)>, Unreadable> {
    match httparse::parse_chunk_size(rest).map_err(|_| Unreadable)? {
        Status::Complete((start, size)) => {
            let size = usize::try_from(size).map_err(|_| Unreadable)?;
            Ok(Some((start, size)))
        }
        Status::Partial => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, length and body of a response that arrives byte by byte.
    fn read(text: &str) -> Option<(Reply, String)> {
        let mut progress = Progress::default();
        for end in 1..=text.len() {
            let received = &text.as_bytes()[..end];
            if let Some(reply) = progress.advance(received).unwrap() {
                assert_eq!(end, text.len());
                return Some((reply, String::from_utf8(progress.body(received)).unwrap()));
            }
        }
        None
    }

    #[test]
    fn both_framings_are_read_to_their_end() {
        let reply = |length| Reply {
            status: 200,
            length,
        };
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(read(sized), Some((reply(5), "hello".to_owned())));
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
        assert_eq!(read(chunked), Some((reply(6), "hello!".to_owned())));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"),
            None
        );
    }

    #[test]
    fn responses_without_length_are_errors() {
        let mut progress = Progress::default();
        assert!(progress.advance(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
