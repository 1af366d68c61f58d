//! Observation of the raw traffic of a connection, for diagnosis.
//!
//! A tap sees what a peer wrote before anything is parsed: noise on stdout, wrong ids, HTTP statuses and headers.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Method};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Observer of the raw traffic of a connection. It must not block.
pub trait Tap: Debug + Send + Sync {
    /// Records a piece of traffic, in the order in which it happened.
    fn record(&self, traffic: Traffic<'_>);
}

/// A piece of traffic.
#[derive(Clone, Copy, Debug)]
pub enum Traffic<'a> {
    /// Bytes written to a line-based link.
    Written(&'a [u8]),
    /// Bytes read from a line-based link.
    Read(&'a [u8]),
    /// HTTP response.
    Response(HttpExchange<'a>),
    /// Data of an event on an HTTP response.
    Event(&'a str),
}

/// HTTP request and its response. The events of a stream follow as [`Traffic::Event`].
#[derive(Clone, Copy, Debug)]
pub struct HttpExchange<'a> {
    /// Method of the request.
    pub method: &'a Method,
    /// Body of the request.
    pub request: &'a [u8],
    /// Status of the response.
    pub status: u16,
    /// Headers of the response.
    pub headers: &'a HeaderMap,
    /// Body of the response, or its beginning if it is not JSON; empty for a stream of events.
    pub body: &'a [u8],
}

/// Reader that shows what it reads.
#[derive(Debug)]
pub(crate) struct TapReader<R> {
    pub(crate) io: R,
    pub(crate) tap: Arc<dyn Tap>,
}

impl<R: AsyncRead + Unpin> AsyncRead for TapReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        if !new.is_empty() {
            self.tap.record(Traffic::Read(new));
        }
        Poll::Ready(Ok(()))
    }
}

/// Writer that shows what it writes, before the peer can answer it.
#[derive(Debug)]
pub(crate) struct TapWriter<W> {
    io: W,
    tap: Arc<dyn Tap>,
    /// Number of bytes that were shown and not accepted yet.
    shown: usize,
}

impl<W> TapWriter<W> {
    pub(crate) const fn new(io: W, tap: Arc<dyn Tap>) -> Self {
        Self { io, tap, shown: 0 }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for TapWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Bytes that were not accepted are written again.
        let new = bytes.get(self.shown..).unwrap_or_default();
        if !new.is_empty() {
            self.tap.record(Traffic::Written(new));
            self.shown = bytes.len();
        }
        let written = ready!(Pin::new(&mut self.io).poll_write(context, bytes))?;
        self.shown = self.shown.saturating_sub(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
