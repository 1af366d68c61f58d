//! The process of a filter.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::date;
use mcpact_config::{Approval, FilterConfig, ServerName, Stage};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{Child, ChildCommand, Process, Scribe};
use mcpact_wire::frame::ndjson::Line;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::line::{Verdict, answer, question};
use crate::approval::check;
use crate::chronicle::{Chronicle, EntryKind};

/// How long a filter that failed is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// One filter.
#[derive(Debug)]
pub(super) struct Filter {
    config: FilterConfig,
    command: ChildCommand,
    /// What must be approved before it is started.
    approval: Option<Approval>,
    /// Whoever holds it asks.
    desk: Mutex<Desk>,
}

/// Where a filter is asked.
#[derive(Debug, Default)]
struct Desk {
    running: Option<Running>,
    /// The number of the last question.
    last: u64,
    /// When it failed last, and why.
    failure: Option<(Instant, String)>,
}

/// A filter that runs; it ends when this is dropped.
#[derive(Debug)]
struct Running {
    link: Link,
    _process: Process,
}

/// Takes the lines of a filter's log.
pub(super) fn scribe(name: &ServerName, chronicle: &Chronicle) -> Scribe {
    let (name, journal) = (name.to_string(), chronicle.own_journal());
    Scribe(Arc::new(move |line| {
        let text = format!("filter `{name}`: {line}");
        journal.write(date(), None, EntryKind::Log, &text);
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
            desk: Mutex::default(),
        }
    }

    pub(super) const fn config(&self) -> &FilterConfig {
        &self.config
    }

    /// Why it may not be started, if it may not.
    pub(super) async fn unapproved(&self) -> Option<String> {
        let trouble = check(self.approval.as_ref()?).await.err()?;
        Some(match trouble.advice() {
            Some(advice) => format!("{trouble}; {advice}"),
            None => trouble.to_string(),
        })
    }

    /// Asks it; what went wrong if it does not say anything that counts.
    pub(super) async fn ask(
        &self,
        stage: Stage,
        method: &str,
        body: &str,
    ) -> Result<Verdict, String> {
        let patience = self.config.patience;
        let until = Instant::now() + patience;
        let Ok(mut desk) = timeout_at(until, self.desk.lock()).await else {
            return Err(format!("others asked it for longer than {patience:?}"));
        };
        if let Some((when, why)) = &desk.failure
            && when.elapsed() < PAUSE
        {
            return Err(format!("it failed a moment ago: {why}"));
        }
        if desk.running.is_none()
            && let Some(why) = self.unapproved().await
        {
            return Err(why);
        }
        let asking = desk.ask(&self.command, stage, method, body);
        let asked = timeout_at(until, asking).await;
        let asked = asked.unwrap_or_else(|_| Err(format!("it took longer than {patience:?}")));
        match &asked {
            Ok(_) => desk.failure = None,
            Err(why) => {
                desk.running = None;
                desk.failure = Some((Instant::now(), why.clone()));
            }
        }
        asked
    }
}

impl Desk {
    async fn ask(
        &mut self,
        command: &ChildCommand,
        stage: Stage,
        method: &str,
        body: &str,
    ) -> Result<Verdict, String> {
        self.last += 1;
        let number = self.last;
        let running = match &mut self.running {
            Some(running) => running,
            none => {
                let Child { link, process } = command.spawn().map_err(|error| told(&error))?;
                none.insert(Running {
                    link,
                    _process: process,
                })
            }
        };
        let Link { source, sink } = &mut running.link;
        sink.push(&question(number, stage, method, body));
        sink.flush().await.map_err(|error| told(&error))?;
        loop {
            match source.next_line() {
                Some(Line::Json(bytes)) => {
                    let line = std::str::from_utf8(bytes).unwrap_or_default();
                    if let Some(verdict) = answer(number, line)? {
                        return Ok(verdict);
                    }
                }
                Some(Line::Noise(_) | Line::TooLong { .. }) => {
                    return Err(String::from("it wrote something that is no answer"));
                }
                None => {
                    if !source.fill().await.map_err(|error| told(&error))? {
                        return Err(String::from("it ended"));
                    }
                }
            }
        }
    }
}

fn told(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
