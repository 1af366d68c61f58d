//! Newline-delimited messages on a pipe, a socket or in memory.

use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line, LineReader, write_line};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::TransportError;

/// Bytes read at a time: enough for many pipelined messages per system call.
const CHUNK: usize = 64 * 1024;

/// Buffered bytes that justify a write before more messages are ready.
const EARLY_WRITE: usize = 8 * 1024;

/// Both directions of a transport with newline-delimited messages.
#[derive(Debug)]
pub struct Link {
    /// Messages from the peer.
    pub source: LineSource,
    /// Messages to the peer.
    pub sink: LineSink,
}

impl Link {
    /// Joins a reader and a writer.
    pub fn new(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            source: LineSource::new(Box::new(read), DEFAULT_LINE_LIMIT),
            sink: LineSink {
                io: Box::new(write),
                buffer: Vec::new(),
                written: 0,
            },
        }
    }
}

/// The reading half. Several lines may arrive in one read.
pub struct LineSource {
    io: Box<dyn AsyncRead + Send + Unpin>,
    lines: LineReader,
    chunk: Box<[u8]>,
    /// Set if the last read filled the buffer.
    was_full: bool,
    is_open: bool,
}

impl core::fmt::Debug for LineSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LineSource")
            .field("is_open", &self.is_open)
            .finish_non_exhaustive()
    }
}

impl LineSource {
    fn new(io: Box<dyn AsyncRead + Send + Unpin>, limit: usize) -> Self {
        Self {
            io,
            lines: LineReader::new(limit),
            chunk: vec![0; CHUNK].into_boxed_slice(),
            was_full: false,
            is_open: true,
        }
    }

    /// Returns a line that has already arrived.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        if self.is_open {
            self.lines.next_line()
        } else {
            self.lines.finish()
        }
    }

    /// Waits for more bytes; `false` if the peer has closed its side.
    ///
    /// Cancel safe: nothing that was read is lost.
    ///
    /// # Errors
    /// The pipe or socket failed.
    pub async fn fill(&mut self) -> Result<bool, TransportError> {
        if !self.is_open {
            return Ok(false);
        }
        // Lets other work run if the input never ends.
        if std::mem::take(&mut self.was_full) {
            tokio::task::yield_now().await;
        }
        let read = self.io.read(&mut self.chunk).await;
        // A transport on top of another one passes its error on.
        let count = read.map_err(|error| error.downcast().unwrap_or_else(TransportError::Io))?;
        self.lines.push(&self.chunk[..count]);
        self.was_full = count == CHUNK;
        self.is_open = count > 0;
        Ok(self.is_open)
    }
}

/// The writing half. Messages are buffered and written together.
pub struct LineSink {
    io: Box<dyn AsyncWrite + Send + Unpin>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are already written.
    written: usize,
}

impl core::fmt::Debug for LineSink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LineSink")
            .field("buffered", &self.buffer.len())
            .finish_non_exhaustive()
    }
}

impl LineSink {
    /// Adds a message to the buffer.
    pub fn push(&mut self, message: &str) {
        write_line(&mut self.buffer, message);
    }

    /// Returns whether the buffer is large enough to be written before more messages are ready.
    #[must_use]
    pub fn is_worth_a_write(&self) -> bool {
        self.buffer.len() >= EARLY_WRITE
    }

    /// Writes the buffer.
    ///
    /// Cancel safe: the next flush continues where this one stopped, so that no part of a message is written twice.
    ///
    /// # Errors
    /// The pipe or socket failed; the rest of the buffer is lost.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        while self.written < self.buffer.len() {
            match self.io.write(&self.buffer[self.written..]).await? {
                0 => return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into()),
                count => self.written += count,
            }
        }
        self.buffer.clear();
        self.written = 0;
        self.buffer.shrink_to(CHUNK);
        self.io.flush().await?;
        Ok(())
    }

    /// Closes the writing side; the peer reads EOF.
    ///
    /// # Errors
    /// The pipe or socket failed.
    pub async fn close(&mut self) -> Result<(), TransportError> {
        self.flush().await?;
        Ok(self.io.shutdown().await?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex, empty};

    use super::Link;

    /// P1: a cancelled write continues where it stopped.
    #[tokio::test]
    async fn cancelled_write_continues_where_it_stopped() {
        let (near, mut far) = duplex(8);
        let mut link = Link::new(empty(), near);
        link.sink.push("{\"a\":\"0123456789\"}");
        tokio::select! {
            biased;
            _ = link.sink.flush() => panic!("eight bytes are not enough"),
            () = tokio::task::yield_now() => {}
        }
        link.sink.push("{}");
        let mut heard = String::new();
        let (closed, read) = tokio::join!(link.sink.close(), async {
            far.read_to_string(&mut heard).await
        });
        closed.unwrap();
        read.unwrap();
        assert_eq!(heard, "{\"a\":\"0123456789\"}\n{}\n");
    }
}
