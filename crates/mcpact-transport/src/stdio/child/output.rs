//! The child's standard output.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf, copy, sink};
use tokio::process::ChildStdout;
use tokio::sync::oneshot;

/// Standard output, which stays open when nobody wants it any more: a server that has something to say at its
/// end would fail there, before it has put its things in order.
#[derive(Debug)]
pub(super) struct Output {
    /// Both are there until it is dropped.
    stdout: Option<ChildStdout>,
    remains: Option<oneshot::Sender<ChildStdout>>,
}

/// Where the output goes that nobody wants any more.
#[derive(Debug)]
pub(super) struct Remains(oneshot::Receiver<ChildStdout>);

impl Output {
    pub(super) fn new(stdout: ChildStdout) -> (Self, Remains) {
        let (sender, receiver) = oneshot::channel();
        let output = Self {
            stdout: Some(stdout),
            remains: Some(sender),
        };
        (output, Remains(receiver))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let (Some(stdout), Some(remains)) = (self.stdout.take(), self.remains.take()) {
            // Without somebody who watches over the child there is nobody to read it, and it is closed.
            let _ = remains.send(stdout);
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

impl Remains {
    /// Reads into nothing whatever is left, for as long as it is polled.
    pub(super) async fn pour_away(self) -> Infallible {
        if let Ok(mut stdout) = self.0.await {
            // What breaks off has ended, too.
            let _ = copy(&mut stdout, &mut sink()).await;
        }
        std::future::pending().await
    }
}
