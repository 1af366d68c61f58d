//! Logs, metrics and server log entries about the lifecycle of instances.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpact::log::{self, event};
use mcpact::model::LogMessage;
use mcpact::server::backend::date;
use mcpact_engine::time::Moment;
use mcpact_spec::{LogLevel, Revision};
use mcpact_transport::stdio::child::StderrSink;
use mcpact_wire::raw::member;
use mcpact_wire::scan::text;

use super::driver::Supervisor;
use super::health::Diagnosis;
use super::instance::{Instance, InstanceId, InstanceState, StartCause, StopCause};
use crate::error::{Explanation, UpstreamErrorKind};
use crate::event_history::LogEntryKind;
use crate::reason::{LogEvent, Reason};
use crate::sync::lock;
use mcpact::connection::DeliveryFailure;

/// Maximum number of log messages of a server within [`MESSAGE_WINDOW`].
const MAX_MESSAGES: u32 = 100;

/// Time after which a server may send that many log messages again.
const MESSAGE_WINDOW: Duration = Duration::from_secs(10);

/// Maximum bytes of a line on stdout in the server log.
const MAX_NOISE: usize = 1024;

/// Limit on the log messages of one server.
#[derive(Debug, Default)]
pub(super) struct MessageLimit {
    window_start: Moment,
    count: u32,
}

/// Decision about a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageAdmission {
    Admitted,
    /// Dropped, as the first one of its window.
    FirstDropped,
    Dropped,
}

impl MessageLimit {
    fn admit(&mut self, now: Moment) -> MessageAdmission {
        if now.since(self.window_start) >= MESSAGE_WINDOW {
            *self = Self {
                window_start: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        match self.count.checked_sub(MAX_MESSAGES) {
            None | Some(0) => MessageAdmission::Admitted,
            Some(1) => MessageAdmission::FirstDropped,
            Some(_) => MessageAdmission::Dropped,
        }
    }
}

impl Supervisor {
    fn write(&self, id: InstanceId, event: &'static str, text: &str) {
        let kind = LogEntryKind::Event(event);
        self.server_log.write(date(), Some(id.0), kind, text);
    }

    /// Returns the sink for the stderr lines of an instance.
    pub(super) fn stderr_sink(&self, id: InstanceId) -> StderrSink {
        let server_log = self.server_log.clone();
        StderrSink(Arc::new(move |line| {
            server_log.write(date(), Some(id.0), LogEntryKind::Log, line);
        }))
    }

    /// Counts a line on stdout that is not JSON, and writes it to the server log.
    pub(super) fn log_noise(&self, id: InstanceId, line: &[u8]) {
        self.noise.fetch_add(1, Ordering::Relaxed);
        let line = &line[..line.len().min(MAX_NOISE)];
        let line = self.masks.cover(String::from_utf8_lossy(line).into_owned());
        let text = format!("stdout, not JSON: {line}");
        self.server_log
            .write(date(), Some(id.0), LogEntryKind::Log, &text);
    }

    /// Logs a `notifications/message` of an instance at its level, unless the server sends too many.
    pub(super) fn log_message(&self, id: InstanceId, params: &str) {
        let level = member(params, "level").and_then(text);
        let level = level.and_then(|level| LogLevel::parse(&level));
        // Verbose messages do not use up the limit of errors.
        let is_severe = level.is_some_and(|level| level >= LogLevel::Warning);
        let admission = {
            let [verbose, severe] = &mut *lock(&self.message_limits);
            let limit = if is_severe { severe } else { verbose };
            limit.admit(self.now())
        };
        match admission {
            MessageAdmission::Admitted => {}
            MessageAdmission::FirstDropped => {
                return tracing::warn!(
                    server = %self.server,
                    instance = id.0,
                    limit = MAX_MESSAGES,
                    seconds = MESSAGE_WINDOW.as_secs(),
                    "server sends too many log messages; further ones are not logged"
                );
            }
            MessageAdmission::Dropped => return,
        }
        let Ok(mut message) = serde_json::from_str::<LogMessage>(params) else {
            return;
        };
        message.data = self.masks.cover(message.text()).into();
        message.logger = message.logger.map(|logger| self.masks.cover(logger));
        log::write_message(&self.server, &message);
        let logger = message.logger.as_deref().unwrap_or("log");
        let text = format!("{logger}: {}: {}", message.level.as_str(), message.text());
        self.server_log
            .write(date(), Some(id.0), LogEntryKind::Log, &text);
    }

    pub(super) fn log_starting(&self, id: InstanceId, cause: StartCause) {
        let is_restart = self.instances().policy.failures() > 0;
        self.metrics.started(cause.as_str(), is_restart);
        tracing::info!(
            event = event::START_ATTEMPT,
            server = %self.server,
            instance = id.0,
            state = "starting",
            cause = cause.as_str(),
            "server starting"
        );
        let text = format!("starting: {}", cause.in_words());
        self.write(id, event::START_ATTEMPT, &text);
    }

    pub(super) fn log_spawned(&self, id: InstanceId, pid: u32) {
        tracing::debug!(
            server = %self.server,
            instance = id.0,
            pid,
            state = "handshaking",
            duration_ms = self.age_of(id),
            "process started"
        );
        let text = format!("process started: pid {pid}");
        self.write(id, LogEvent::Spawned.as_str(), &text);
    }

    pub(super) fn log_ready(&self, id: InstanceId, revision: Revision) {
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
        self.write(id, event::START_SUCCESS, &text);
    }

    pub(super) fn log_start_failed(
        &self,
        id: InstanceId,
        error: &UpstreamErrorKind,
        why: &Explanation,
    ) {
        self.metrics.failed(error.reason());
        let event = if error.is_negotiation_failure() {
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
            error = %why.text,
            advice = why.hint,
            "server failed to start"
        );
        self.write(id, event, &format!("failed to start: {why}"));
    }

    pub(super) fn log_unhealthy(&self, id: InstanceId, diagnosis: Diagnosis) {
        let state = match diagnosis {
            Diagnosis::Failed => "failed",
            Diagnosis::Healthy | Diagnosis::Suspect => "ready",
            Diagnosis::Unresponsive => "busy",
        };
        tracing::warn!(
            event = event::PING_FAILURE,
            server = %self.server,
            instance = id.0,
            state,
            duration_ms = self.age_of(id),
            error = "no successful answer to the health check",
            "server unhealthy"
        );
        let text = "health check failed: no answer, or an error";
        self.write(id, event::PING_FAILURE, text);
    }

    pub(super) fn log_delivery_failed(&self, id: InstanceId, failure: DeliveryFailure, why: &str) {
        let (reason, entry, message) = match failure {
            DeliveryFailure::Unreachable => (
                Reason::UpstreamUnreachable,
                "unreachable",
                "call not delivered: server unreachable",
            ),
            DeliveryFailure::InvalidResponse => (
                Reason::UpstreamMisbehaved,
                "invalid response",
                "invalid response from the server",
            ),
        };
        self.metrics.failed(reason);
        tracing::warn!(
            event = event::ROUTE_ERROR,
            server = %self.server,
            instance = id.0,
            state = "failed",
            duration_ms = self.age_of(id),
            error = why,
            "{message}"
        );
        let text = format!("{entry}: {why}");
        self.write(id, event::ROUTE_ERROR, &text);
    }

    pub(super) fn log_reachable(&self, id: InstanceId) {
        tracing::info!(
            server = %self.server,
            instance = id.0,
            state = "ready",
            duration_ms = self.age_of(id),
            "server reachable again"
        );
        self.write(id, LogEvent::ReachedServer.as_str(), "reachable again");
    }

    pub(super) fn log_idle(&self, id: InstanceId) {
        if self.instances().stop_cause(id) != Some(StopCause::Idle) {
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
        self.write(id, event::IDLE_REAP, "stopping: idle");
    }

    pub(super) fn log_stopping(&self, id: InstanceId) {
        tracing::info!(
            event = event::STOP_ATTEMPT,
            server = %self.server,
            instance = id.0,
            state = "draining",
            duration_ms = self.age_of(id),
            "server stopping"
        );
    }

    pub(super) fn log_ended(&self, instance: &Instance) {
        let uptime = self.now().since(instance.started);
        let duration_ms = millis(uptime);
        match &instance.state {
            InstanceState::Stopped { cause } => {
                self.metrics.stopped(cause.as_str());
                tracing::info!(
                    event = event::STOP_SUCCESS,
                    server = %self.server,
                    instance = instance.id.0,
                    state = instance.state.as_str(),
                    duration_ms,
                    cause = cause.as_str(),
                    "server stopped"
                );
                let text = format!("stopped after {uptime:.1?}: {}", cause.as_str());
                self.write(instance.id, event::STOP_SUCCESS, &text);
            }
            // A failed start has been logged already.
            InstanceState::Failed { why } if instance.revision.is_some() => {
                self.metrics.failed(Reason::ConnectionEnded);
                tracing::warn!(
                    event = event::STOP_FAILURE,
                    server = %self.server,
                    instance = instance.id.0,
                    state = instance.state.as_str(),
                    duration_ms,
                    error = %why,
                    "server failed"
                );
                let text = format!("failed after {uptime:.1?}: {why}");
                self.write(instance.id, event::STOP_FAILURE, &text);
            }
            _ => {}
        }
    }

    /// Returns the milliseconds since the start.
    fn age_of(&self, id: InstanceId) -> Option<u64> {
        self.instances().age(id, self.now()).map(millis)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_are_limited_per_window() {
        use MessageAdmission::{Admitted, Dropped, FirstDropped};
        let mut limit = MessageLimit::default();
        let at = |seconds| Moment::at(Duration::from_secs(seconds));
        for window in [at(0), at(10), at(25)] {
            for _ in 0..MAX_MESSAGES {
                assert_eq!(limit.admit(window), Admitted);
            }
            assert_eq!(limit.admit(window), FirstDropped);
            assert_eq!(limit.admit(window), Dropped);
        }
    }
}
