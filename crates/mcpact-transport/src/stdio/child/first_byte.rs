//! Detection of the first output of a child, which ends the start-up phase.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Signals that the first byte was read.
#[derive(Clone, Debug)]
pub(super) struct FirstByteSender(watch::Sender<bool>);

impl FirstByteSender {
    pub(super) fn new() -> (Self, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), receiver)
    }

    pub(super) fn notify(&self) {
        self.0
            .send_if_modified(|heard| !std::mem::replace(heard, true));
    }
}

/// A reader that signals its first byte.
#[derive(Debug)]
pub(super) struct FirstByteReader<R> {
    io: R,
    /// `None` after the first byte.
    first_byte: Option<FirstByteSender>,
}

impl<R> FirstByteReader<R> {
    pub(super) fn new(io: R, first_byte: FirstByteSender) -> Self {
        Self {
            io,
            first_byte: Some(first_byte),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FirstByteReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.io).poll_read(context, buffer);
        if result.is_ready()
            && let Some(first_byte) = self.first_byte.take()
            && buffer.filled().len() > before
        {
            first_byte.notify();
        }
        result
    }
}
