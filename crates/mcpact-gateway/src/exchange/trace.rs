//! Metrics, span and log entries of a request.

use crate::error::ServeError;
use mcpact::log::{REQUEST, event};
use mcpact::server::backend::BackendRequest;
use mcpact_wire::model::trace::TraceContext;
use tracing::Span;

use crate::connection::slot::ServerShared;
use crate::metrics::{CallTimer, Outcome};

/// Trace of a request, from the choice of the server to the response.
#[derive(Debug)]
pub(crate) struct ExchangeTrace<'a> {
    shared: &'a ServerShared,
    timer: CallTimer<'a>,
    method: &'static str,
    trace: Option<Box<TraceContext>>,
}

impl<'a> ExchangeTrace<'a> {
    pub(crate) fn begin(shared: &'a ServerShared, job: &BackendRequest) -> Self {
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

    /// Returns the span for all log entries of the request.
    pub(crate) fn span(&self) -> Span {
        tracing::info_span!(
            target: REQUEST,
            "request",
            server = &*self.shared.name,
            method = self.method,
            trace_id = self.trace_id(),
        )
    }

    /// Discards the measurement of an attempt that is retried.
    pub(crate) fn discard(self) {
        self.timer.discard();
    }

    /// Counts and logs the outcome. Connection failures were logged when they occurred.
    pub(crate) fn end(self, served: Result<(), &ServeError>) {
        let outcome = served.map_or_else(ServeError::outcome, |()| Outcome::Ok);
        let duration = self.timer.finish(outcome);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let server = &*self.shared.name;
        let method = self.method;
        let trace_id = self.trace.as_deref().map(TraceContext::trace_id);
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
