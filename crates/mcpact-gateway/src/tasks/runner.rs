//! Execution of a hosted task.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use futures_util::FutureExt;
use mcpact::server::backend::QuestionOutcome;
use mcpact_engine::pact::Pact;
use mcpact_spec::{Era, Method, Revision};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::connection::UpstreamConnection;
use crate::connection::questions::ANSWER_TIMEOUT;
use crate::downstream::sink::ClientSink;
use crate::exchange::Exchange;
use crate::supervisor::CallGuard;
use crate::sync::lock;
use crate::upstream::binding::ServerBinding;

/// Background jobs of one hosted task, and the channel for questions to its client.
#[derive(Debug)]
pub(crate) struct Runner {
    /// Number of the upstream server.
    pub(crate) server: u64,
    pub(crate) binding: Arc<ServerBinding>,
    pub(crate) pact: Arc<Pact>,
    pub(crate) owner: Box<str>,
    /// Connection on which the server runs its own task, once it has created one.
    pub(crate) connection: OnceLock<Arc<UpstreamConnection>>,
    /// Requests for the result, which can carry questions to the client.
    waiters: watch::Sender<Vec<ResultWaiter>>,
    jobs: Mutex<Vec<AbortHandle>>,
    /// Call guard that lets the server's task finish during a drain.
    drain_guard: Mutex<Option<CallGuard>>,
}

/// Pending request for the result, which can carry questions to the client.
#[derive(Clone, Debug)]
pub(crate) struct ResultWaiter {
    pub(crate) number: u64,
    pub(crate) sink: ClientSink,
}

impl Runner {
    pub(crate) fn new(exchange: &Exchange, server: u64) -> Self {
        Self {
            server,
            binding: Arc::clone(&exchange.binding),
            pact: Arc::clone(&exchange.inbound.job.pact),
            owner: exchange.inbound.sink.owner().into(),
            connection: OnceLock::new(),
            waiters: watch::Sender::new(Vec::new()),
            jobs: Mutex::default(),
            drain_guard: Mutex::default(),
        }
    }

    /// Returns the revision of the server that runs the task; the newest modern one before the task exists.
    pub(crate) fn upstream(&self) -> Revision {
        let connection = self.connection.get();
        connection.map_or(Revision::newest(Era::Modern), |connection| {
            connection.revision()
        })
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<AbortHandle>> {
        lock(&self.jobs)
    }

    /// Registers a background job of the task.
    pub(crate) fn add_job(&self, job: AbortHandle) {
        let mut jobs = self.jobs();
        jobs.retain(|job| !job.is_finished());
        jobs.push(job);
    }

    /// Gives the server's own task the same drain time as a call when the server is about to stop. Before that task
    /// exists, the call itself is in flight.
    pub(crate) fn keep_call(&self) {
        let entered = self
            .connection
            .get()
            .map(|connection| connection.running.start_call());
        // An instance at its call limit has calls to drain anyway.
        if let Some(Ok(Some(guard))) = entered.and_then(FutureExt::now_or_never) {
            *lock(&self.drain_guard) = Some(guard);
        }
    }

    /// Aborts all background jobs of the task.
    pub(crate) fn stop(&self) {
        for job in self.jobs().drain(..) {
            job.abort();
        }
    }

    pub(crate) fn add_waiter(&self, waiter: ResultWaiter) {
        self.waiters.send_modify(|waiters| waiters.push(waiter));
    }

    pub(crate) fn remove_waiter(&self, number: u64) {
        self.waiters
            .send_modify(|waiters| waiters.retain(|waiter| waiter.number != number));
    }

    /// Sends a question to the client on a pending request for the result. If that request ends without an answer,
    /// the question is sent again on the next one.
    pub(crate) async fn ask(&self, method: Method, params: &str) -> QuestionOutcome {
        let mut waiters = self.waiters.subscribe();
        loop {
            let waiter = match waiters.wait_for(|waiters| !waiters.is_empty()).await {
                Ok(waiters) => waiters.last().cloned(),
                Err(_) => None,
            };
            let Some(waiter) = waiter else {
                return QuestionOutcome::Lost("no client waits for the task");
            };
            let has_left = |waiters: &Vec<ResultWaiter>| {
                !waiters.iter().any(|other| other.number == waiter.number)
            };
            tokio::select! {
                outcome = waiter.sink.ask(method, params, ANSWER_TIMEOUT) => return outcome,
                _ = waiters.wait_for(has_left) => {}
            }
        }
    }
}
