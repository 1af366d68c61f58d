//! Process of one filter.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::date;
use mcpact_config::{Approval, Approvals, FilterConfig, Launch, Stage};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{Child, ChildCommand, Guard, StartCheck, StderrSink};
use mcpact_wire::frame::ndjson::Line;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::message::{Verdict, encode, parse};
use crate::approval::{check, check_started};
use crate::event_history::{EventHistory, LogEntryKind};
use mcpact::error::with_causes;

/// Time after a failure in which the filter is not restarted.
const BACKOFF: Duration = Duration::from_secs(1);

/// One filter.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) config: FilterConfig,
    command: ChildCommand,
    /// Approval that is needed before it is started.
    approval: Option<Approval>,
    /// Locked for one request at a time.
    state: Mutex<FilterState>,
}

/// State of a filter.
#[derive(Debug, Default)]
struct FilterState {
    /// Process while it runs; dropping it stops the process.
    process: Option<Child>,
    last_id: u64,
    /// Time and cause of the last failure.
    failure: Option<(Instant, String)>,
}

impl Filter {
    pub(super) fn new(
        config: FilterConfig,
        guard: Option<&Guard>,
        approvals: Option<&Approvals>,
        event_history: &EventHistory,
    ) -> Self {
        let mut launch = config.command.clone();
        let approval = approvals.map(|approvals| {
            launch = launch.found();
            Approval {
                launch: Launch::Command(launch.clone()),
                approvals: approvals.clone(),
            }
        });
        let mut command = launch.child(&config.name);
        command.guard = guard.cloned();
        let (name, log) = (config.name.to_string(), event_history.gateway_log());
        command.stderr_sink = Some(StderrSink(Arc::new(move |line| {
            let text = format!("filter `{name}`: {line}");
            log.write(date(), None, LogEntryKind::Log, &text);
        })));
        Self {
            config,
            command,
            approval,
            state: Mutex::default(),
        }
    }

    /// Returns the reason why it is not approved, with advice.
    pub(super) async fn unapproved(&self) -> Option<String> {
        self.start_check().await.err()
    }

    /// Returns the check of a start if the filter is approved.
    async fn start_check(&self) -> Result<Option<StartCheck>, String> {
        let Some(approval) = &self.approval else {
            return Ok(None);
        };
        check(approval).await.map_err(|error| match error.advice() {
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
        let mut command = Cow::Borrowed(&self.command);
        if state.process.is_none()
            && let Some(start_check) = self.start_check().await?
        {
            command.to_mut().start_check = Some(start_check);
        }
        let answer = state.ask(&command, stage, method, body);
        let verdict = timeout_at(deadline, answer).await;
        let mut verdict = verdict.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}")));
        // A filter that has answered has read its script.
        if let Some(check) = command.start_check.clone()
            && let Err(error) = check_started(Some(check), &self.config.name.to_string()).await
        {
            verdict = Err(with_causes(&error));
        }
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
            none => none.insert(command.spawn().map_err(|error| with_causes(&error))?),
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
