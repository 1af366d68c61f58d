//! Who waits for a server: until it is its turn, not too long, and not too many at a time.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use mcpact_engine::time::Moment;
use tokio::time::Instant;

use super::fleet::{Line, Refusal};
use super::run::{Supervisor, room};
use crate::error::Trouble;

/// What a caller does next.
pub(super) enum Turn<T> {
    /// It has what it wanted.
    Done(T),
    /// It waits until something changes, or for this moment.
    Wait(Option<Moment>),
}

/// Somebody who waits, for as long as this is held.
struct Queued<'a>(&'a Supervisor);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fleet().unqueue();
    }
}

impl Supervisor {
    /// Takes turns with everybody else until there is an outcome; nobody waits too long, and not too many
    /// do.
    pub(super) async fn wait_for<T>(
        &self,
        mut turn: impl FnMut(Line) -> Result<Turn<T>, Refusal>,
    ) -> Result<T, Trouble> {
        let patience = self.fleet().settings().queue_wait;
        let late = Instant::now() + patience;
        let mut queued = None;
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let line = match queued {
                None => Line::Arriving,
                Some(_) => Line::Waiting,
            };
            if queued.is_some() && self.fleet().is_closed() {
                return Err(Trouble::Closed);
            }
            let until = match turn(line).map_err(|refusal| self.trouble(refusal))? {
                Turn::Done(outcome) => return Ok(outcome),
                Turn::Wait(until) => until,
            };
            if queued.is_none() {
                let place = self.fleet().queue();
                place.map_err(|refusal| self.trouble(self.instead(refusal, until)))?;
                queued = Some(Queued(self));
            }
            let until = until.map_or(late, |until| {
                late.min(Instant::now() + until.since(self.now()))
            });
            let is_over = tokio::time::timeout_at(until, changed).await.is_err();
            if is_over && Instant::now() >= late {
                return Err(self.late(patience));
            }
        }
    }

    /// Why somebody is refused who may not wait: what it would have waited for, if that is the end of a pause.
    fn instead(&self, refusal: Refusal, until: Option<Moment>) -> Refusal {
        match (until, self.fleet().failures()) {
            (None, _) | (Some(_), 0) => refusal,
            (Some(until), failures) => Refusal::Suspended {
                failures,
                wait: until.since(self.now()),
            },
        }
    }

    /// Waits for its turn, unless too many do, and not too long.
    pub(crate) async fn stand_in_line<T>(
        &self,
        turn: impl Future<Output = T>,
    ) -> Result<T, Trouble> {
        let mut turn = pin!(turn);
        if let Some(turn) = turn.as_mut().now_or_never() {
            return Ok(turn);
        }
        let patience = self.fleet().settings().queue_wait;
        let place = self.fleet().queue();
        place.map_err(|refusal| self.trouble(refusal))?;
        let _queued = Queued(self);
        tokio::select! {
            turn = &mut turn => Ok(turn),
            () = tokio::time::sleep(patience) => Err(self.late(patience)),
            () = self.closed() => Err(Trouble::Closed),
        }
    }

    fn late(&self, waited: Duration) -> Trouble {
        Trouble::Late {
            state: self.status().crowded(),
            room: room(self.fleet().settings()),
            waited,
        }
    }
}
