//! An open connection, whatever it consists of.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// Bytes in both directions.
trait Duplex: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Duplex for T {}

/// A connection to a server, or to a proxy that forwards whole requests.
pub(crate) struct Pipe {
    io: Box<dyn Duplex>,
    is_forwarded: bool,
}

impl Pipe {
    /// The server itself is at the other end.
    pub(super) fn straight(io: impl Read + Write + Send + Unpin + 'static) -> Self {
        Self {
            io: Box::new(io),
            is_forwarded: false,
        }
    }

    /// A proxy is at the other end and must be told where a request goes.
    pub(super) fn forwarded(io: impl Read + Write + Send + Unpin + 'static) -> Self {
        Self {
            io: Box::new(io),
            is_forwarded: true,
        }
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded)
    }
}

impl Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, pieces)
    }
}
