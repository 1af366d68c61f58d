//! Guards and handles of an instance that callers hold: the start, the connection, a call.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mcpact_spec::{Method, Revision};
use mcpact_transport::stdio::child::{Masks, Process, StderrSink};

use super::driver::{ManagedConnection, Supervisor};
use super::instance::{InstanceId, StopCause};
use super::instance_set::{CallOutcome, Refusal};
use super::placement::{CallAdmission, InstanceSharing};
use crate::error::UpstreamErrorKind;
use mcpact::connection::{
    CallObserver, DeliveryFailure, DropReason, FailureText, Hooks, ServerNotification,
};
use mcpact_engine::negotiation::Negotiation;

/// Permission to start one instance. Dropping it without an outcome cancels the start.
#[derive(Debug)]
pub(crate) struct StartPermit {
    /// Guard that the connection holds.
    pub(crate) guard: InstanceGuard,
    is_settled: bool,
}

/// Keeps an instance in the instance set. The instance ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct InstanceGuard(Arc<InstanceHandle>);

#[derive(Debug)]
struct InstanceHandle {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
    /// Cause of an unexpected end of the connection.
    failure: OnceLock<FailureText>,
}

/// An open instance. Dropping it releases the instance.
#[derive(Debug)]
pub(crate) struct RunningInstance {
    supervisor: Arc<Supervisor>,
    pub(crate) id: InstanceId,
}

/// A call on an instance. Dropping the guard ends the call.
#[derive(Debug)]
pub(crate) struct CallGuard {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
    /// The server has responded.
    is_answered: AtomicBool,
    /// The response was that to a call, not a list.
    is_served: AtomicBool,
    /// The call waits for the input of its client.
    is_suspended: bool,
}

/// Observes whether calls reach an instance, without keeping it alive.
#[derive(Clone, Debug)]
struct DeliveryObserver {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
}

impl CallObserver for DeliveryObserver {
    fn notification(&self, notification: &ServerNotification) {
        if notification.method == Method::LoggingMessage {
            self.supervisor.log_message(self.id, &notification.params);
        }
    }

    fn dropped(&self, reason: DropReason) {
        self.supervisor.metrics.dropped(reason.as_str());
    }

    fn noise(&self, line: &[u8]) {
        self.supervisor.log_noise(self.id, line);
    }

    fn undelivered(&self, failure: DeliveryFailure, why: &str) {
        let Self { supervisor, id } = self;
        supervisor.log_delivery_failed(*id, failure, why);
        let now = supervisor.now();
        let mut instances = supervisor.instances();
        instances.failures.delivery_failed(why.into(), now);
    }

    fn delivered(&self) {
        let Self { supervisor, id } = self;
        if supervisor.outage.is_set() && supervisor.instances().failures.clear() {
            supervisor.log_reachable(*id);
        }
    }
}

impl StartPermit {
    pub(super) fn new(supervisor: Arc<Supervisor>, id: InstanceId) -> Self {
        Self {
            guard: InstanceGuard(Arc::new(InstanceHandle {
                supervisor,
                id,
                failure: OnceLock::new(),
            })),
            is_settled: false,
        }
    }

    /// Records a failed start.
    pub(crate) fn failed(mut self, error: &UpstreamErrorKind) {
        self.is_settled = true;
        let InstanceHandle { supervisor, id, .. } = &*self.guard.0;
        supervisor.start_failed(*id, error);
    }

    /// Opens the instance for calls after the negotiation.
    pub(crate) fn ready(mut self, revision: Revision, sharing: InstanceSharing) -> RunningInstance {
        self.is_settled = true;
        let InstanceHandle { supervisor, id, .. } = &*self.guard.0;
        let now = supervisor.now();
        supervisor.instances().ready(*id, revision, sharing, now);
        supervisor.log_ready(*id, revision);
        supervisor.changed();
        // The connection may have ended meanwhile.
        if let Some(why) = self.guard.0.failure.get() {
            supervisor.connection_lost(*id, why);
        }
        RunningInstance {
            supervisor: Arc::clone(supervisor),
            id: *id,
        }
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        if !self.is_settled {
            let InstanceHandle { supervisor, id, .. } = &*self.guard.0;
            let now = supervisor.now();
            supervisor.instances().start_cancelled(*id, now);
        }
    }
}

impl Hooks for InstanceGuard {
    fn server(&self) -> &Arc<str> {
        &self.0.supervisor.server
    }

    fn masks(&self) -> Masks {
        self.0.supervisor.masks.clone()
    }

    fn stderr_sink(&self) -> Option<StderrSink> {
        let InstanceHandle { supervisor, id, .. } = &*self.0;
        Some(supervisor.stderr_sink(*id))
    }

    fn observer(&self) -> Arc<dyn CallObserver> {
        let InstanceHandle { supervisor, id, .. } = &*self.0;
        Arc::new(DeliveryObserver {
            supervisor: Arc::clone(supervisor),
            id: *id,
        })
    }

    fn negotiated(&self, negotiation: &Negotiation) {
        self.0.supervisor.metrics.negotiated(negotiation);
    }

    /// Only the first cause counts.
    fn lost(&self, why: FailureText) {
        let InstanceHandle {
            supervisor,
            id,
            failure,
        } = &*self.0;
        supervisor.connection_lost(*id, failure.get_or_init(|| why));
    }

    /// The instance does not end before its process, even if the start is cancelled.
    fn spawned(&self, process: &Process) {
        let InstanceHandle { supervisor, id, .. } = &*self.0;
        // Id of the guard process, until that of its child is known.
        let first = process.id();
        supervisor.instances().spawned(*id, first, supervisor.now());
        let (guard, own, ended) = (self.clone(), process.program_id(), process.wait());
        tokio::spawn(async move {
            let InstanceHandle { supervisor, id, .. } = &*guard.0;
            let pid = own.await.unwrap_or(first);
            supervisor.instances().spawned(*id, pid, supervisor.now());
            supervisor.log_spawned(*id, pid);
            // An unknown exit status counts as an exit, too.
            let _ = ended.await;
            drop(guard);
        });
    }
}

impl Drop for InstanceHandle {
    fn drop(&mut self) {
        let why = self.failure.get_or_init(|| "the connection ended".into());
        self.supervisor.remove(self.id, why);
    }
}

impl RunningInstance {
    /// Gives the supervisor access to the connection.
    pub(crate) fn attach(&self, connection: Weak<dyn ManagedConnection>) {
        self.supervisor.connect(self.id, connection);
    }

    /// Returns true if the instance accepts calls.
    pub(crate) fn is_open(&self) -> bool {
        self.supervisor.instances().is_open(self.id)
    }

    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> usize {
        self.supervisor.instances().calls(self.id)
    }

    /// Starts a call, waiting for a free place. Returns none if the instance accepts no more calls.
    pub(crate) async fn start_call(&self) -> Result<Option<CallGuard>, UpstreamErrorKind> {
        let starting = self.supervisor.queue_until(|is_queued| {
            let now = self.supervisor.now();
            let mut instances = self.supervisor.instances();
            match instances.start_call(self.id, is_queued, now) {
                CallAdmission::Started => Ok(ControlFlow::Break(true)),
                CallAdmission::Retired => Ok(ControlFlow::Break(false)),
                CallAdmission::Wait => Ok(ControlFlow::Continue(None)),
                CallAdmission::Refuse => Err(Refusal::QueueFull),
            }
        });
        let has_started = starting.await?;
        Ok(has_started.then(|| CallGuard::new(Arc::clone(&self.supervisor), self.id)))
    }

    /// Returns the failure that ended the instance.
    pub(crate) fn failure(&self) -> Option<FailureText> {
        self.supervisor.instances().failure(self.id)
    }

    /// Returns the cause for which the gateway stopped the instance.
    pub(crate) fn stop_cause(&self) -> Option<StopCause> {
        self.supervisor.instances().stop_cause(self.id)
    }
}

impl CallGuard {
    pub(super) const fn new(supervisor: Arc<Supervisor>, id: InstanceId) -> Self {
        Self {
            supervisor,
            id,
            is_answered: AtomicBool::new(false),
            is_served: AtomicBool::new(false),
            is_suspended: false,
        }
    }

    /// Records that the call waits for the input of its client, or no longer does. A waiting call takes no place from
    /// other calls.
    pub(crate) fn set_suspended(&mut self, is_suspended: bool) {
        if self.is_suspended != is_suspended {
            self.is_suspended = is_suspended;
            let mut instances = self.supervisor.instances();
            instances.set_suspended(self.id, is_suspended);
            drop(instances);
            self.supervisor.call_ended();
        }
    }

    /// Records a response of the server. Calls that end without one do not show that the server is healthy.
    pub(crate) fn answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Records the response to a call, which proves more than a list: the instance is replaced at once when it ends.
    pub(crate) fn served(&self) {
        self.answered();
        self.is_served.store(true, Ordering::Relaxed);
    }
}

impl Drop for RunningInstance {
    fn drop(&mut self) {
        self.supervisor.retire(self.id, StopCause::Released);
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.set_suspended(false);
        let outcome = match (*self.is_answered.get_mut(), *self.is_served.get_mut()) {
            (_, true) => CallOutcome::Served,
            (true, false) => CallOutcome::Listed,
            (false, false) => CallOutcome::Unanswered,
        };
        let now = self.supervisor.now();
        let closes = self.supervisor.instances().end_call(self.id, outcome, now);
        if closes {
            self.supervisor.close_one(self.id);
        }
        self.supervisor.call_ended();
    }
}
