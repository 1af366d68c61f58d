//! The body of an answer, and the connection that it comes from until it is read to its end.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;

use super::framing::{Framing, Piece};
use super::open::broken;
use super::pool::Loan;
use crate::error::DoorError;
use crate::within::within;

/// What is to come of an answer.
#[derive(Debug)]
pub(super) struct Source {
    framing: Framing,
    loan: Option<Loan>,
    /// Whether another request can be sent on the connection.
    keeps_open: bool,
}

impl Source {
    pub(super) const fn new(framing: Framing, keeps_open: bool, loan: Loan) -> Self {
        Self {
            framing,
            loan: Some(loan),
            keeps_open,
        }
    }

    /// How many bytes will come at least.
    pub(super) fn expected(&self) -> usize {
        usize::try_from(self.framing.expected()).unwrap_or(usize::MAX)
    }

    /// The next part, which may take so long to come; none at the end. Safe to drop at any time.
    pub(super) async fn next(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Option<Result<Bytes, DoorError>> {
        let next = within(idle, poll_fn(|context| self.poll_next(context))).await;
        next.unwrap_or(Some(Err(DoorError::Timeout(what))))
    }

    /// Waits until a body of known length is here whole, so that it is in one piece.
    pub(super) async fn gather(
        &mut self,
        idle: Duration,
        what: &'static str,
    ) -> Result<(), DoorError> {
        while let Some(loan) = &mut self.loan {
            let left = self
                .framing
                .expected()
                .saturating_sub(loan.open.came.len() as u64);
            let Some(left) = usize::try_from(left).ok().filter(|left| *left > 0) else {
                break;
            };
            let filled = within(idle, poll_fn(|context| loan.open.poll_fill(left, context))).await;
            match filled {
                // Whoever takes what is here sees that there is no more.
                Some(Ok(0)) => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&error)),
                None => return Err(DoorError::Timeout(what)),
            }
        }
        Ok(())
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, DoorError>>> {
        loop {
            let Some(loan) = &mut self.loan else {
                return Poll::Ready(None);
            };
            let fault = match self.framing.take(&mut loan.open.came) {
                Ok(Piece::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Piece::Over) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Ok(Piece::Wanting) => match ready!(loan.open.poll_fill(0, context)) {
                    Ok(0) => match self.framing.closed() {
                        Ok(()) => {
                            self.loan = None;
                            return Poll::Ready(None);
                        }
                        Err(fault) => DoorError::Unreadable(fault.to_string()),
                    },
                    Ok(_) => continue,
                    Err(error) => broken(&error),
                },
                Err(fault) => DoorError::Unreadable(fault.to_string()),
            };
            self.loan = None;
            return Poll::Ready(Some(Err(fault)));
        }
    }

    fn finish(&mut self) {
        if let Some(loan) = self.loan.take().filter(|_| self.keeps_open) {
            loan.give_back();
        }
    }
}

impl Drop for Source {
    /// Where nothing is left to read, the connection is kept.
    fn drop(&mut self) {
        if let Some(loan) = &mut self.loan
            && matches!(self.framing.take(&mut loan.open.came), Ok(Piece::Over))
        {
            self.finish();
        }
    }
}
