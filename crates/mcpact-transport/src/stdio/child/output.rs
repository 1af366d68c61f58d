//! The child's standard output.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf, copy, sink};
use tokio::process::ChildStdout;
use tokio::sync::oneshot;

/// Standard output, which is not closed when its reader is dropped: a server that writes during shutdown would fail
/// with `SIGPIPE` before it has cleaned up.
#[derive(Debug)]
pub(super) struct Output {
    /// Both are `Some` until it is dropped.
    stdout: Option<ChildStdout>,
    abandoned: Option<oneshot::Sender<ChildStdout>>,
}

/// Receives the output once its reader is dropped.
#[derive(Debug)]
pub(super) struct AbandonedOutput(oneshot::Receiver<ChildStdout>);

impl Output {
    pub(super) fn new(stdout: ChildStdout) -> (Self, AbandonedOutput) {
        let (sender, receiver) = oneshot::channel();
        let output = Self {
            stdout: Some(stdout),
            abandoned: Some(sender),
        };
        (output, AbandonedOutput(receiver))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let (Some(stdout), Some(abandoned)) = (self.stdout.take(), self.abandoned.take()) {
            // If the supervising job is gone, the output is closed.
            let _ = abandoned.send(stdout);
        }
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stdout {
            Some(stdout) => Pin::new(stdout).poll_read(context, buffer),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AbandonedOutput {
    /// Reads and discards the rest for as long as it is polled.
    pub(super) async fn discard(self) -> Infallible {
        if let Ok(mut stdout) = self.0.await {
            // A read error ends the output, too.
            let _ = copy(&mut stdout, &mut sink()).await;
        }
        std::future::pending().await
    }
}
