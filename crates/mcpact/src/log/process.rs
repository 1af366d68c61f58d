//! Log of the lifecycle of a server process.

use std::error::Error;
use std::time::Instant;

use super::{CHILD, event};
use crate::error::with_causes;

/// Lifecycle event of a process, with the names of [`event`].
#[derive(Clone, Copy, Debug)]
pub enum ProcessEvent<'a> {
    /// The process is about to start.
    StartAttempt,
    /// The process runs.
    StartSuccess,
    /// The process could not be started.
    StartFailure(&'a dyn Error),
    /// The process is stopped without an agreement.
    InitializeFailure,
    /// The process is being stopped.
    StopAttempt,
    /// The process has exited.
    StopSuccess,
    /// The process did not stop cleanly.
    StopFailure(&'a dyn Error),
}

impl<'a> ProcessEvent<'a> {
    /// Returns the event name, the new state of the process and the error.
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

/// Logs the successive processes of one server.
#[derive(Debug)]
pub(crate) struct ProcessLog {
    server: String,
    instance: Option<u32>,
    since: Instant,
}

impl ProcessLog {
    pub(crate) fn new(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            instance: None,
            since: Instant::now(),
        }
    }

    /// Records that a process runs, with its process id.
    pub(crate) fn started(&mut self, instance: u32) {
        self.instance = Some(instance);
        self.record(ProcessEvent::StartSuccess);
    }

    /// Logs an event; `duration_ms` is the time since the previous one.
    pub(crate) fn record(&mut self, process_event: ProcessEvent<'_>) {
        let (event, state, error) = process_event.row();
        let error = error.map(with_causes);
        let server = self.server.as_str();
        let instance = self.instance;
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since = Instant::now();
        match process_event {
            ProcessEvent::StartFailure(_)
            | ProcessEvent::InitializeFailure
            | ProcessEvent::StopFailure(_) => {
                tracing::warn!(target: CHILD, event, server, instance, state, duration_ms, error, "{event}");
            }
            ProcessEvent::StartAttempt
            | ProcessEvent::StartSuccess
            | ProcessEvent::StopAttempt
            | ProcessEvent::StopSuccess => {
                tracing::info!(target: CHILD, event, server, instance, state, duration_ms, "{event}");
            }
        }
    }
}
