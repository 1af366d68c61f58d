//! How a server and its instances are, for people and machines that watch.

use std::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::Revision;

use super::instance::{Instance, InstanceId, InstanceState, StartCause};
use super::placement::Seat;
use super::restart_policy::State;
use crate::error::FailureText;
use crate::stable::ServerWord;

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// In a word.
    pub state: ServerState,
    /// The instances that run.
    pub instances: Vec<InstanceStatus>,
    /// The last ones that do not run any more, the latest first.
    pub over: Vec<InstanceStatus>,
    /// How many calls wait for an instance.
    pub queued: usize,
    /// How many instances were ever started.
    pub starts: u64,
    /// How many failures count at the moment, and how many calls in a row did not reach it.
    pub failures: usize,
    /// How long until it is tried again without being called, if it is.
    pub tried_in: Option<Duration>,
    /// What went wrong last.
    pub last_error: Option<Mishap>,
    /// What keeps it from being used, until a call or a check succeeds, and since when.
    pub stands: Option<Mishap>,
}

impl ServerStatus {
    /// Its state for people: where nothing would run, `asleep` would not be the truth, nor `ready` where
    /// calls do not reach it.
    pub(crate) fn word(&self, is_missing: bool) -> &'static str {
        match self.state {
            ServerState::Asleep if is_missing => ServerWord::Failed.as_str(),
            ServerState::Ready | ServerState::Busy if self.stands.is_some() => {
                ServerWord::Failed.as_str()
            }
            state => state.as_str(),
        }
    }
}

impl ServerStatus {
    /// Its state for a call that finds no room: what is `asleep` has room once its last instance has gone.
    pub(crate) fn crowded(&self) -> &'static str {
        let is_ending = |one: &InstanceStatus| matches!(one.state, InstanceState::Draining { .. });
        match self.state {
            ServerState::Asleep if self.instances.iter().any(is_ending) => "stopping",
            ServerState::Asleep | ServerState::Ready => "busy",
            state => state.as_str(),
        }
    }
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// Cause and log.
    pub why: FailureText,
    /// How long ago.
    pub age: Duration,
}

/// How a server is, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Nothing runs, and the next call starts it.
    Asleep,
    /// It is on its way.
    Starting,
    /// It waits for calls.
    Ready,
    /// It has calls.
    Busy,
    /// It failed, and is left alone for a moment.
    Pausing {
        /// How long still.
        wait: Duration,
    },
    /// It failed too often, and is left alone.
    Suspended {
        /// For how long already.
        age: Duration,
        /// How long still.
        wait: Duration,
    },
}

impl ServerState {
    /// The state in a word.
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

    /// How long it is left alone still, if it is.
    pub(crate) const fn wait(self) -> Option<Duration> {
        match self {
            Self::Pausing { wait } | Self::Suspended { wait, .. } => Some(wait),
            Self::Asleep | Self::Starting | Self::Ready | Self::Busy => None,
        }
    }

    pub(super) fn of<'a>(
        instances: impl Iterator<Item = &'a Instance> + Clone,
        policy: State,
        now: Moment,
    ) -> Self {
        let any = |is: fn(&Instance) -> bool| instances.clone().any(is);
        if any(|instance| instance.is_open() && instance.calls() > 0) {
            return Self::Busy;
        }
        if any(Instance::is_open) {
            return Self::Ready;
        }
        if any(Instance::is_starting) {
            return Self::Starting;
        }
        match policy {
            State::Pausing { until } if until > now => Self::Pausing {
                wait: until.since(now),
            },
            State::Suspended { since, until, .. } => Self::Suspended {
                age: now.since(since),
                wait: until.since(now),
            },
            State::Calm | State::Pausing { .. } | State::Trying { .. } | State::Proving { .. } => {
                Self::Asleep
            }
        }
    }
}

/// How an instance is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    /// Its number.
    pub id: InstanceId,
    /// The number of its process, if it has one; a guard's until its own is known.
    pub pid: Option<u32>,
    /// What it does, with the cause if it has one.
    pub state: InstanceState,
    /// For how long it has been doing that.
    pub age: Duration,
    /// How long ago it was started.
    pub uptime: Duration,
    /// Why it was started.
    pub cause: StartCause,
    /// What it speaks, once that is known.
    pub revision: Option<Revision>,
    /// How many calls it has.
    pub in_flight: usize,
    /// For how long it has not answered whether it is well, while it has calls.
    pub silent: Option<Duration>,
}

impl InstanceStatus {
    /// One that is over.
    pub(super) fn of(instance: &Instance, now: Moment) -> Self {
        Self {
            id: instance.id,
            pid: instance.pid,
            state: instance.state.clone(),
            age: now.since(instance.since),
            uptime: now.since(instance.started),
            cause: instance.cause,
            revision: instance.revision,
            in_flight: instance.calls(),
            silent: None,
        }
    }

    /// One that runs.
    pub(super) fn running(seat: &Seat, now: Moment) -> Self {
        Self {
            silent: seat.silent.map(|since| now.since(since)),
            ..Self::of(&seat.instance, now)
        }
    }
}
