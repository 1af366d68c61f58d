//! A request on its way, as metrics and the log see it.

use crate::error::ServeError;
use mcpact::log::{REQUEST, event};
use mcpact::server::backend::BackendRequest;
use mcpact_wire::model::trace::TraceContext;
use tracing::Span;

use super::port::Shared;
use crate::metrics::{CallTimer, Outcome};

/// From the moment when it is clear which server a request is for, until its answer.
#[derive(Debug)]
pub(super) struct Journey<'a> {
    shared: &'a Shared,
    timer: CallTimer<'a>,
    method: &'static str,
    trace: Option<Box<TraceContext>>,
}

impl<'a> Journey<'a> {
    pub(super) fn begin(shared: &'a Shared, job: &BackendRequest) -> Self {
        Self {
            shared,
            timer: shared.metrics.start_call(job.method),
            method: job.method.map_or("other", mcpact_spec::Method::as_str),
            trace: job.trace.clone(),
        }
    }

    fn trace_id(&self) -> Option<&str> {
        self.trace.as_deref().map(TraceContext::trace_id)
    }

    /// Whatever is told meanwhile belongs to it.
    pub(super) fn span(&self) -> Span {
        tracing::info_span!(
            target: REQUEST,
            "request",
            server = &*self.shared.name,
            method = self.method,
            trace_id = self.trace_id(),
        )
    }

    /// It goes to another server, and is counted there.
    pub(super) fn goes_on(mut self) {
        self.timer.discard();
    }

    /// Counts how it ended. What could not be reached was told when it was tried.
    pub(super) fn end(mut self, served: Result<(), &ServeError>) {
        let outcome = Outcome::of(served);
        self.timer.set_outcome(outcome);
        let server = &*self.shared.name;
        let method = self.method;
        let trace_id = self.trace_id();
        let duration_ms = u64::try_from(self.timer.elapsed().as_millis()).unwrap_or(u64::MAX);
        match (outcome, served) {
            (Outcome::Lost | Outcome::Timeout, Err(error)) => {
                let error = &*error.message();
                tracing::warn!(
                    target: REQUEST,
                    event = event::ROUTE_ERROR,
                    server,
                    method,
                    outcome = outcome.as_str(),
                    duration_ms,
                    trace_id,
                    error,
                    "a request was lost"
                );
            }
            _ => tracing::debug!(
                target: REQUEST,
                server,
                method,
                outcome = outcome.as_str(),
                duration_ms,
                trace_id,
                "a request was served"
            ),
        }
    }
}
