//! Connection of a WebSocket, whose unfinished messages are charged to the memory budget.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcpact_wire::frame::ndjson::DEFAULT_LINE_LIMIT;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::frames::FrameSplitter;
use crate::budget::{
    Charge, FREE, MIN_PROGRESS, MemoryBudget, MemoryExhausted, RESULT_COPIES, RESULT_WAIT,
    RETRY_PAUSE, ScarcityWatch,
};
use crate::error::TransportError;
use crate::link::WriteProgress;

/// Bytes read at a time.
pub(super) const CHUNK: usize = 16 * 1024;

/// Step in which a message is charged.
const CHARGE_STEP: usize = 64 * 1024;

/// Time in which the peer of a large unfinished message must make progress while memory is scarce.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Connection of a WebSocket, with the number of bytes that the peer has accepted.
#[derive(Debug)]
pub(super) struct BudgetedIo<S> {
    io: S,
    pub(super) progress: WriteProgress,
    splitter: FrameSplitter,
    /// Bytes that are not yet delivered.
    input: Box<[u8; CHUNK]>,
    pending: std::ops::Range<usize>,
    /// Charge of the unfinished message.
    charge: Charge,
    scarcity: ScarcityWatch,
    wait: Wait,
}

/// Wait for memory, or for the peer of a large message.
#[derive(Debug, Default)]
struct Wait {
    timer: Option<Pin<Box<Sleep>>>,
    /// Begin of the wait for memory.
    since: Option<Instant>,
    /// Size of the message at the last check of its progress.
    checked: usize,
}

impl Wait {
    /// Resolves after this time; the next call begins again.
    fn poll_pause(&mut self, time: Duration, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(time)));
        ready!(timer.as_mut().poll(context));
        self.timer = None;
        Poll::Ready(())
    }
}

impl<S> BudgetedIo<S> {
    /// Wraps a connection after its upgrade.
    pub(super) fn after_upgrade(io: S) -> Self {
        let splitter = FrameSplitter::after_upgrade(DEFAULT_LINE_LIMIT);
        Self::new(io, splitter, MemoryBudget::process())
    }

    /// Wraps a connection before the request for the upgrade.
    pub(super) fn before_upgrade(io: S) -> Self {
        let splitter = FrameSplitter::before_response(DEFAULT_LINE_LIMIT);
        Self::new(io, splitter, MemoryBudget::process())
    }

    fn new(io: S, splitter: FrameSplitter, budget: &'static MemoryBudget) -> Self {
        Self {
            io,
            progress: WriteProgress::default(),
            splitter,
            input: Box::new([0; CHUNK]),
            pending: 0..0,
            charge: budget.empty_charge(),
            scarcity: ScarcityWatch::new(budget),
            wait: Wait::default(),
        }
    }

    /// Charges the message before more of it is read. The peer is not read until there is memory for it.
    fn poll_charge(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let message = self.splitter.message();
        if message <= FREE {
            return Poll::Ready(Ok(()));
        }
        let bytes = RESULT_COPIES * (message + CHUNK).next_multiple_of(CHARGE_STEP);
        while self.charge.grow_to(bytes).is_err() {
            if self.wait.since.is_none() {
                self.wait.timer = None;
            }
            let since = *self.wait.since.get_or_insert_with(Instant::now);
            if since.elapsed() >= RESULT_WAIT {
                self.scarcity.budget().record_refused();
                self.wait = Wait::default();
                return Poll::Ready(Err(io::Error::other(TransportError::from(MemoryExhausted))));
            }
            ready!(self.wait.poll_pause(RETRY_PAUSE, context));
        }
        if self.wait.since.take().is_some() {
            self.wait.timer = None;
            self.wait.checked = message;
        }
        Poll::Ready(Ok(()))
    }

    /// Resolves when the peer of a large message does not continue it while memory is scarce.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let message = self.splitter.message();
        if message <= FREE {
            return Poll::Pending;
        }
        loop {
            ready!(self.wait.poll_pause(STALL_TIMEOUT, context));
            let has_progress = message >= self.wait.checked.saturating_add(MIN_PROGRESS);
            self.wait.checked = message;
            if self.scarcity.is_scarce() && !has_progress {
                self.scarcity.budget().record_cut();
                return Poll::Ready(io::Error::other(TransportError::Unfinished));
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BudgetedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        output: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // More is read only when the owner has passed the last message on.
        this.splitter.forget_ended();
        if this.splitter.message() == 0 && this.charge.bytes() > 0 {
            drop(this.charge.split());
            this.wait = Wait::default();
        }
        let before = output.filled().len();
        loop {
            let mut input = &this.input[this.pending.clone()];
            this.splitter.transfer(&mut input, output);
            this.pending.start = this.pending.end - input.len();
            if this.splitter.has_ended() && this.charge.bytes() > 0 {
                // The next reader charges its copies itself.
                this.charge.cover(this.splitter.message());
            }
            if output.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_charge(context))?;
            let mut chunk = ReadBuf::new(&mut this.input[..]);
            match Pin::new(&mut this.io).poll_read(context, &mut chunk) {
                Poll::Ready(read) => {
                    read?;
                    this.pending = 0..chunk.filled().len();
                    if this.pending.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                }
                Poll::Pending => return this.poll_stalled(context).map(Err),
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BudgetedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.progress.add(count);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Header of a text message of 15 MiB without a mask.
    const HEADER: [u8; 10] = [0x81, 127, 0, 0, 0, 0, 0, 0xf0, 0, 0];

    fn connection(limit: usize) -> (DuplexStream, BudgetedIo<DuplexStream>) {
        let budget = Box::leak(Box::new(MemoryBudget::new(limit)));
        let (peer, io) = duplex(1 << 20);
        let splitter = FrameSplitter::after_upgrade(DEFAULT_LINE_LIMIT);
        (peer, BudgetedIo::new(io, splitter, budget))
    }

    /// Reads until nothing arrives for this time. Returns the error that ended the connection.
    async fn read_for(io: &mut BudgetedIo<DuplexStream>, time: Duration) -> Option<TransportError> {
        let mut space = vec![0; CHUNK];
        while let Ok(read) = timeout(time, io.read(&mut space)).await {
            if let Err(error) = read {
                return error.downcast().ok();
            }
        }
        None
    }

    /// A header alone costs nothing; the bytes that have arrived are charged until the next message is read.
    #[tokio::test(start_paused = true)]
    async fn unfinished_message_is_charged_as_it_arrives() {
        let (mut peer, mut io) = connection(64 << 20);
        let budget = io.scarcity.budget();
        peer.write_all(&HEADER).await.unwrap();
        assert!(read_for(&mut io, Duration::from_secs(60)).await.is_none());
        assert_eq!(budget.used(), 0);
        let mut left = 15 << 20;
        let piece = vec![b' '; 1 << 20];
        while left > 0 {
            peer.write_all(&piece).await.unwrap();
            left -= piece.len();
            assert!(read_for(&mut io, Duration::from_secs(1)).await.is_none());
            let received = (15 << 20) - left;
            assert!(left == 0 || budget.used() >= RESULT_COPIES * received);
        }
        peer.write_all(&[0x81, 2, b'{', b'}']).await.unwrap();
        read_for(&mut io, Duration::from_secs(1)).await;
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn message_without_memory_ends_the_connection() {
        let (mut peer, mut io) = connection(1 << 20);
        peer.write_all(&HEADER).await.unwrap();
        peer.write_all(&vec![b' '; 1 << 19]).await.unwrap();
        let error = read_for(&mut io, 2 * RESULT_WAIT).await;
        assert!(
            matches!(error, Some(TransportError::Memory(_))),
            "{error:?}"
        );
        assert_eq!(io.scarcity.budget().refused(), 1);
    }

    /// A stalled or trickling message ends its connection, but only while memory is scarce.
    #[tokio::test(start_paused = true)]
    async fn stalled_message_ends_the_connection_while_memory_is_scarce() {
        let (mut peer, mut io) = connection(64 << 20);
        let budget = io.scarcity.budget();
        peer.write_all(&HEADER).await.unwrap();
        peer.write_all(&vec![b' '; 1 << 19]).await.unwrap();
        assert!(read_for(&mut io, Duration::from_secs(60)).await.is_none());
        let used = budget.charge(50 << 20).unwrap();
        let trickle = async {
            while peer.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let error = tokio::select! {
            error = read_for(&mut io, Duration::from_secs(30)) => error,
            () = trickle => None,
        };
        assert!(
            matches!(error, Some(TransportError::Unfinished)),
            "{error:?}"
        );
        assert_eq!(budget.cut(), 1);
        drop(used);
    }
}
