//! Shutdown of a connection: graceful first, then forced.

use core::time::Duration;

use crate::time::Moment;

/// Step of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndStep {
    /// Take no new requests and let those in flight finish.
    Drain,
    /// Close the child's standard input.
    CloseInput,
    /// Ask the process group to end (`SIGTERM`).
    Terminate,
    /// End the process group (`SIGKILL`).
    Kill,
    /// Tell the server that the session is over (`DELETE`).
    DeleteSession,
    /// Nothing more.
    Done,
}

/// Grace period of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// For requests in flight.
    pub drain: Duration,
    /// After closing standard input.
    pub exit: Duration,
    /// After `SIGTERM`.
    pub terminate: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            drain: Duration::from_secs(5),
            exit: Duration::from_secs(2),
            terminate: Duration::from_secs(2),
        }
    }
}

/// Transport of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A child process on pipes.
    Child,
    /// HTTP with a session to delete.
    HttpSession,
    /// HTTP without one.
    HttpStateless,
}

/// The end of a connection.
///
/// ```text
///  Drain ──idle or grace over──▶ CloseInput ──grace──▶ Terminate ──grace──▶ Kill ──▶ Done
///    │                               └────────── exited ──────────┴─────────────────▲
///    └──── HTTP ──▶ DeleteSession ──────────────────────────────────────────────────┘
/// ```
///
/// `2025-11-25 basic/lifecycle#shutdown`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Ending {
    carrier: Carrier,
    grace: Grace,
    step: EndStep,
    until: Moment,
}

/// Event during a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndEvent {
    /// Time went by.
    Tick,
    /// The last request in flight has ended.
    Idle,
    /// The process is gone, or the session's end was acknowledged or refused.
    Gone,
}

impl Ending {
    /// Begins to end a connection.
    pub const fn begin(carrier: Carrier, grace: Grace, now: Moment) -> Self {
        Self {
            carrier,
            grace,
            step: EndStep::Drain,
            until: now.after(grace.drain),
        }
    }

    /// Current step.
    #[must_use]
    pub const fn step(self) -> EndStep {
        self.step
    }

    /// Until when this step may take.
    #[must_use]
    pub const fn until(self) -> Moment {
        self.until
    }

    /// Goes on.
    pub fn handle(self, event: EndEvent, now: Moment) -> Self {
        let is_over = now >= self.until;
        match (self.step, event) {
            (_, EndEvent::Gone) => self.at(EndStep::Done, now, Duration::ZERO),
            (EndStep::Drain, EndEvent::Idle) => self.after_drain(now),
            (EndStep::Drain, EndEvent::Tick) if is_over => self.after_drain(now),
            (EndStep::CloseInput, EndEvent::Tick) if is_over => {
                self.at(EndStep::Terminate, now, self.grace.terminate)
            }
            (EndStep::Terminate, EndEvent::Tick) if is_over => {
                self.at(EndStep::Kill, now, self.grace.terminate)
            }
            (EndStep::Kill | EndStep::DeleteSession, EndEvent::Tick) if is_over => {
                self.at(EndStep::Done, now, Duration::ZERO)
            }
            (
                EndStep::Drain
                | EndStep::CloseInput
                | EndStep::Terminate
                | EndStep::Kill
                | EndStep::DeleteSession
                | EndStep::Done,
                EndEvent::Tick | EndEvent::Idle,
            ) => self,
        }
    }

    const fn after_drain(self, now: Moment) -> Self {
        match self.carrier {
            Carrier::Child => self.at(EndStep::CloseInput, now, self.grace.exit),
            Carrier::HttpSession => self.at(EndStep::DeleteSession, now, self.grace.exit),
            Carrier::HttpStateless => self.at(EndStep::Done, now, Duration::ZERO),
        }
    }

    const fn at(self, step: EndStep, now: Moment, wait: Duration) -> Self {
        Self {
            step,
            until: now.after(wait),
            ..self
        }
    }
}
