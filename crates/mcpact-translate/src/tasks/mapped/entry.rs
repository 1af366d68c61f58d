//! One mapped task.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::id::Id;
use mcpact_wire::model::error;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{TaskOrigin, TaskView};
use crate::input::{Outcome, ServerAnswer};
use crate::shape::members::{Members, or_same};
use crate::shape::meta::{sign, strip};
use crate::shape::{ShapeError, adapt_client_result, error_to_modern, result_to_modern};
use crate::tasks::{CORE, Status};

/// Members of a task that have another name in the extension.
const RENAMED: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) owner: Box<str>,
    pub(super) account: Box<str>,
    client: Revision,
    pub(super) session: u64,
    pub(super) upstream: Box<str>,
    pub(super) expires: Moment,
    pub(super) pending: BTreeMap<Box<str>, Pending>,
    /// Number of questions so far; keys are never used twice.
    pub(super) asked: usize,
    /// The task as the extension writes it, but for the id and what depends on the status.
    form: String,
    status: Status,
    outcome: Option<Outcome>,
    is_result_open: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) id: Id,
    method: Method,
    question: String,
}

impl Task {
    pub(super) fn new(
        origin: TaskOrigin<'_>,
        raw: &str,
        now: Moment,
        longest: Duration,
    ) -> Result<Self, ShapeError> {
        let task = Object::parse(raw)?;
        let ttl = task.get("ttl").and_then(|raw| raw.parse().ok());
        let ttl = ttl.map_or(longest, Duration::from_millis).min(longest);
        let upstream = task.get_str("taskId").unwrap_or_default();
        Ok(Self {
            owner: Box::from(origin.owner.name),
            account: Box::from(origin.owner.account),
            client: origin.client,
            session: origin.session,
            upstream: Box::from(upstream.as_ref()),
            expires: now.after(ttl),
            pending: BTreeMap::new(),
            asked: 0,
            form: renamed(raw, origin.client)?,
            status: Status::Working,
            outcome: None,
            is_result_open: false,
        })
    }

    /// The result of the call: the task, flat. It begins as working, as the server must say too.
    pub(super) fn encode_created(
        &self,
        id: &str,
        meta: Option<&str>,
        server_info: Option<&str>,
    ) -> Result<String, ShapeError> {
        let mut task = Members::of_body(&self.form)?;
        task.set_str("resultType", "task");
        task.set_str("taskId", id);
        task.set_str("status", Status::Working.as_str());
        if let Some(meta) = meta {
            task.set("_meta", String::from(meta));
        }
        strip(&mut task, self.client)?;
        if let Some(server_info) = server_info {
            sign(&mut task, server_info)?;
        }
        Ok(or_same(task.finish(), &self.form).into_owned())
    }

    /// Takes over what the server says of its task.
    pub(super) fn status(&mut self, id: &str, raw: &str) -> Result<TaskView, ShapeError> {
        if let Some(detailed) = self.over(id) {
            return Ok(TaskView::Now(detailed));
        }
        let said = Object::parse(raw)?.get_str("status");
        self.form = renamed(raw, self.client)?;
        self.status = said
            .and_then(|word| Status::parse(&word))
            .unwrap_or(Status::Working);
        Ok(match self.status {
            Status::Working | Status::Cancelled => TaskView::Now(self.detailed(id)),
            Status::InputRequired if self.is_result_open => TaskView::Now(self.detailed(id)),
            Status::InputRequired => {
                self.is_result_open = true;
                TaskView::NowAndOpen(self.detailed(id))
            }
            Status::Completed | Status::Failed => {
                self.is_result_open = true;
                TaskView::AfterResult
            }
        })
    }

    /// The server gave the result of the task, or the error that it ended with.
    pub(super) fn end(&mut self, outcome: &Outcome, server_info: Option<&str>) {
        let adapted = match outcome {
            Outcome::Result(raw) => {
                result_to_modern(Method::ToolsCall, raw, self.client, server_info)
                    .map(|raw| Outcome::Result(raw.into_owned()))
            }
            Outcome::Error(raw) => {
                error_to_modern(raw, self.client).map(|raw| Outcome::Error(raw.into_owned()))
            }
        };
        let unreadable = |error: ShapeError| {
            let message = format!("the result of the task cannot be read: {error}");
            let code = ErrorCode::InternalError.code();
            Outcome::Error(error::encode(code, &message, None))
        };
        self.pending.clear();
        self.is_result_open = false;
        self.outcome = Some(adapted.unwrap_or_else(unreadable));
    }

    /// The task as it stands for good, if it is over.
    pub(super) fn over(&self, id: &str) -> Option<String> {
        let is_over = self.outcome.is_some() || self.status == Status::Cancelled;
        is_over.then(|| self.detailed(id))
    }

    /// The task with what belongs to its status.
    ///
    /// A tool that reports an error has completed here; only an error of the protocol is a failure.
    /// Until the server's questions are known, the client can only wait.
    fn detailed(&self, id: &str) -> String {
        let Ok(mut task) = Members::of_body(&self.form) else {
            return String::from(&*self.form);
        };
        let status = match (&self.outcome, self.status) {
            (_, Status::Cancelled) => Status::Cancelled,
            (Some(Outcome::Result(raw)), _) => {
                task.set("result", raw.clone());
                Status::Completed
            }
            (Some(Outcome::Error(raw)), _) => {
                task.set("error", raw.clone());
                Status::Failed
            }
            (None, _) if !self.pending.is_empty() => {
                task.set("inputRequests", self.questions());
                Status::InputRequired
            }
            (None, _) => Status::Working,
        };
        task.set_str("resultType", "complete");
        task.set_str("taskId", id);
        task.set_str("status", status.as_str());
        or_same(task.finish(), &self.form).into_owned()
    }

    fn questions(&self) -> String {
        let pending = self.pending.iter();
        let questions = pending.map(|(key, pending)| (&**key, &*pending.question));
        ObjectWriter::new().members(questions).finish()
    }

    pub(super) fn ask(&mut self, id: Id, method: Method, question: String) -> String {
        self.asked += 1;
        let key = format!("question-{}", self.asked);
        let pending = Pending {
            id,
            method,
            question,
        };
        self.pending.insert(Box::from(key.as_str()), pending);
        key
    }

    /// Takes the answers to what is asked.
    pub(super) fn answer(&mut self, responses: &Object<'_>) -> Vec<ServerAnswer> {
        let mut answers = Vec::new();
        for (key, raw) in responses.iter() {
            let Some(pending) = self.pending.remove(key) else {
                continue;
            };
            let outcome = match adapt_client_result(pending.method, raw, CORE) {
                Ok(answer) => Outcome::Result(answer.into_owned()),
                Err(fault) => {
                    let message = format!("the client's answer does not fit: {fault}");
                    let code = ErrorCode::InternalError.code();
                    Outcome::Error(error::encode(code, &message, None))
                }
            };
            answers.push(ServerAnswer {
                id: pending.id,
                outcome,
            });
        }
        answers
    }
}

/// A task of 2025-11-25 in the words of the extension.
fn renamed(raw: &str, client: Revision) -> Result<String, ShapeError> {
    let mut task = Members::of_body(raw)?;
    for (old, new) in RENAMED {
        if let Some(value) = task.get(old).map(String::from) {
            task.set(new, value);
            task.remove(old);
        }
    }
    if task.get("ttlMs").is_none() {
        task.set("ttlMs", String::from("null"));
    }
    strip(&mut task, client)?;
    Ok(or_same(task.finish(), raw).into_owned())
}
