//! An in-memory transport within one process.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use crate::error::TransportError;
use crate::link::Link;
use crate::lock;

/// Bytes buffered per direction before the writer waits.
const CAPACITY: usize = 64 * 1024;

/// Creates two links that are connected to each other.
///
/// They behave like a pair of pipes: a full buffer makes the writer wait, a closed or dropped sink is EOF for the other
/// side, and writing to a dropped source fails.
#[must_use]
pub fn pair() -> (Link, Link) {
    faulty_pair(&Fault::default())
}

/// Creates two links like [`pair`]; the second gets an error instead of EOF or a closed pipe if `fault` is set.
pub(crate) fn faulty_pair(fault: &Fault) -> (Link, Link) {
    // One stream per direction: with a single one, a dropped sink would not be noticed while its source lives.
    let (left_write, right_read) = duplex(CAPACITY);
    let (right_write, left_read) = duplex(CAPACITY);
    let faulty = |io| Faulty {
        io,
        fault: fault.clone(),
    };
    (
        Link::new(left_read, left_write),
        Link::new(faulty(right_read), faulty(right_write)),
    )
}

/// Error that ends a link instead of EOF.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<TransportError>>>);

impl Fault {
    pub(crate) fn set(&self, error: TransportError) {
        *lock(&self.0) = Some(error);
    }

    fn take(&self) -> Option<TransportError> {
        lock(&self.0).take()
    }
}

/// One direction of such a link.
#[derive(Debug)]
struct Faulty {
    io: DuplexStream,
    fault: Fault,
}

impl AsyncWrite for Faulty {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        written.map_err(|error| self.fault.take().map_or(error, io::Error::other))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

impl AsyncRead for Faulty {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && buffer.filled().len() == before;
        if is_end && let Some(error) = self.fault.take() {
            return Poll::Ready(Err(io::Error::other(error)));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use mcpact_wire::frame::ndjson::Line;

    use super::pair;
    use crate::error::TransportError;

    /// T6: each end reads what the other writes.
    #[tokio::test]
    async fn each_end_reads_what_the_other_writes() {
        let (mut left, mut right) = pair();
        left.sink.push("{\"from\":\"left\"}");
        right.sink.push("{\"from\":\"right\"}");
        left.sink.flush().await.unwrap();
        right.sink.flush().await.unwrap();
        assert!(right.source.fill().await.unwrap());
        assert_eq!(
            right.source.next_line(),
            Some(Line::Json(b"{\"from\":\"left\"}"))
        );
        assert!(left.source.fill().await.unwrap());
        assert_eq!(
            left.source.next_line(),
            Some(Line::Json(b"{\"from\":\"right\"}"))
        );
    }

    #[tokio::test]
    async fn closed_or_dropped_sink_is_eof() {
        let (mut left, mut right) = pair();
        left.sink.close().await.unwrap();
        assert!(!right.source.fill().await.unwrap());
        drop(right.sink);
        assert!(!left.source.fill().await.unwrap());
    }

    #[tokio::test]
    async fn writing_to_a_dropped_source_fails() {
        let (mut left, right) = pair();
        drop(right.source);
        left.sink.push("{}");
        assert!(matches!(
            left.sink.flush().await,
            Err(TransportError::Io(_))
        ));
    }

    /// The reason for the end of a link reaches its writer as well as its reader.
    #[tokio::test]
    async fn fault_is_the_error_of_the_next_read_or_write() {
        for writes in [true, false] {
            let fault = super::Fault::default();
            let (left, mut right) = super::faulty_pair(&fault);
            fault.set(TransportError::Unfinished);
            drop(left);
            right.sink.push("{}");
            let failed = match writes {
                true => right.sink.flush().await.unwrap_err(),
                false => right.source.fill().await.unwrap_err(),
            };
            assert!(matches!(failed, TransportError::Unfinished), "{failed:?}");
        }
    }

    /// T9: a slow reader makes the writer wait.
    #[tokio::test]
    async fn full_buffer_blocks_the_writer() {
        let (mut left, mut right) = pair();
        left.sink.push(&"7".repeat(2 * super::CAPACITY));
        let mut flush = Box::pin(left.sink.flush());
        let waits = tokio::select! {
            biased;
            _ = &mut flush => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(waits);
        let (written, ()) = tokio::join!(flush, async {
            while right.source.next_line().is_none() {
                assert!(right.source.fill().await.unwrap());
            }
        });
        written.unwrap();
    }
}
