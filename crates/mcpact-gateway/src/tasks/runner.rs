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
    places: watch::Sender<Vec<ResultWaiter>>,
    jobs: Mutex<Vec<AbortHandle>>,
    /// Call guard that lets the server's task finish during a drain.
    stay: Mutex<Option<CallGuard>>,
}

/// Pending request for the result, which can carry questions to the client.
#[derive(Clone, Debug)]
pub(crate) struct ResultWaiter {
    pub(crate) inbound: u64,
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
            places: watch::Sender::new(Vec::new()),
            jobs: Mutex::default(),
            stay: Mutex::default(),
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
    pub(crate) fn employ(&self, job: AbortHandle) {
        let mut jobs = self.jobs();
        jobs.retain(|job| !job.is_finished());
        jobs.push(job);
    }

    /// Gives the server's own task the same drain time as a call when the server is about to stop. Before that task
    /// exists, the call itself is in flight.
    pub(crate) fn outlast(&self) {
        let entered = self
            .connection
            .get()
            .map(|connection| connection.running.start_call());
        // An instance at its call limit has calls to drain anyway.
        if let Some(Ok(Some(guard))) = entered.and_then(FutureExt::now_or_never) {
            *lock(&self.stay) = Some(guard);
        }
    }

    /// Aborts all background jobs of the task.
    pub(crate) fn stop(&self) {
        for job in self.jobs().drain(..) {
            job.abort();
        }
    }

    pub(crate) fn arrived(&self, place: ResultWaiter) {
        self.places.send_modify(|places| places.push(place));
    }

    pub(crate) fn left(&self, inbound: u64) {
        self.places
            .send_modify(|places| places.retain(|place| place.inbound != inbound));
    }

    /// Sends a question to the client on a pending request for the result. If that request ends without an answer,
    /// the question is sent again on the next one.
    pub(crate) async fn ask(&self, method: Method, params: &str) -> QuestionOutcome {
        let mut places = self.places.subscribe();
        loop {
            let place = match places.wait_for(|places| !places.is_empty()).await {
                Ok(places) => places.last().cloned(),
                Err(_) => None,
            };
            let Some(place) = place else {
                return QuestionOutcome::Lost("no client waits for the task");
            };
            let has_left = |places: &Vec<ResultWaiter>| {
                !places.iter().any(|other| other.inbound == place.inbound)
            };
            tokio::select! {
                heard = place.sink.ask(method, params, ANSWER_TIMEOUT) => return heard,
                _ = places.wait_for(has_left) => {}
            }
        }
    }
}
