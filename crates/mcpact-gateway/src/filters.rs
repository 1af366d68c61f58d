//! Filters: external programs that inspect requests and results, and may change or deny them.
//!
//! A filter is one process that gets one line of JSON and answers with one. It is started on first use, restarted after a
//! crash, and handles one message at a time.

mod message;
mod process;

use std::sync::Arc;

use bytestring::ByteString;
use mcpact::server::backend::BackendRequest;
use mcpact_config::{Approvals, FilterConfig, Stage};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_transport::stdio::child::Guard;
use mcpact_wire::raw::ObjectWriter;

use crate::error::wire_error;
use crate::event_history::EventHistory;
use crate::filters::message::Verdict;
use crate::filters::process::Filter;
use crate::meaning;
use crate::metrics::Metrics;
use crate::reason::{LogEvent, Reason};

/// A filter that cannot be used.
#[derive(Clone, Debug)]
pub struct FilterReport {
    /// Name in the config.
    pub name: String,
    /// Messages are denied while it cannot be used.
    pub is_required: bool,
    /// Cause.
    pub failure: String,
}

/// All filters, in the order in which they run.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    all: Arc<[Filter]>,
    metrics: Arc<Metrics>,
}

impl Filters {
    /// Creates the filters without starting them.
    pub(crate) fn new(
        configs: &[FilterConfig],
        guard: Option<&Guard>,
        approvals: Option<&Approvals>,
        event_history: &EventHistory,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let filters = configs
            .iter()
            .map(|config| Filter::new(config.clone(), guard, approvals, event_history));
        Self {
            all: filters.collect(),
            metrics: Arc::clone(metrics),
        }
    }

    /// Returns the configs of the filters.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &FilterConfig> {
        self.all.iter().map(|filter| &filter.config)
    }

    /// Returns the filters that are not approved, with advice.
    pub(crate) async fn unapproved(&self) -> Vec<FilterReport> {
        let mut found = Vec::new();
        for filter in self.all.iter() {
            if let Some(failure) = filter.unapproved().await {
                found.push(FilterReport {
                    name: filter.config.name.to_string(),
                    is_required: filter.config.required,
                    failure,
                });
            }
        }
        found
    }

    /// Returns the metrics that refusals are counted in.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns true if a filter inspects these requests.
    pub(crate) fn wants_request(&self, method: &str) -> bool {
        self.configs()
            .any(|config| config.wants(Stage::Request, method))
    }

    /// Returns the method name of a request if a filter wants its result.
    pub(crate) fn result_method(&self, request: &BackendRequest) -> Option<String> {
        let mut configs = self.configs();
        let is_wanted = configs.any(|config| config.wants(Stage::Response, &request.name));
        is_wanted.then(|| request.name.to_string())
    }

    /// Runs the filters on a request.
    pub(crate) async fn filter_request(
        &self,
        mut request: BackendRequest,
    ) -> Result<BackendRequest, WireError> {
        let client = request.pact.revision();
        let params = &request.params;
        let changed = self
            .run(Stage::Request, &request.name, params, client)
            .await?;
        if let Some(params) = changed {
            request.params = params.into();
        }
        Ok(request)
    }

    /// Runs the filters on a result.
    pub(crate) async fn filter_result(
        &self,
        method: &str,
        client: Revision,
        result: ByteString,
    ) -> Result<ByteString, WireError> {
        let changed = self.run(Stage::Response, method, &result, client).await?;
        Ok(changed.map_or(result, Into::into))
    }

    /// Runs the filters on a body. Returns the new body, or none if it is unchanged.
    async fn run(
        &self,
        stage: Stage,
        method: &str,
        body: &str,
        client: Revision,
    ) -> Result<Option<String>, WireError> {
        let mut changed: Option<String> = None;
        for filter in self.all.iter() {
            let config = &filter.config;
            if !config.wants(stage, method) {
                continue;
            }
            let current = changed.as_deref().unwrap_or(body);
            let verdict = filter.ask(stage, method, current).await;
            let verdict = verdict.and_then(|verdict| unambiguous(verdict, stage, method));
            let (reason, mut why) = match verdict {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Replace(body)) => {
                    changed = Some(body);
                    continue;
                }
                Ok(Verdict::Deny(why)) => {
                    let why = format!("denied by filter `{}`: {why}", config.name);
                    (Reason::FilterDenied, why)
                }
                Err(why) => {
                    let (filter, stage) = (config.name.as_str(), stage.as_str());
                    let event = LogEvent::FilterFailure.as_str();
                    tracing::warn!(event, filter, stage, method, why, "filter failed");
                    if !config.required {
                        continue;
                    }
                    let why = format!("filter `{filter}` failed: {why}");
                    (Reason::FilterFailed, why)
                }
            };
            if stage == Stage::Response {
                why += "; only the result is withheld: the call may have had its effect";
            }
            self.metrics.filtered(Method::parse(method), reason);
            let data = ObjectWriter::new().text("reason", reason.as_str()).finish();
            let code = ErrorCode::InvalidRequest.code();
            return Err(wire_error(code, why, Some(data), client));
        }
        Ok(changed)
    }
}

/// Refuses a body that the next filter and the receiver could understand differently.
fn unambiguous(verdict: Verdict, stage: Stage, method: &str) -> Result<Verdict, String> {
    if let Verdict::Replace(body) = &verdict {
        let checked = meaning::check(stage, Method::parse(method), body);
        checked.map_err(|found| format!("`replace` is ambiguous: {found}"))?;
    }
    Ok(verdict)
}
