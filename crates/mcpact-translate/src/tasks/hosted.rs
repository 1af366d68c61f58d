//! Tasks of 2025-11-25 that are hosted here, in front of a modern server.

mod entry;
mod questions;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{CORE, Status, TaskOwner};
use crate::input::{Outcome, Question, failed_tool};
use crate::shape::{error_to_legacy, result_to_legacy};
use crate::wire_error::wire_error;
use entry::Task;

/// Limits of hosted tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Tasks in all.
    pub tasks: usize,
    /// Tasks of one account.
    pub per_owner: usize,
    /// Questions that one task may ask, and requests that may wait for its result.
    pub per_task: usize,
    /// Longest and default time for which a task is kept.
    pub longest: Duration,
    /// Default polling interval.
    pub poll: Duration,
    /// Tasks on one page of a list.
    pub page: usize,
}

/// The time: to count with, and to write down in ISO 8601.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp<'a> {
    /// To count with.
    pub moment: Moment,
    /// To write down.
    pub stamp: &'a str,
}

/// Action to perform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the server for its task, after this pause, and report its [answer](HostedTasks::polled).
    Poll {
        /// Our task.
        task: Box<str>,
        /// The server's.
        upstream: Box<str>,
        /// Pause before it.
        after: Duration,
    },
    /// Ask the client, and report its [answer](HostedTasks::answered).
    Ask {
        /// Our task.
        task: Box<str>,
        /// The question in the form of 2025-11-25.
        question: Question,
    },
    /// Send the server `tasks/update` with these parameters.
    Update {
        /// The raw parameters.
        params: String,
    },
    /// Stop: cancel the server's task if there is one, or else the call.
    Cancel {
        /// Our task.
        task: Box<str>,
        /// The server's.
        upstream: Option<Box<str>>,
    },
    /// Answer a request for the result.
    Answer {
        /// The request, by the name that its owner gave it.
        waiter: u64,
        /// Its answer.
        outcome: Outcome,
    },
}

/// Outcome of a request for the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultLookup {
    /// The task is over.
    Now(Outcome),
    /// It is not; the answer comes as an [`Action::Answer`]. Meanwhile the client can be asked what
    /// the task is waiting for.
    Later(Vec<Action>),
}

/// The tasks that are hosted here.
///
/// ```text
/// working <--> input_required
///    |               |
///    +-------+-------+
///            v
/// completed | failed | cancelled    (and nothing after that)
/// ```
///
/// A task begins as working whatever the server says, and one that was cancelled stays cancelled
/// whatever the server does.
#[derive(Clone, Debug)]
pub struct HostedTasks {
    tasks: BTreeMap<Box<str>, Task>,
    next: u64,
    limits: HostLimits,
}

impl HostedTasks {
    /// No tasks yet.
    #[must_use]
    pub const fn new(limits: HostLimits) -> Self {
        Self {
            tasks: BTreeMap::new(),
            next: 0,
            limits,
        }
    }

    /// A client calls a tool as a task; `wish` is the raw `task` member. The answer is the result
    /// to send at once, before the server is even asked. The name of the task must be one that
    /// cannot be guessed.
    ///
    /// # Errors
    /// There is no room for more tasks.
    pub fn create(
        &mut self,
        task: &str,
        owner: TaskOwner<'_>,
        wish: Option<&str>,
        now: Timestamp<'_>,
    ) -> Result<String, WireError> {
        let tasks = self.tasks.values();
        let of_account = tasks.filter(|task| *task.account == *owner.account);
        if self.tasks.len() >= self.limits.tasks || of_account.count() >= self.limits.per_owner {
            let message = "too many tasks; wait for one to expire, or call without `task`";
            return Err(wire_error(ErrorCode::InternalError, message, CORE));
        }
        let asked = wish.and_then(|raw| Object::parse(raw).ok()?.get("ttl")?.parse().ok());
        let ttl = asked.map_or(self.limits.longest, Duration::from_millis);
        let entry = Task::new(
            owner,
            self.next,
            ttl.min(self.limits.longest),
            self.limits.poll,
            now,
        );
        self.next += 1;
        let created = ObjectWriter::new().raw("task", &entry.encode(task));
        self.tasks.insert(Box::from(task), entry);
        Ok(created.finish())
    }

    /// The server made a task of the call: this result says which.
    #[must_use]
    pub fn started(&mut self, task: &str, result: &str) -> Vec<Action> {
        let seed = Object::parse(result).unwrap_or_default();
        let upstream = seed.get_str("taskId").map(|id| Box::from(id.as_ref()));
        let Some(entry) = self.tasks.get_mut(task) else {
            let task = Box::from(task);
            return Vec::from([Action::Cancel { task, upstream }]);
        };
        entry.upstream = upstream;
        if entry.status.is_terminal() {
            return Vec::from([entry.stop(task)]);
        }
        entry.follow(&seed);
        entry.poll(task).into_iter().collect()
    }

    /// The server said where its task stands, in an answer or in a notification. `mint` makes ids
    /// for questions that need one.
    #[must_use]
    pub fn polled(
        &mut self,
        task: &str,
        detailed: &str,
        client: &Pact,
        now: Timestamp<'_>,
        mint: &mut dyn FnMut() -> String,
    ) -> Vec<Action> {
        let room = self.limits.per_task;
        let Some(entry) = self.running(task) else {
            return Vec::new();
        };
        let seen = Object::parse(detailed).unwrap_or_default();
        entry.follow(&seen);
        let status = seen.get_str("status").and_then(|word| Status::parse(&word));
        match status {
            Some(Status::Working) => {
                entry.turn(Status::Working, now);
                entry.poll(task).into_iter().collect()
            }
            Some(Status::InputRequired) => {
                let asked = seen.get("inputRequests").unwrap_or("{}");
                match questions::new_ones(task, asked, &entry.asked, room, client, mint) {
                    Ok(questions) => {
                        entry.turn(Status::InputRequired, now);
                        entry.ask(questions);
                        let mut acts = entry.asking(task);
                        acts.extend(entry.poll(task));
                        acts
                    }
                    Err(error) => entry.abort(task, Outcome::Error(error.encode()), now),
                }
            }
            Some(Status::Completed) => {
                let result = adapted(seen.get("result").unwrap_or("{}"), client.revision());
                entry.end(task, result, now)
            }
            Some(Status::Failed) => {
                let error = failed(seen.get("error"), client.revision());
                entry.end(task, error, now)
            }
            Some(Status::Cancelled) => entry.cancel(now),
            None => entry.end(task, failed(None, client.revision()), now),
        }
    }

    /// The call ended without a task of the server, or following its task failed. The outcome is
    /// one for a client of 2025-11-25.
    #[must_use]
    pub fn finished(&mut self, task: &str, outcome: Outcome, now: Timestamp<'_>) -> Vec<Action> {
        let entry = self.running(task);
        entry.map_or_else(Vec::new, |entry| entry.end(task, outcome, now))
    }

    /// A task that has not ended.
    fn running(&mut self, task: &str) -> Option<&mut Task> {
        let entry = self.tasks.get_mut(task);
        entry.filter(|entry| !entry.status.is_terminal())
    }

    /// The call waits for the client, or does so no more; for calls that ask in rounds.
    pub fn waits(&mut self, task: &str, status: Status, now: Timestamp<'_>) {
        if let Some(entry) = self.running(task)
            && !status.is_terminal()
        {
            entry.turn(status, now);
        }
    }

    /// The client answered a question of a task, or could not: then a form counts as dismissed,
    /// and anything else ends the task, for the server would wait in vain.
    #[must_use]
    pub fn answered(
        &mut self,
        task: &str,
        key: &str,
        answer: Option<&str>,
        now: Timestamp<'_>,
    ) -> Vec<Action> {
        let Some(entry) = self.running(task) else {
            return Vec::new();
        };
        let Some(method) = entry.asked.get(key).copied() else {
            return Vec::new();
        };
        let dismissed = (method == Method::ElicitationCreate).then_some(r#"{"action":"cancel"}"#);
        match answer.or(dismissed) {
            Some(answer) => entry.update(key, answer).into_iter().collect(),
            None => entry.abort(task, unanswered(method), now),
        }
    }

    /// The answer to `tasks/get`, and the parameters of `notifications/tasks/status`.
    ///
    /// # Errors
    /// The owner has no such task.
    pub fn get(&self, task: &str, owner: &str) -> Result<String, WireError> {
        Ok(self.owned(task, owner)?.encode(task))
    }

    /// A page of the owner's tasks, oldest first: the answer to `tasks/list`.
    ///
    /// # Errors
    /// The cursor is not one of ours.
    pub fn list(&self, owner: &str, cursor: Option<&str>) -> Result<String, WireError> {
        let bad = |_| wire_error(ErrorCode::InvalidParams, "the cursor is not known", CORE);
        let from = cursor.map(str::parse::<u64>).transpose().map_err(bad)?;
        let mut all: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, task)| *task.owner == *owner && Some(task.order) >= from)
            .collect();
        all.sort_unstable_by_key(|(_, task)| task.order);
        let next = all.get(self.limits.page).map(|(_, task)| task.order);
        let page: Vec<_> = all
            .iter()
            .take(self.limits.page)
            .map(|(id, task)| task.encode(id))
            .collect();
        let next = next.map(|next| next.to_string());
        Ok(ObjectWriter::new()
            .raw("tasks", &format!("[{}]", page.join(",")))
            .maybe_text("nextCursor", next.as_deref())
            .finish())
    }

    /// A client asks for the result; `waiter` is our name for its request.
    ///
    /// # Errors
    /// The owner has no such task, or too many requests wait for it.
    pub fn result(
        &mut self,
        task: &str,
        owner: &str,
        waiter: u64,
    ) -> Result<ResultLookup, WireError> {
        let most = self.limits.per_task;
        let entry = self.owned_mut(task, owner)?;
        if let Some(outcome) = &entry.outcome {
            return Ok(ResultLookup::Now(outcome.clone()));
        }
        if entry.waiters.len() >= most {
            let message = "too many requests wait for this task";
            return Err(wire_error(ErrorCode::InternalError, message, CORE));
        }
        entry.waiters.push(waiter);
        Ok(ResultLookup::Later(entry.asking(task)))
    }

    /// A request for the result was cancelled.
    pub fn left(&mut self, waiter: u64) {
        for entry in self.tasks.values_mut() {
            entry.waiters.retain(|waiting| *waiting != waiter);
        }
    }

    /// A client cancels a task: the answer to `tasks/cancel`, and what follows.
    ///
    /// # Errors
    /// The owner has no such task, or it is over.
    pub fn cancel(
        &mut self,
        task: &str,
        owner: &str,
        now: Timestamp<'_>,
    ) -> Result<(String, Vec<Action>), WireError> {
        let entry = self.owned_mut(task, owner)?;
        if entry.status.is_terminal() {
            let message = format!("the task is already {}", entry.status.as_str());
            return Err(wire_error(ErrorCode::InvalidParams, message, CORE));
        }
        let mut acts = Vec::from([entry.stop(task)]);
        acts.extend(entry.cancel(now));
        Ok((entry.encode(task), acts))
    }

    /// Removes expired tasks.
    #[must_use]
    pub fn expire(&mut self, now: Moment) -> Vec<Action> {
        let mut acts = Vec::new();
        self.tasks.retain(|task, entry| {
            if entry.expires > now {
                return true;
            }
            if !entry.status.is_terminal() {
                acts.push(entry.stop(task));
            }
            acts.extend(entry.dismiss("the task has expired"));
            false
        });
        acts
    }

    /// Time at which the next task expires.
    #[cfg(test)]
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.tasks.values().map(|task| task.expires).min()
    }

    fn owned(&self, task: &str, owner: &str) -> Result<&Task, WireError> {
        let entry = self.tasks.get(task).filter(|entry| *entry.owner == *owner);
        entry.ok_or_else(unknown)
    }

    fn owned_mut(&mut self, task: &str, owner: &str) -> Result<&mut Task, WireError> {
        let entry = self.tasks.get_mut(task);
        let entry = entry.filter(|entry| *entry.owner == *owner);
        entry.ok_or_else(unknown)
    }
}

/// The same error for a missing task and for one of another owner.
fn unknown() -> WireError {
    let message = "there is no such task, or it has expired";
    wire_error(ErrorCode::InvalidParams, message, CORE)
}

/// The result of a server's task for the client.
fn adapted(result: &str, to: Revision) -> Outcome {
    match result_to_legacy(Method::ToolsCall, result, to) {
        Ok(result) => Outcome::Result(result.into_owned()),
        Err(error) => {
            let message = format!("the result of the task cannot be read: {error}");
            Outcome::Error(wire_error(ErrorCode::InternalError, message, to).encode())
        }
    }
}

fn failed(error: Option<&str>, to: Revision) -> Outcome {
    let error = error.and_then(|raw| error_to_legacy(Some(Method::ToolsCall), raw, None, to).ok());
    let unnamed = || wire_error(ErrorCode::InternalError, "the task failed", to).encode();
    Outcome::Error(error.map_or_else(unnamed, String::from))
}

/// A tool says so in its result, where a model can read it.
fn unanswered(method: Method) -> Outcome {
    let text = format!("{method} was not completed by the client");
    Outcome::Result(failed_tool(CORE, &text))
}

#[cfg(test)]
mod tests;
