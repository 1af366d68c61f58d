//! Requests for backends.

use std::sync::Arc;

use http::HeaderName;
use mcpact_engine::pact::Pact;
use mcpact_spec::tables::meta::{TRACE_PARENT, TRACE_STATE};
use mcpact_spec::{LogLevel, Method};
use mcpact_transport::http::server::HttpRequest;
use mcpact_wire::envelope::Meta;
use mcpact_wire::id::Id;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::Object;

use super::raw_params::RawParams;

const PARENT_HEADER: HeaderName = HeaderName::from_static(TRACE_PARENT);
const STATE_HEADER: HeaderName = HeaderName::from_static(TRACE_STATE);

/// Admitted request.
#[derive(Clone, Debug)]
pub struct BackendRequest {
    /// JSON-RPC id.
    pub id: Id,
    /// Method, if any revision defines it.
    pub method: Option<Method>,
    /// Method name as received.
    pub name: String,
    /// Raw parameters.
    pub params: RawParams,
    /// Raw progress token.
    pub progress_token: Option<String>,
    /// Log level requested by this request.
    pub log_level: Option<LogLevel>,
    /// Negotiated pact.
    pub pact: Arc<Pact>,
    /// Kind of response that the client accepts.
    pub response_mode: ResponseMode,
    /// Trace context of its `_meta`.
    pub trace: Option<Box<TraceContext>>,
}

impl BackendRequest {
    /// Copies a trace context of the headers into `_meta`, unless `_meta` has one.
    pub(super) fn traced(mut self, http_request: &HttpRequest) -> Self {
        let Some(parent) = http_request.header(PARENT_HEADER) else {
            return self;
        };
        let params: &str = &self.params;
        // The message takes precedence over the headers.
        if let Some(trace) = TraceContext::new(parent, http_request.header(STATE_HEADER))
            && !names_a_trace(params)
            && let Ok(params) = trace.apply(params)
        {
            self.params = params.into();
            self.trace = Some(Box::new(trace));
        }
        self
    }
}

pub(super) fn trace_of(meta: &Meta<'_>) -> Option<Box<TraceContext>> {
    meta.trace_parent?;
    TraceContext::of_meta(meta.raw?).map(Box::new)
}

fn names_a_trace(params: &str) -> bool {
    let params = Object::parse(params).unwrap_or_default();
    let meta = Object::parse(params.get("_meta").unwrap_or("{}")).unwrap_or_default();
    meta.get(TRACE_PARENT).is_some()
}

/// Kind of response that a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseMode {
    /// Messages and questions, then the response.
    #[default]
    Stream,
    /// Only the response: its `Accept` header excludes streams.
    Single,
}
