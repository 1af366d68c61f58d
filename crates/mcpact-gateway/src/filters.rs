//! Programs that look at every request and every result, and may change or refuse it.
//!
//! A filter is one process that is asked by one line of JSON and answers with one. It is started when it is
//! first needed and again when it has died, and is asked one thing at a time.

mod line;
mod run;

use std::sync::Arc;

use bytestring::ByteString;
use mcpact::server::backend::Job;
use mcpact_config::{Approval, Approvals, FilterConfig, Launch, Stage};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_transport::stdio::child::Guard;
use mcpact_wire::raw::ObjectWriter;

use self::line::Verdict;
use self::run::Filter;
use crate::bridge::wire_error;
use crate::chronicle::Chronicle;
use crate::figures::Figures;
use crate::stable::{LogEvent, Reason};

/// A filter that cannot be asked, as people want to know it.
#[derive(Clone, Debug)]
pub struct FilterReport {
    /// Its name in the config.
    pub name: String,
    /// Whether what it cannot look at is refused.
    pub is_required: bool,
    /// Why it cannot be asked.
    pub failure: String,
}

/// All filters, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    all: Arc<[Filter]>,
    figures: Arc<Figures>,
}

impl Filters {
    /// These filters; nothing is started yet.
    pub(crate) fn new(
        configs: &[FilterConfig],
        guard: Option<&Guard>,
        approvals: Option<&Approvals>,
        chronicle: &Chronicle,
        figures: &Arc<Figures>,
    ) -> Self {
        let filters = configs.iter().map(|config| {
            let mut command = config.command.clone();
            let approval = approvals.map(|approvals| {
                command = command.found();
                Approval {
                    launch: Launch::Command(command.clone()),
                    approvals: approvals.clone(),
                }
            });
            let mut child = command.child(&config.name);
            child.guard = guard.cloned();
            child.scribe = Some(run::scribe(&config.name, chronicle));
            Filter::new(config.clone(), child, approval)
        });
        Self {
            all: filters.collect(),
            figures: Arc::clone(figures),
        }
    }

    /// What they were made of.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &FilterConfig> {
        self.all.iter().map(Filter::config)
    }

    /// Those that are not started because nobody has approved them, and what to do.
    pub(crate) async fn unapproved(&self) -> Vec<FilterReport> {
        let mut found = Vec::new();
        for filter in self.all.iter() {
            if let Some(failure) = filter.unapproved().await {
                found.push(FilterReport {
                    name: filter.config().name.to_string(),
                    is_required: filter.config().required,
                    failure,
                });
            }
        }
        found
    }

    /// What the method of a request is called, if its result is to be looked at.
    pub(crate) fn looked_at(&self, job: &Job) -> Option<String> {
        let mut configs = self.configs();
        let is_wanted = configs.any(|config| config.wants(Stage::Response, &job.name));
        is_wanted.then(|| job.name.to_string())
    }

    /// A request as the filters let it pass.
    pub(crate) async fn admit(&self, mut job: Job) -> Result<Job, WireError> {
        if self.all.is_empty() {
            return Ok(job);
        }
        let client = job.pact.revision();
        let params = &job.params;
        let passed = self.pass(Stage::Request, &job.name, params, client).await?;
        if let Some(params) = passed {
            job.params = params.into();
        }
        Ok(job)
    }

    /// A result as the filters let it pass, if it is to be looked at.
    pub(crate) async fn release(
        &self,
        method: Option<&str>,
        client: Revision,
        result: ByteString,
    ) -> Result<ByteString, WireError> {
        let Some(method) = method else {
            return Ok(result);
        };
        let passed = self.pass(Stage::Response, method, &result, client).await?;
        Ok(passed.map_or(result, Into::into))
    }

    /// What has become of it; none if it is as it was.
    async fn pass(
        &self,
        stage: Stage,
        method: &str,
        body: &str,
        client: Revision,
    ) -> Result<Option<String>, WireError> {
        let mut changed: Option<String> = None;
        for filter in self.all.iter() {
            let config = filter.config();
            if !config.wants(stage, method) {
                continue;
            }
            let shown = changed.as_deref().unwrap_or(body);
            match filter.ask(stage, method, shown).await {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::Replace(body)) => changed = Some(body),
                Ok(Verdict::Deny(why)) => {
                    let so = so_far(stage);
                    let why = format!("filter `{}` refused this: {why}{so}", config.name);
                    return Err(self.refused(method, Reason::FilterDenied, why, client));
                }
                Err(why) => {
                    let so = so_far(stage);
                    let (filter, stage) = (config.name.as_str(), stage.as_str());
                    tracing::warn!(
                        event = LogEvent::FilterFailure.as_str(),
                        filter,
                        stage,
                        method,
                        why,
                        "filter failed"
                    );
                    if config.required {
                        let why = format!("filter `{filter}` cannot be asked: {why}{so}");
                        return Err(self.refused(method, Reason::FilterFailed, why, client));
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Counts a request that ends here; what its client is told.
    fn refused(&self, method: &str, reason: Reason, why: String, client: Revision) -> WireError {
        self.figures.filtered(Method::parse(method), reason);
        let data = ObjectWriter::new().text("reason", reason.as_str()).finish();
        let code = ErrorCode::InvalidRequest.code();
        wire_error(code, why, Some(data), client)
    }
}

/// What clients have to know of a request that ends at this stage, besides why it does.
const fn so_far(stage: Stage) -> &'static str {
    match stage {
        Stage::Request => "",
        Stage::Response => {
            "; the server has answered, and only its result is withheld: what was asked for may have been done"
        }
    }
}
