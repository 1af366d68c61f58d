//! The child's standard input.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

use super::group::Group;

/// Standard input; a server exits when it is closed.
#[derive(Debug)]
pub(super) struct Input {
    stdin: ChildStdin,
    group: Arc<Group>,
}

impl Input {
    pub(super) fn new(stdin: ChildStdin, group: Arc<Group>) -> Self {
        Self { stdin, group }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // The file is closed after this. The server may then exit at once, and its descendants could not be found any
        // more.
        self.group.record_tree();
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stdin).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(context)
    }
}
