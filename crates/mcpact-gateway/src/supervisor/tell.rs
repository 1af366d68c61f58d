//! What figures, the log and the journal hear of the life of instances.

use std::sync::Arc;
use std::time::Duration;

use mcpact::log::event;
use mcpact::server::backend::date;
use mcpact_spec::Revision;
use mcpact_transport::stdio::child::Scribe;

use super::health::Diagnosis;
use super::instance::{Instance, InstanceId, InstanceState, StartCause, StopCause};
use super::run::Supervisor;
use crate::chronicle::EntryKind;
use crate::error::{FailureText, Trouble};
use crate::stable::{LogEvent, Reason};

/// Why a call came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It did not reach the server.
    Unreached,
    /// What the server answered cannot be read.
    Unread,
}

impl Miss {
    /// As figures, the journal and the log have it.
    const fn words(self) -> (Reason, &'static str, &'static str) {
        match self {
            Self::Unreached => (
                Reason::UpstreamUnreachable,
                "unreachable",
                "call not delivered: server unreachable",
            ),
            Self::Unread => (
                Reason::UpstreamMisbehaved,
                "invalid response",
                "invalid response from the server",
            ),
        }
    }
}

impl Supervisor {
    fn note(&self, id: InstanceId, event: &'static str, text: &str) {
        let kind = EntryKind::Event(event);
        self.journal.write(date(), Some(id.0), kind, text);
    }

    /// Takes the lines of an instance's log.
    pub(super) fn scribe(&self, id: InstanceId) -> Scribe {
        let journal = self.journal.clone();
        Scribe(Arc::new(move |line| {
            journal.write(date(), Some(id.0), EntryKind::Log, line);
        }))
    }

    /// One is about to be started.
    pub(super) fn tell_attempt(&self, id: InstanceId, cause: StartCause) {
        let is_again = self.fleet().failures() > 0;
        self.figures.started(cause.as_str(), is_again);
        tracing::info!(
            event = event::START_ATTEMPT,
            server = %self.server,
            instance = id.0,
            state = "starting",
            cause = cause.as_str(),
            "server starting"
        );
        let text = format!("starting: {}", cause.in_words());
        self.note(id, event::START_ATTEMPT, &text);
    }

    /// Its process runs.
    pub(super) fn tell_spawned(&self, id: InstanceId, pid: u32) {
        tracing::debug!(
            server = %self.server,
            instance = id.0,
            pid,
            state = "handshaking",
            duration_ms = self.age_of(id),
            "process started"
        );
        self.note(
            id,
            LogEvent::Spawned.as_str(),
            &format!("process started: pid {pid}"),
        );
    }

    /// There is an agreement.
    pub(super) fn tell_ready(&self, id: InstanceId, revision: Revision) {
        tracing::info!(
            event = event::START_SUCCESS,
            server = %self.server,
            instance = id.0,
            state = "ready",
            revision = revision.as_str(),
            duration_ms = self.age_of(id),
            "server started"
        );
        let text = format!("ready: revision {revision}");
        self.note(id, event::START_SUCCESS, &text);
    }

    /// It did not start, or did not agree.
    pub(super) fn tell_no_start(&self, id: InstanceId, trouble: &Trouble, why: &FailureText) {
        self.figures.failed(trouble.reason());
        let event = if trouble.is_disagreement() {
            event::INITIALIZE_FAILURE
        } else {
            event::START_FAILURE
        };
        tracing::warn!(
            event,
            server = %self.server,
            instance = id.0,
            state = "failed",
            duration_ms = self.age_of(id),
            error = %why,
            "server failed to start"
        );
        self.note(id, event, &format!("failed to start: {why}"));
    }

    /// It does not answer as it should.
    pub(super) fn tell_unwell(&self, id: InstanceId, diagnosis: Diagnosis) {
        let state = match diagnosis {
            Diagnosis::Failed => "failed",
            Diagnosis::Well | Diagnosis::Shaky => "ready",
            Diagnosis::Silent => "busy",
        };
        tracing::warn!(
            event = event::PING_FAILURE,
            server = %self.server,
            instance = id.0,
            state,
            duration_ms = self.age_of(id),
            error = "no valid answer to the health check",
            "server unhealthy"
        );
        let text = "health check failed: no valid answer";
        self.note(id, event::PING_FAILURE, text);
    }

    /// A call could not be brought to it, or its answer not be read.
    pub(super) fn tell_missed(&self, id: InstanceId, miss: Miss, why: &str) {
        let (cause, noted, told) = miss.words();
        self.figures.failed(cause);
        tracing::warn!(
            event = event::ROUTE_ERROR,
            server = %self.server,
            instance = id.0,
            state = "failed",
            duration_ms = self.age_of(id),
            error = why,
            "{told}"
        );
        let text = format!("{noted}: {why}");
        self.note(id, event::ROUTE_ERROR, &text);
    }

    /// It answers again.
    pub(super) fn tell_reached(&self, id: InstanceId) {
        tracing::info!(
            server = %self.server,
            instance = id.0,
            state = "ready",
            duration_ms = self.age_of(id),
            "server reachable again"
        );
        self.note(id, LogEvent::Reached.as_str(), "reachable again");
    }

    /// It is stopped, if that is because nobody uses it.
    pub(super) fn tell_idle(&self, id: InstanceId) {
        let status = self.status();
        let is_idle = status.instances.iter().any(|instance| {
            let cause = StopCause::Idle;
            instance.id == id
                && matches!(instance.state, InstanceState::Draining { cause: why, .. } if why == cause)
        });
        if !is_idle {
            return;
        }
        tracing::info!(
            event = event::IDLE_REAP,
            server = %self.server,
            instance = id.0,
            state = "draining",
            duration_ms = self.age_of(id),
            "idle server stopping"
        );
        self.note(id, event::IDLE_REAP, "stopping: idle");
    }

    /// It is asked to end.
    pub(super) fn tell_closing(&self, id: InstanceId) {
        tracing::info!(
            event = event::STOP_ATTEMPT,
            server = %self.server,
            instance = id.0,
            state = "draining",
            duration_ms = self.age_of(id),
            "server stopping"
        );
    }

    /// It is over.
    pub(super) fn tell_end(&self, instance: &Instance) {
        let lived = self.now().since(instance.started);
        let duration_ms = millis(lived);
        match &instance.state {
            InstanceState::Stopped { cause } => {
                self.figures.stopped(cause.as_str());
                tracing::info!(
                    event = event::STOP_SUCCESS,
                    server = %self.server,
                    instance = instance.id.0,
                    state = instance.state.as_str(),
                    duration_ms,
                    cause = cause.as_str(),
                    "server stopped"
                );
                let text = format!("stopped after {lived:.1?}: {}", cause.as_str());
                self.note(instance.id, event::STOP_SUCCESS, &text);
            }
            // One that did not start was told of when it did not.
            InstanceState::Failed { why } if instance.revision.is_some() => {
                self.figures.failed(Reason::ConnectionEnded);
                tracing::warn!(
                    event = event::STOP_FAILURE,
                    server = %self.server,
                    instance = instance.id.0,
                    state = instance.state.as_str(),
                    duration_ms,
                    error = %why,
                    "server failed"
                );
                let text = format!("failed after {lived:.1?}: {why}");
                self.note(instance.id, event::STOP_FAILURE, &text);
            }
            _ => {}
        }
    }

    /// For how many milliseconds it has been there.
    fn age_of(&self, id: InstanceId) -> Option<u64> {
        self.fleet().age(id, self.now()).map(millis)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
