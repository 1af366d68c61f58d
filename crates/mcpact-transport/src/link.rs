//! Newline-delimited messages on a pipe, a socket or in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line, LineReader, write_line};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::budget::{Charge, FREE, MemoryBudget, MemoryExhausted, RESULT_COPIES, Waiting};
use crate::error::TransportError;
use crate::tap::{Tap, TapReader, TapWriter};

/// Bytes read at a time: enough for many pipelined messages per system call.
const CHUNK: usize = 64 * 1024;

/// Buffered bytes that justify a write before more messages are ready.
const EARLY_WRITE: usize = 8 * 1024;

/// Time after which a peer that reads nothing has stalled.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of checks in this time.
const STALL_CHECKS: u32 = 10;

/// Number of bytes that a peer has accepted so far.
#[derive(Clone, Debug, Default)]
pub struct WriteProgress(Arc<AtomicU64>);

impl WriteProgress {
    /// Counts bytes that the peer has accepted.
    pub fn add(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Resolves when the peer has accepted nothing for ten seconds. Await it only while bytes are waiting.
    pub async fn stalled(&self) -> TransportError {
        let mut accepted = self.0.load(Ordering::Relaxed);
        let mut quiet = 0;
        while quiet < STALL_CHECKS {
            tokio::time::sleep(STALL_TIMEOUT / STALL_CHECKS).await;
            let now = self.0.load(Ordering::Relaxed);
            quiet = if now == accepted { quiet + 1 } else { 0 };
            accepted = now;
        }
        TransportError::Stalled {
            seconds: STALL_TIMEOUT.as_secs(),
        }
    }
}

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
                progress: WriteProgress::default(),
            },
        }
    }

    /// Shows all traffic to a tap.
    #[must_use]
    pub fn with_tap(mut self, tap: &Arc<dyn Tap>) -> Self {
        let (io, seen) = (self.source.io, Arc::clone(tap));
        self.source.io = Box::new(TapReader { io, tap: seen });
        let (io, seen) = (self.sink.io, Arc::clone(tap));
        self.sink.io = Box::new(TapWriter::new(io, seen));
        self
    }
}

/// The reading half. Several lines may arrive in one read.
pub struct LineSource {
    io: Box<dyn AsyncRead + Send + Unpin>,
    lines: LineReader,
    chunk: Box<[u8]>,
    /// Charge of the unfinished line, or of the line that was returned last.
    charge: Charge,
    waiting: Waiting,
    /// Set if a line was dropped because there was no memory for it.
    is_short_of_memory: bool,
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
            charge: MemoryBudget::process().empty_charge(),
            waiting: Waiting::default(),
            is_short_of_memory: false,
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

    /// Returns a copy of the line that was returned last. A long one stays charged to the memory budget until the copy and
    /// its parts are dropped.
    pub fn charged(&mut self, line: Bytes) -> Bytes {
        match line.len() {
            0..=FREE => line,
            _ => self.charge.split().hold(line),
        }
    }

    /// Returns whether the last [`Line::TooLong`] was dropped because there was no memory for it.
    pub fn was_short_of_memory(&mut self) -> bool {
        std::mem::take(&mut self.is_short_of_memory)
    }

    /// Returns the error for the last [`Line::TooLong`].
    pub(crate) fn lost(&mut self, limit: usize) -> TransportError {
        match self.was_short_of_memory() {
            true => MemoryExhausted.into(),
            false => TransportError::TooLarge { limit },
        }
    }

    /// Charges the unfinished line. The peer is not read until there is memory for more; after some time the line is
    /// dropped.
    async fn charge_line(&mut self) {
        let unfinished = self.lines.unfinished();
        if unfinished <= FREE {
            if self.charge.bytes() > 0 {
                drop(self.charge.split());
            }
            return;
        }
        let bytes = RESULT_COPIES * (unfinished + CHUNK);
        if self.waiting.grow(&mut self.charge, bytes).await.is_err() {
            MemoryBudget::process().record_refused();
            drop(self.charge.split());
            self.lines.abandon();
            self.is_short_of_memory = true;
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
        self.charge_line().await;
        let read = self.io.read(&mut self.chunk).await;
        let count = read.map_err(cause)?;
        self.lines.push(&self.chunk[..count]);
        self.was_full = count == CHUNK;
        self.is_open = count > 0;
        Ok(self.is_open)
    }
}

/// Returns the error that a transport on top of another one has passed on.
fn cause(error: std::io::Error) -> TransportError {
    error.downcast().unwrap_or_else(TransportError::Io)
}

/// The writing half. Messages are buffered and written together.
pub struct LineSink {
    io: Box<dyn AsyncWrite + Send + Unpin>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are already written.
    written: usize,
    progress: WriteProgress,
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

    /// Returns the number of bytes that are not written yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.written
    }

    /// Returns the progress of the peer.
    #[must_use]
    pub fn progress(&self) -> WriteProgress {
        self.progress.clone()
    }

    /// Shares the progress of the transport under this link, which may accept less than the link.
    pub(crate) fn share_progress(&mut self, progress: WriteProgress) {
        self.progress = progress;
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
            let written = self.io.write(&self.buffer[self.written..]).await;
            match written.map_err(cause)? {
                0 => return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into()),
                count => {
                    self.written += count;
                    self.progress.add(count);
                }
            }
        }
        self.buffer.clear();
        self.written = 0;
        self.buffer.shrink_to(CHUNK);
        self.io.flush().await?;
        Ok(())
    }

    /// Writes the buffer like [`flush`](Self::flush), and fails if the peer stalls.
    ///
    /// # Errors
    /// The peer stalled, or the pipe or socket failed; the rest of the buffer is lost.
    pub async fn flush_or_stall(&mut self) -> Result<(), TransportError> {
        let progress = self.progress();
        tokio::select! {
            biased;
            flushed = self.flush() => flushed,
            stalled = progress.stalled() => Err(stalled),
        }
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
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, empty, split};

    use super::Link;
    use crate::tap::{Tap, Traffic};

    #[derive(Debug, Default)]
    struct Seen(Mutex<Vec<String>>);

    impl Tap for Seen {
        fn record(&self, traffic: Traffic<'_>) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            crate::lock(&self.0).push(match traffic {
                Traffic::Written(bytes) => format!("> {}", text(bytes)),
                Traffic::Read(bytes) => format!("< {}", text(bytes)),
                Traffic::Response(_) | Traffic::Event(_) => String::from("http"),
            });
        }
    }

    #[tokio::test]
    async fn tap_sees_both_directions() {
        let (near, mut far) = duplex(64);
        let (read, write) = split(near);
        let seen = Arc::new(Seen::default());
        let tap: Arc<dyn Tap> = Arc::clone(&seen) as Arc<dyn Tap>;
        let mut link = Link::new(read, write).with_tap(&tap);
        link.sink.push("{}");
        link.sink.flush().await.unwrap();
        far.write_all(b"noise\n").await.unwrap();
        assert!(link.source.fill().await.unwrap());
        assert_eq!(*crate::lock(&seen.0), ["> {}\n", "< noise\n"]);
    }

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
