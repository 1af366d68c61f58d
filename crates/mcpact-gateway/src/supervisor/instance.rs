//! State machine of one instance: one connection to a server, including its process if it has one. Pure.

use std::fmt;
use std::num::NonZeroUsize;

use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use mcpact::connection::FailureText;

/// Number of an instance, unique per server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub(super) u64);

impl InstanceId {
    /// Returns the number.
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
    /// Cause of a start.
    pub enum StartCause {
        /// A request is waiting.
        Request = "request",
        /// First contact: the cache holds no metadata of the server.
        Introduction = "introduction",
        /// `min_ready` requires it.
        MinReady = "min-ready",
        /// The strategy `persistent` requires it.
        Persistent = "persistent",
        /// The connection was lost while a client was subscribed.
        Listener = "listener",
        /// Retry after a failure.
        Recovery = "recovery",
    }
}

impl StartCause {
    /// Returns the cause for the server log.
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
    /// Cause of a stop.
    pub enum StopCause {
        /// Idle for `idle_seconds`.
        Idle = "idle",
        /// Stopped to free capacity for another instance.
        Room = "room",
        /// Health checks failed.
        Unhealthy = "unhealthy",
        /// The server is being shut down.
        Shutdown = "shutdown",
        /// No longer needed.
        Released = "released",
    }
}

/// Treatment of in-flight calls at shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownMode {
    /// Calls may finish within `drain_seconds`.
    Graceful,
    /// Calls are cancelled: no client waits for them.
    Immediate,
}

/// ```text
///  Starting ─spawned─▶ Handshaking ─ready─▶ Ready ◀─ last call ends ─ Busy
///     │                    │                 │ └─── call starts ────▶ │
///     │                    │                 │ retire                 │ retire
///     │                    │                 ▼                        ▼
///     │                    │                 └──────▶ Draining ◀──────┘
///     │                    │                             │ disconnected
///     │                    │                             ▼
///     │                    │                          Stopped
///     └─── start failed, or disconnected in any state but Draining ───▶ Failed
/// ```
///
/// The connection is closed when a draining instance has no calls left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Being started or connected.
    Starting,
    /// Connected; version and capabilities are being negotiated.
    Handshaking,
    /// Open, without calls.
    Ready,
    /// Open, with calls.
    Busy {
        /// Number of calls.
        calls: NonZeroUsize,
    },
    /// Accepts no new calls and will be closed.
    Draining {
        /// Number of remaining calls.
        calls: usize,
        /// Cause of the stop.
        cause: StopCause,
    },
    /// Stopped by the gateway.
    Stopped {
        /// Cause of the stop.
        cause: StopCause,
    },
    /// Failed to start, or ended on its own.
    Failed {
        /// Cause and end of the server's log.
        why: FailureText,
    },
}

impl InstanceState {
    /// Returns the stable name of the state.
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
    /// Time of the last state change.
    pub(crate) since: Moment,
}

/// Input of the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The process has started; its id, or that of its guard until its own is known.
    Spawned(u32),
    /// The negotiation has finished.
    Ready(Revision),
    /// A call starts.
    CallStarted,
    /// A call ends.
    CallEnded,
    /// Accept no more calls, and stop.
    Retire(StopCause),
    /// The start failed.
    StartFailed(FailureText),
    /// The connection has ended; the cause counts if the gateway did not end it.
    Disconnected(FailureText),
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

    /// Returns the number of calls.
    pub(crate) const fn calls(&self) -> usize {
        match &self.state {
            InstanceState::Busy { calls } => calls.get(),
            InstanceState::Draining { calls, .. } => *calls,
            _ => 0,
        }
    }

    /// Returns true if the instance accepts calls.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Ready | InstanceState::Busy { .. }
        )
    }

    /// Returns true until the negotiation has finished.
    pub(crate) const fn is_starting(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Starting | InstanceState::Handshaking
        )
    }

    /// Returns true unless the instance is stopping or has ended.
    pub(crate) const fn is_running(&self) -> bool {
        self.is_open() || self.is_starting()
    }

    /// Returns true in a final state.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(
            self.state,
            InstanceState::Stopped { .. } | InstanceState::Failed { .. }
        )
    }

    /// Applies an event. Events that do not fit the state are ignored. Returns true if the connection must be closed,
    /// because no calls are left.
    #[must_use]
    pub(crate) fn handle(&mut self, event: Event, now: Moment) -> bool {
        match event {
            Event::Spawned(pid) if !self.is_over() => self.pid = Some(pid),
            Event::Ready(revision) if self.is_starting() => self.revision = Some(revision),
            _ => {}
        }
        let (state, closes) = after(self.state.clone(), event);
        // A busy instance keeps the time of its first call.
        if state.as_str() != self.state.as_str() {
            self.since = now;
        }
        self.state = state;
        closes
    }
}

fn after(state: InstanceState, event: Event) -> (InstanceState, bool) {
    use InstanceState as S;
    match (state, event) {
        (S::Starting, Event::Spawned(_)) => (S::Handshaking, false),
        (S::Starting | S::Handshaking, Event::Ready(_)) => (S::Ready, false),
        (S::Starting | S::Handshaking, Event::StartFailed(why)) => (S::Failed { why }, false),
        (S::Ready, Event::CallStarted) => (busy(1), false),
        (S::Busy { calls }, Event::CallStarted) => (busy(calls.get().saturating_add(1)), false),
        (S::Busy { calls }, Event::CallEnded) => (busy(calls.get() - 1), false),
        (S::Draining { calls, cause }, Event::CallEnded) => {
            let calls = calls.saturating_sub(1);
            (S::Draining { calls, cause }, calls == 0)
        }
        (S::Ready | S::Starting | S::Handshaking, Event::Retire(cause)) => {
            (S::Draining { calls: 0, cause }, true)
        }
        (S::Busy { calls }, Event::Retire(cause)) => {
            let calls = calls.get();
            (S::Draining { calls, cause }, false)
        }
        (S::Draining { cause, .. }, Event::Disconnected(_)) => (S::Stopped { cause }, false),
        (S::Starting | S::Handshaking | S::Ready | S::Busy { .. }, Event::Disconnected(why)) => {
            (S::Failed { why }, false)
        }
        (same, _) => (same, false),
    }
}

fn busy(calls: usize) -> InstanceState {
    NonZeroUsize::new(calls).map_or(InstanceState::Ready, |calls| InstanceState::Busy { calls })
}

#[cfg(test)]
mod tests;
