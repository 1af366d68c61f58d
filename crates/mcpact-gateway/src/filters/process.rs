//! Process of one filter.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::date;
use mcpact_config::{Approval, FilterConfig, ServerName, Stage};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{Child, ChildCommand, Process, StderrSink};
use mcpact_wire::frame::ndjson::Line;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::message::{Verdict, encode, parse};
use crate::approval::check;
use crate::event_history::{EventHistory, LogEntryKind};
use mcpact::error::with_causes;

/// Time after a failure in which the filter is not restarted.
const BACKOFF: Duration = Duration::from_secs(1);

/// One filter.
#[derive(Debug)]
pub(super) struct Filter {
    config: FilterConfig,
    command: ChildCommand,
    /// Approval that is needed before it is started.
    approval: Option<Approval>,
    /// Locked for one request at a time.
    state: Mutex<FilterState>,
}

/// State of a filter.
#[derive(Debug, Default)]
struct FilterState {
    process: Option<FilterProcess>,
    last_id: u64,
    /// Time and cause of the last failure.
    failure: Option<(Instant, String)>,
}

/// A running filter; dropping it stops the process.
#[derive(Debug)]
struct FilterProcess {
    link: Link,
    _process: Process,
}

/// Takes the lines of a filter's log.
pub(super) fn stderr_sink(name: &ServerName, event_history: &EventHistory) -> StderrSink {
    let (name, server_log) = (name.to_string(), event_history.gateway_log());
    StderrSink(Arc::new(move |line| {
        let text = format!("filter `{name}`: {line}");
        server_log.write(date(), None, LogEntryKind::Log, &text);
    }))
}

impl Filter {
    pub(super) fn new(
        config: FilterConfig,
        command: ChildCommand,
        approval: Option<Approval>,
    ) -> Self {
        Self {
            config,
            command,
            approval,
            state: Mutex::default(),
        }
    }

    pub(super) const fn config(&self) -> &FilterConfig {
        &self.config
    }

    /// Returns the reason why it is not approved, with advice.
    pub(super) async fn unapproved(&self) -> Option<String> {
        let error = check(self.approval.as_ref()?).await.err()?;
        Some(match error.advice() {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        })
    }

    /// Sends a request to the filter, starting it if needed.
    pub(super) async fn ask(
        &self,
        stage: Stage,
        method: &str,
        body: &str,
    ) -> Result<Verdict, String> {
        let timeout = self.config.timeout;
        let deadline = Instant::now() + timeout;
        let Ok(mut state) = timeout_at(deadline, self.state.lock()).await else {
            return Err(format!("it was busy for {timeout:?}"));
        };
        if let Some((when, why)) = &state.failure
            && when.elapsed() < BACKOFF
        {
            return Err(format!("it failed recently: {why}"));
        }
        if state.process.is_none()
            && let Some(why) = self.unapproved().await
        {
            return Err(why);
        }
        let answer = state.ask(&self.command, stage, method, body);
        let verdict = timeout_at(deadline, answer).await;
        let verdict = verdict.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}")));
        match &verdict {
            Ok(_) => state.failure = None,
            Err(why) => {
                state.process = None;
                state.failure = Some((Instant::now(), why.clone()));
            }
        }
        verdict
    }
}

impl FilterState {
    async fn ask(
        &mut self,
        command: &ChildCommand,
        stage: Stage,
        method: &str,
        body: &str,
    ) -> Result<Verdict, String> {
        self.last_id += 1;
        let id = self.last_id;
        let process = match &mut self.process {
            Some(process) => process,
            none => {
                let Child { link, process } =
                    command.spawn().map_err(|error| with_causes(&error))?;
                none.insert(FilterProcess {
                    link,
                    _process: process,
                })
            }
        };
        let Link { source, sink } = &mut process.link;
        sink.push(&encode(id, stage, method, body));
        sink.flush().await.map_err(|error| with_causes(&error))?;
        loop {
            match source.next_line() {
                Some(Line::Json(bytes)) => {
                    let line = std::str::from_utf8(bytes).unwrap_or_default();
                    if let Some(verdict) = parse(id, line)? {
                        return Ok(verdict);
                    }
                }
                Some(Line::Noise(_) | Line::TooLong { .. }) => {
                    return Err(String::from("its output is not a valid answer"));
                }
                None => {
                    if !source.fill().await.map_err(|error| with_causes(&error))? {
                        return Err(String::from("the process exited"));
                    }
                }
            }
        }
    }
}
