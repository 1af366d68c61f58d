//! An open connection: sends one request, and reads its answer.
//!
//! What stands on the wire is known elsewhere; here it is moved. There is no task for a connection: whoever waits
//! for the answer drives it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::head::Head;
use super::pipe::Pipe;
use super::request::Outgoing;
use crate::error::DoorError;
use crate::vigil;

/// How much is read at a time.
const READ: usize = 8 * 1024;

/// How little room is too little to read into.
const LEAST: usize = 1024;

/// An open connection.
pub(super) struct Open {
    io: TokioIo<Pipe>,
    /// What has come and was not taken.
    pub(super) came: BytesMut,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("came", &self.came.len())
            .finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) why: DoorError,
    /// Whether the server cannot have seen anything of the request.
    pub(super) is_unsent: bool,
}

impl Open {
    pub(super) fn new(pipe: Pipe) -> Self {
        Self {
            io: TokioIo::new(pipe),
            came: BytesMut::new(),
        }
    }

    /// Whether a request can be sent, as far as anybody knows. Nobody has looked at it since it was put away; the
    /// server may have closed it, or said something that answers nothing.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.came.is_empty() && self.poll_fill(0, &mut context).is_pending()
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn send(&mut self, request: &mut Outgoing) -> Result<Head, Unanswered> {
        let mut failed = None;
        let sent = poll_fn(|context| self.poll_send(request, &mut failed, context)).await;
        sent.map_err(|why| Unanswered {
            why,
            is_unsent: !request.is_begun(),
        })
    }

    /// A server may answer before it has read everything, and close: its answer is waited for, even if it
    /// cannot be written to.
    fn poll_send(
        &mut self,
        request: &mut Outgoing,
        failed: &mut Option<io::Error>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Head, DoorError>> {
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
            match Head::take(&mut self.came) {
                Ok(None) => {}
                Ok(Some(mut head)) => {
                    head.keeps_open &= is_sent;
                    return Poll::Ready(Ok(head));
                }
                Err(fault) => return Poll::Ready(Err(DoorError::Unreadable(fault.to_string()))),
            }
        }
    }

    fn poll_write(
        &mut self,
        request: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(next) = request.next() {
            match ready!(Pin::new(&mut self.io).poll_write(context, next))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => {
                    request.sent(count);
                    vigil::expect(count);
                }
            }
        }
        // TLS keeps back what the socket did not take.
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Reads what comes, of which so much is expected; nothing at the end.
    pub(super) fn poll_fill(
        &mut self,
        expected: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.came.capacity() - self.came.len() < expected.max(LEAST) {
            self.came.reserve(expected.max(READ));
        }
        pin!(self.io.read_buf(&mut self.came)).poll(context)
    }
}

/// The connection broke.
pub(super) fn broken(error: &io::Error) -> DoorError {
    DoorError::Http(format!("the connection broke: {error}"))
}

fn ended() -> DoorError {
    DoorError::Http(String::from("the connection ended before the answer"))
}
