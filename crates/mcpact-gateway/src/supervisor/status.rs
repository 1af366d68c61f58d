//! Status of a server and its instances.

use std::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use super::instance::{Instance, InstanceId, InstanceState, StartCause};
use crate::error::Explanation;
use crate::reason::ServerWord;
use mcpact::connection::FailureText;

/// Status of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Overall state.
    pub state: ServerState,
    /// Running instances.
    pub instances: Vec<InstanceStatus>,
    /// The latest ended instances, newest first.
    pub ended: Vec<InstanceStatus>,
    /// Number of queued calls.
    pub queued: usize,
    /// Number of instances ever started.
    pub starts: u64,
    /// Number of recent failures, plus calls in a row that did not reach the server.
    pub failures: usize,
    /// Time until the next start without a call.
    pub retry_in: Option<Duration>,
    /// The last failure.
    pub last_error: Option<ServerFailure>,
    /// Failure that makes the server unusable until a call or a check succeeds, and its duration.
    pub outage: Option<ServerFailure>,
}

impl ServerStatus {
    /// Returns the state for reports: `failed` for a missing server and during an outage.
    pub(crate) fn word(&self, is_missing: bool) -> &'static str {
        match self.state {
            ServerState::Asleep if is_missing => ServerWord::Failed.as_str(),
            ServerState::Ready | ServerState::Busy if self.outage.is_some() => {
                ServerWord::Failed.as_str()
            }
            state => state.as_str(),
        }
    }

    /// Returns the state for a call that finds no capacity.
    pub(super) fn busy_word(&self) -> &'static str {
        let is_stopping =
            |one: &InstanceStatus| matches!(one.state, InstanceState::Draining { .. });
        match self.state {
            ServerState::Asleep if self.instances.iter().any(is_stopping) => "stopping",
            ServerState::Asleep | ServerState::Ready => "busy",
            state => state.as_str(),
        }
    }
}

/// Failure of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFailure {
    /// Cause and end of the server's log.
    pub why: FailureText,
    /// Remedy, if one is known.
    pub hint: Option<String>,
    /// Time since the failure.
    pub age: Duration,
}

impl ServerFailure {
    pub(super) fn new(why: &Explanation, age: Duration) -> Self {
        Self {
            why: why.text.clone(),
            hint: why.hint.clone(),
            age,
        }
    }

    /// Returns cause, stderr and remedy.
    pub(crate) fn explanation(self) -> Explanation {
        Explanation {
            text: self.why,
            hint: self.hint,
        }
    }
}

/// Overall state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// No instance runs; the next call starts one.
    Asleep,
    /// An instance is starting.
    Starting,
    /// Open, without calls.
    Ready,
    /// Open, with calls.
    Busy,
    /// In backoff after a failure.
    Pausing {
        /// Remaining time.
        wait: Duration,
    },
    /// Suspended after too many failures.
    Suspended {
        /// Elapsed time.
        age: Duration,
        /// Remaining time.
        wait: Duration,
    },
}

impl ServerState {
    /// Returns the stable name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asleep => "asleep",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Busy => "busy",
            Self::Pausing { .. } => "pausing",
            Self::Suspended { .. } => "suspended",
        }
    }

    /// Returns the remaining time of a backoff or suspension.
    pub(crate) const fn wait(self) -> Option<Duration> {
        match self {
            Self::Pausing { wait } | Self::Suspended { wait, .. } => Some(wait),
            Self::Asleep | Self::Starting | Self::Ready | Self::Busy => None,
        }
    }
}

/// Status of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    /// Number of the instance.
    pub id: InstanceId,
    /// Process id, if it has one; that of its guard until its own is known.
    pub pid: Option<u32>,
    /// State, with its cause.
    pub state: InstanceState,
    /// Time since the last state change.
    pub age: Duration,
    /// Time since the start.
    pub uptime: Duration,
    /// Cause of the start.
    pub cause: StartCause,
    /// Negotiated revision.
    pub revision: Option<Revision>,
    /// Number of calls.
    pub in_flight: usize,
    /// Time since the first of the health checks that went unanswered while calls run.
    pub unresponsive: Option<Duration>,
}

impl InstanceStatus {
    pub(super) fn of(instance: &Instance, unresponsive_since: Option<Moment>, now: Moment) -> Self {
        Self {
            id: instance.id,
            pid: instance.pid,
            state: instance.state.clone(),
            age: now.since(instance.since),
            uptime: now.since(instance.started),
            cause: instance.cause,
            revision: instance.revision,
            in_flight: instance.calls(),
            unresponsive: unresponsive_since.map(|since| now.since(since)),
        }
    }
}
