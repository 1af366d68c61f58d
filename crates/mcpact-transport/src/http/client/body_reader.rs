//! Response body, which holds its connection until it is read to the end.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;

use super::connection::broken;
use super::framing::{BodyPart, Framing};
use super::pool::PooledConnection;
use crate::error::TransportError;
use crate::within::within;

/// Unread rest of a response body.
#[derive(Debug)]
pub(super) struct BodyReader {
    framing: Framing,
    connection: Option<PooledConnection>,
    /// True if the connection can be reused.
    keeps_open: bool,
}

impl BodyReader {
    pub(super) const fn new(
        framing: Framing,
        keeps_open: bool,
        connection: PooledConnection,
    ) -> Self {
        Self {
            framing,
            connection: Some(connection),
            keeps_open,
        }
    }

    /// Minimum number of remaining bytes.
    pub(super) fn expected(&self) -> usize {
        usize::try_from(self.framing.expected()).unwrap_or(usize::MAX)
    }

    /// Returns the next chunk, with an idle timeout; `None` at the end. Cancel safe.
    pub(super) async fn next(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Option<Result<Bytes, TransportError>> {
        let next = within(idle, poll_fn(|context| self.poll_next(context))).await;
        next.unwrap_or(Some(Err(TransportError::Timeout(what))))
    }

    /// Waits for all bytes of a body of known length, so that it is returned in one piece.
    pub(super) async fn gather(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Result<(), TransportError> {
        while let Some(connection) = &mut self.connection {
            let left = self
                .framing
                .expected()
                .saturating_sub(connection.io.buffer.len() as u64);
            let Some(left) = usize::try_from(left).ok().filter(|left| *left > 0) else {
                break;
            };
            let filled = within(
                idle,
                poll_fn(|context| connection.io.poll_fill(left, context)),
            )
            .await;
            match filled {
                // The next read reports the end.
                Some(Ok(0)) => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&error)),
                None => return Err(TransportError::Timeout(what)),
            }
        }
        Ok(())
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        loop {
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(None);
            };
            let fault = match self.framing.take(&mut connection.io.buffer) {
                Ok(BodyPart::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(BodyPart::End) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Ok(BodyPart::Incomplete) => match ready!(connection.io.poll_fill(0, context)) {
                    Ok(0) => match self.framing.closed() {
                        Ok(()) => {
                            self.connection = None;
                            return Poll::Ready(None);
                        }
                        Err(fault) => TransportError::Unreadable(fault.to_string()),
                    },
                    Ok(_) => continue,
                    Err(error) => broken(&error),
                },
                Err(fault) => TransportError::Unreadable(fault.to_string()),
            };
            self.connection = None;
            return Poll::Ready(Some(Err(fault)));
        }
    }

    fn finish(&mut self) {
        if let Some(connection) = self.connection.take().filter(|_| self.keeps_open) {
            connection.release();
        }
    }
}

impl Drop for BodyReader {
    /// Returns the connection to the pool if the body is complete.
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection
            && matches!(
                self.framing.take(&mut connection.io.buffer),
                Ok(BodyPart::End)
            )
        {
            self.finish();
        }
    }
}
