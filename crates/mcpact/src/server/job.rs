//! A request on its way to whoever serves it.

use std::sync::Arc;

use http::HeaderName;
use mcpact_engine::pact::Pact;
use mcpact_spec::tables::meta::{TRACE_PARENT, TRACE_STATE};
use mcpact_spec::{LogLevel, Method};
use mcpact_transport::http::server::Arrival;
use mcpact_wire::envelope::Meta;
use mcpact_wire::id::Id;
use mcpact_wire::model::trace::TraceContext;
use mcpact_wire::raw::Object;

use super::raw_params::RawParams;

const PARENT_HEADER: HeaderName = HeaderName::from_static(TRACE_PARENT);
const STATE_HEADER: HeaderName = HeaderName::from_static(TRACE_STATE);

/// A request that was admitted and is to be served.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: Id,
    /// Its method, if any revision defines it.
    pub method: Option<Method>,
    /// The name of its method as it came.
    pub name: String,
    /// Its raw parameters.
    pub params: RawParams,
    /// The raw token under which the client wants to hear of progress.
    pub progress_token: Option<String>,
    /// Which log messages it wants, where the request itself says so.
    pub log_level: Option<LogLevel>,
    /// What holds for it.
    pub pact: Arc<Pact>,
    /// What can be said to the client before the answer.
    pub reach: Reach,
    /// The place in a trace that its `_meta` names.
    pub trace: Option<Box<TraceContext>>,
}

impl Job {
    /// The place in a trace that only the headers name stands in `_meta` from here on, where everybody
    /// looks for it.
    pub(super) fn traced(mut self, arrival: &Arrival) -> Self {
        let Some(parent) = arrival.header(PARENT_HEADER) else {
            return self;
        };
        let params: &str = &self.params;
        // What the client wrote into the message itself goes before.
        if let Some(trace) = TraceContext::new(parent, arrival.header(STATE_HEADER))
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

/// What can be said to a client that waits for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Messages and questions, and then the answer.
    #[default]
    Stream,
    /// The answer and nothing else: its `Accept` takes no stream.
    Answer,
}
