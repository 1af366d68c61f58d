//! An open connection: sends one request and reads its response.
//!
//! Parsing is done by `head` and `framing`. A connection has no background job: the caller that awaits the response
//! polls it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::connector::ClientStream;
use super::head::Head;
use super::outgoing::OutgoingRequest;
use crate::error::TransportError;

/// Bytes read at a time.
const READ: usize = 8 * 1024;

/// Minimum free space of a read.
const LEAST: usize = 1024;

/// An open connection.
pub(super) struct OpenConnection {
    io: TokioIo<ClientStream>,
    /// Bytes read but not consumed.
    pub(super) buffer: BytesMut,
}

impl fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("came", &self.buffer.len())
            .finish_non_exhaustive()
    }
}

/// Failed request.
#[derive(Debug)]
pub(super) struct RequestFailure {
    pub(super) why: TransportError,
    /// True if nothing of the request was sent.
    pub(super) is_unsent: bool,
}

impl OpenConnection {
    pub(super) fn new(stream: ClientStream) -> Self {
        Self {
            io: TokioIo::new(stream),
            buffer: BytesMut::new(),
        }
    }

    /// Returns whether a request can be sent. The connection was not polled while idle: the server may have closed it,
    /// or sent unexpected data.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.buffer.is_empty() && self.poll_fill(0, &mut context).is_pending()
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: &mut OutgoingRequest,
    ) -> Result<Head, RequestFailure> {
        let mut failed = None;
        let sent = poll_fn(|context| self.poll_send(request, &mut failed, context)).await;
        sent.map_err(|why| RequestFailure {
            why,
            is_unsent: !request.is_begun(),
        })
    }

    /// A server may respond and close before it has read the whole request, so the response is awaited even if writing
    /// fails.
    fn poll_send(
        &mut self,
        request: &mut OutgoingRequest,
        failed: &mut Option<io::Error>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, TransportError>> {
        let mut is_sent = false;
        if failed.is_none() {
            match self.poll_write(request, context) {
                Poll::Ready(Ok(())) => is_sent = true,
                Poll::Ready(Err(error)) => *failed = Some(error),
                Poll::Pending => {}
            }
        }
        loop {
            match (ready!(self.poll_fill(0, context)), &*failed) {
                (Ok(0), None) => return Poll::Ready(Err(ended())),
                (Ok(0) | Err(_), Some(error)) => return Poll::Ready(Err(broken(error))),
                (Err(error), None) => return Poll::Ready(Err(broken(&error))),
                (Ok(_), _) => {}
            }
            match Head::take(&mut self.buffer) {
                Ok(None) => {}
                Ok(Some(mut head)) => {
                    head.keeps_open &= is_sent;
                    return Poll::Ready(Ok(head));
                }
                Err(fault) => {
                    return Poll::Ready(Err(TransportError::Unreadable(fault.to_string())));
                }
            }
        }
    }

    fn poll_write(
        &mut self,
        request: &mut OutgoingRequest,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(next) = request.next() {
            match ready!(Pin::new(&mut self.io).poll_write(context, next))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => request.sent(count),
            }
        }
        // TLS buffers what the socket did not accept.
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Reads into the buffer; 0 at EOF.
    pub(super) fn poll_fill(
        &mut self,
        expected: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < expected.max(LEAST) {
            self.buffer.reserve(expected.max(READ));
        }
        pin!(self.io.read_buf(&mut self.buffer)).poll(context)
    }
}

/// Error of a broken connection.
pub(super) fn broken(error: &io::Error) -> TransportError {
    TransportError::Http(format!("the connection broke: {error}"))
}

fn ended() -> TransportError {
    TransportError::Http(String::from(
        "the connection was closed before the response",
    ))
}
