//! The life of a server process in the log.

use std::error::Error;
use std::time::Instant;

use super::{CHILD, event};

/// A turn in the life of a process.
#[derive(Clone, Copy)]
pub(crate) enum Turn<'a> {
    StartAttempt,
    StartSuccess,
    StartFailure(&'a dyn Error),
    InitializeFailure,
    StopAttempt,
    StopSuccess,
    StopFailure(&'a dyn Error),
}

impl<'a> Turn<'a> {
    /// What the log calls it, what the process is from then on, and what went wrong.
    fn row(self) -> (&'static str, &'static str, Option<&'a dyn Error>) {
        match self {
            Self::StartAttempt => (event::START_ATTEMPT, "starting", None),
            Self::StartSuccess => (event::START_SUCCESS, "running", None),
            Self::StartFailure(error) => (event::START_FAILURE, "failed", Some(error)),
            Self::InitializeFailure => (event::INITIALIZE_FAILURE, "failed", None),
            Self::StopAttempt => (event::STOP_ATTEMPT, "stopping", None),
            Self::StopSuccess => (event::STOP_SUCCESS, "stopped", None),
            Self::StopFailure(error) => (event::STOP_FAILURE, "failed", Some(error)),
        }
    }
}

/// Tells of one process after the other of the same server.
#[derive(Debug)]
pub(crate) struct Life {
    server: String,
    instance: Option<u32>,
    since: Instant,
}

impl Life {
    pub(crate) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            instance: None,
            since: Instant::now(),
        }
    }

    /// A process with this number runs.
    pub(crate) fn runs_as(&mut self, instance: u32) {
        self.instance = Some(instance);
        self.tell(Turn::StartSuccess);
    }

    /// Tells of a turn; `duration_ms` is the time since the one before.
    pub(crate) fn tell(&mut self, turn: Turn<'_>) {
        let (event, state, error) = turn.row();
        let error = error.map(whole);
        let server = self.server.as_str();
        let instance = self.instance;
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since = Instant::now();
        match turn {
            Turn::StartFailure(_) | Turn::InitializeFailure | Turn::StopFailure(_) => {
                tracing::warn!(target: CHILD, event, server, instance, state, duration_ms, error, "{event}");
            }
            Turn::StartAttempt | Turn::StartSuccess | Turn::StopAttempt | Turn::StopSuccess => {
                tracing::info!(target: CHILD, event, server, instance, state, duration_ms, "{event}");
            }
        }
    }
}

/// An error with its causes.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
