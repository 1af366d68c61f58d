//! The first byte: when a child has started to live.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Tells that a first byte came.
#[derive(Clone, Debug)]
pub(super) struct Herald(watch::Sender<bool>);

impl Herald {
    pub(super) fn new() -> (Self, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), receiver)
    }

    pub(super) fn announce(&self) {
        self.0
            .send_if_modified(|heard| !std::mem::replace(heard, true));
    }
}

/// A reader that announces its first byte.
#[derive(Debug)]
pub(super) struct Hearing<R> {
    io: R,
    /// Gone once there is nothing more to tell.
    herald: Option<Herald>,
}

impl<R> Hearing<R> {
    pub(super) fn new(io: R, herald: Herald) -> Self {
        Self {
            io,
            herald: Some(herald),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Hearing<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.io).poll_read(context, buffer);
        if result.is_ready()
            && let Some(herald) = self.herald.take()
            && buffer.filled().len() > before
        {
            herald.announce();
        }
        result
    }
}
