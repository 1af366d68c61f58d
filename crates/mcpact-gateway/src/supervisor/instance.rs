//! One connection to a server, with its process if it has one: from its start to its end.

use std::fmt;
use std::num::NonZeroUsize;

use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use crate::error::FailureText;

/// The number of an instance; no two instances of a server share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub(super) u64);

impl InstanceId {
    /// The number itself.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

mcpact_spec::stable_strings! {
    /// Cause of the start of an instance.
    pub enum StartCause {
        /// A request needs it.
        Request = "request",
        /// The gateway does not know the server yet.
        Introduction = "introduction",
        /// `min_ready` requires it.
        MinReady = "min-ready",
        /// The strategy `persistent` requires it.
        Persistent = "persistent",
        /// It was lost, and a client is subscribed to it.
        Listener = "listener",
        /// It failed, and is tried again.
        Recovery = "recovery",
    }
}

impl StartCause {
    /// The cause in a sentence.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Introduction => "first contact, no cached metadata",
            Self::MinReady => "`min_ready`",
            Self::Persistent => "strategy `persistent`",
            Self::Listener => "subscribed client",
            Self::Recovery => "retry after a failure",
        }
    }
}

mcpact_spec::stable_strings! {
    /// Cause of the stop of an instance.
    pub enum StopCause {
        /// It was idle.
        Idle = "idle",
        /// Another instance needed its place.
        Room = "room",
        /// It failed its health check.
        Unhealthy = "unhealthy",
        /// The server is no longer served.
        Shutdown = "shutdown",
        /// It is no longer needed.
        Released = "released",
    }
}

/// What becomes of calls that run when everything ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Somebody waits for them: they are given their time.
    Long,
    /// Nobody does any more.
    Short,
}

/// ```text
///  Starting ─spawned─▶ Handshaking ─agreed─▶ Ready ◀─last leaves── Busy
///     │                    │                 │ │ └────enters─────▶  │ ─enters, leaves─┐
///     │                    │          retire │ │                    │ ◀───────────────┘
///     │                    │                 ▼ └───── gone ───┐     │ retire
///     │                    │        Stopped(gone)             │     ▼
///     │                    │                 ▲                │  Draining ─last leaves─▶ (close)
///     │                    │                 └── gone ────────┼─────┘
///     └────── failed ──────┴──────────────────────────────────┴──▶ Failed
/// ```
///
/// Who retires an instance that nobody uses goes through `Draining`, too: it is over when its connection
/// is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// It is being started or reached.
    Starting,
    /// It runs; there is no agreement yet.
    Handshaking,
    /// It waits for calls.
    Ready,
    /// It has calls.
    Busy {
        /// How many.
        calls: NonZeroUsize,
    },
    /// It takes no calls any more.
    Draining {
        /// How many it still has.
        calls: usize,
        /// Why.
        cause: StopCause,
    },
    /// It was ended by us and is gone.
    Stopped {
        /// Why.
        cause: StopCause,
    },
    /// It did not start, or ended by itself.
    Failed {
        /// Cause and log.
        why: FailureText,
    },
}

impl InstanceState {
    /// The state in a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Handshaking => "handshaking",
            Self::Ready => "ready",
            Self::Busy { .. } => "busy",
            Self::Draining { .. } => "draining",
            Self::Stopped { .. } => "stopped",
            Self::Failed { .. } => "failed",
        }
    }
}

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) cause: StartCause,
    pub(crate) started: Moment,
    pub(crate) pid: Option<u32>,
    pub(crate) revision: Option<Revision>,
    pub(crate) state: InstanceState,
    /// Since when it is in that state.
    pub(crate) since: Moment,
}

/// What happens to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its process runs, under this number as far as is known.
    Spawned(u32),
    /// There is an agreement.
    Agreed(Revision),
    /// A call begins.
    Enters,
    /// A call ends.
    Leaves,
    /// It shall go.
    Retire(StopCause),
    /// It did not start.
    Failed(FailureText),
    /// Its connection is gone, for this reason if nobody wanted that.
    Gone(FailureText),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The connection can be closed: nobody uses it any more.
    Close,
}

/// What comes of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct Step {
    pub(crate) next: Instance,
    pub(crate) effect: Option<Effect>,
}

impl Instance {
    pub(crate) const fn new(id: InstanceId, cause: StartCause, now: Moment) -> Self {
        Self {
            id,
            cause,
            started: now,
            pid: None,
            revision: None,
            state: InstanceState::Starting,
            since: now,
        }
    }

    /// How many calls it has.
    pub(crate) const fn calls(&self) -> usize {
        match &self.state {
            InstanceState::Busy { calls } => calls.get(),
            InstanceState::Draining { calls, .. } => *calls,
            InstanceState::Starting
            | InstanceState::Handshaking
            | InstanceState::Ready
            | InstanceState::Stopped { .. }
            | InstanceState::Failed { .. } => 0,
        }
    }

    /// Whether it takes calls.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Ready | InstanceState::Busy { .. }
        )
    }

    /// Whether it is on its way to take calls.
    pub(crate) const fn is_starting(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Starting | InstanceState::Handshaking
        )
    }

    /// Whether it is over.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Stopped { .. } | InstanceState::Failed { .. }
        )
    }

    /// Goes on after an event; one that does not belong to the state changes nothing.
    pub(crate) fn handle(mut self, event: Event, now: Moment) -> Step {
        match event {
            Event::Spawned(pid) if !self.is_over() => self.pid = Some(pid),
            Event::Agreed(revision) if self.is_starting() => self.revision = Some(revision),
            _ => {}
        }
        let (state, effect) = after(self.state.clone(), event);
        // A busy instance is busy since its first call, whatever comes and goes beside it.
        if state.as_str() != self.state.as_str() {
            self.since = now;
        }
        self.state = state;
        Step { next: self, effect }
    }
}

fn after(state: InstanceState, event: Event) -> (InstanceState, Option<Effect>) {
    use InstanceState as S;
    match (state, event) {
        (S::Starting, Event::Spawned(_)) => (S::Handshaking, None),
        (S::Starting | S::Handshaking, Event::Agreed(_)) => (S::Ready, None),
        (S::Starting | S::Handshaking, Event::Failed(why)) => (S::Failed { why }, None),
        (S::Ready, Event::Enters) => (busy(1), None),
        (S::Busy { calls }, Event::Enters) => (busy(calls.get().saturating_add(1)), None),
        (S::Busy { calls }, Event::Leaves) => (busy(calls.get() - 1), None),
        (S::Draining { calls, cause }, Event::Leaves) => {
            let calls = calls.saturating_sub(1);
            let effect = (calls == 0).then_some(Effect::Close);
            (S::Draining { calls, cause }, effect)
        }
        (S::Ready | S::Starting | S::Handshaking, Event::Retire(cause)) => {
            (S::Draining { calls: 0, cause }, Some(Effect::Close))
        }
        (S::Busy { calls }, Event::Retire(cause)) => {
            let calls = calls.get();
            (S::Draining { calls, cause }, None)
        }
        (S::Draining { cause, .. }, Event::Gone(_)) => (S::Stopped { cause }, None),
        (S::Starting | S::Handshaking | S::Ready | S::Busy { .. }, Event::Gone(why)) => {
            (S::Failed { why }, None)
        }
        (same, _) => (same, None),
    }
}

fn busy(calls: usize) -> InstanceState {
    NonZeroUsize::new(calls).map_or(InstanceState::Ready, |calls| InstanceState::Busy { calls })
}

#[cfg(test)]
mod tests;
