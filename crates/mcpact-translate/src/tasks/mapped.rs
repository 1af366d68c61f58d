//! Tasks of the extension, in front of a server of 2025-11-25.

mod entry;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method, Revision};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::{CORE, TaskOwner};
use crate::input::{Outcome, ServerAnswer};
use crate::shape::ShapeError;
use crate::wire_error::{modern_error, wire_error};
use entry::Task;

/// The answer to `tasks/update` and `tasks/cancel`: taken note of, and nothing promised.
pub const ACKNOWLEDGED: &str = r#"{"resultType":"complete"}"#;

/// Limits of mapped tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapLimits {
    /// Tasks in all.
    pub tasks: usize,
    /// Tasks of one account.
    pub per_owner: usize,
    /// Questions that one task may ask.
    pub questions: usize,
    /// Longest time for which a task is kept.
    pub longest: Duration,
}

/// The call that a task was made of.
#[derive(Clone, Copy, Debug)]
pub struct TaskOrigin<'a> {
    /// Owner of the task.
    pub owner: TaskOwner<'a>,
    /// Revision of its client.
    pub client: Revision,
    /// Our name for the session of the server.
    pub session: u64,
}

/// State of a task, and the request that is needed to know more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskView {
    /// The `DetailedTask`: the answer to `tasks/get`, and the parameters of `notifications/tasks`.
    Now(String),
    /// The same. Besides, open `tasks/result` at the server: only there does it ask what it waits
    /// for. Its answer goes to [`MappedTasks::ended`].
    NowAndOpen(String),
    /// The task is over. Open `tasks/result` at the server, unless it is open, give its answer to
    /// [`MappedTasks::ended`] and take what that says.
    AfterResult,
}

/// Result of a lookup of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskLookup {
    /// It is known: the answer to `tasks/get`.
    Known(String),
    /// Ask the server for its task of this id, and give the answer to [`MappedTasks::status`].
    Ask(Box<str>),
}

/// The tasks of servers of 2025-11-25, under names of our own.
///
/// The server's ids are good in its session only and may be guessed; ours are good for their owner
/// and must be unguessable.
#[derive(Clone, Debug)]
pub struct MappedTasks {
    tasks: BTreeMap<Box<str>, Task>,
    limits: MapLimits,
}

impl MappedTasks {
    /// No tasks yet.
    #[must_use]
    pub const fn new(limits: MapLimits) -> Self {
        Self {
            tasks: BTreeMap::new(),
            limits,
        }
    }

    /// Returns whether there is room for another task of this account: to be asked before the server makes
    /// one.
    ///
    /// # Errors
    /// There is none.
    pub fn room(&self, account: &str) -> Result<(), WireError> {
        let tasks = self.tasks.values();
        let of_account = tasks.filter(|task| *task.account == *account);
        if self.tasks.len() >= self.limits.tasks || of_account.count() >= self.limits.per_owner {
            let message = "too many tasks; wait for one to expire";
            return Err(modern_error(ErrorCode::InternalError, message));
        }
        Ok(())
    }

    /// Records the task that the server made of a call and returns the client's result.
    /// `server_info` is the raw `Implementation` of the server.
    ///
    /// # Errors
    /// There is no task in the result.
    pub fn created(
        &mut self,
        task: &str,
        origin: TaskOrigin<'_>,
        result: &str,
        server_info: Option<&str>,
        now: Moment,
    ) -> Result<String, ShapeError> {
        let created = Object::parse(result)?;
        let raw = created.get("task").unwrap_or("null");
        let entry = Task::new(origin, raw, now, self.limits.longest)?;
        let flat = entry.encode_created(task, created.get("_meta"), server_info)?;
        self.tasks.insert(Box::from(task), entry);
        Ok(flat)
    }

    /// A client asks where its task stands.
    ///
    /// # Errors
    /// It has no such task.
    pub fn get(&self, task: &str, owner: &str) -> Result<TaskLookup, WireError> {
        let entry = self.owned(task, owner)?;
        Ok(match entry.over(task) {
            Some(detailed) => TaskLookup::Known(detailed),
            None => TaskLookup::Ask(entry.upstream.clone()),
        })
    }

    /// The server said where its task stands.
    ///
    /// # Errors
    /// The status is malformed.
    pub fn status(&mut self, task: &str, raw: &str) -> Result<Option<TaskView>, ShapeError> {
        let entry = self.tasks.get_mut(task);
        entry.map(|entry| entry.status(task, raw)).transpose()
    }

    /// A server said in a `notifications/tasks/status` where a task of the session stands: our name
    /// for it, and as in [`status`](Self::status).
    ///
    /// # Errors
    /// The status is malformed.
    pub fn status_notification(
        &mut self,
        session: u64,
        raw: &str,
    ) -> Result<Option<(String, TaskView)>, ShapeError> {
        let upstream = Object::parse(raw)?
            .get_str("taskId")
            .unwrap_or(Cow::Borrowed(""));
        let Some(task) = self.local_id(session, &upstream).map(String::from) else {
            return Ok(None);
        };
        let seen = self.status(&task, raw)?;
        Ok(seen.map(|seen| (task, seen)))
    }

    /// Our name for a task of a server, as it stands in the `related-task` of a question.
    #[must_use]
    pub fn local_id(&self, session: u64, upstream: &str) -> Option<&str> {
        let is_it = |task: &Task| task.session == session && *task.upstream == *upstream;
        let mut tasks = self.tasks.iter();
        tasks.find(|(_, task)| is_it(task)).map(|(id, _)| &**id)
    }

    /// The server's `tasks/result` was answered, or its session was lost: where the task stands
    /// now. `server_info` is who the result shall be from.
    #[must_use]
    pub fn ended(
        &mut self,
        task: &str,
        outcome: &Outcome,
        server_info: Option<&str>,
    ) -> Option<String> {
        let entry = self.tasks.get_mut(task)?;
        entry.end(outcome, server_info);
        entry.over(task)
    }

    /// A session is over, and its tasks with it: our names for those that had not ended.
    #[must_use]
    pub fn session_lost(&mut self, session: u64) -> Vec<Box<str>> {
        let message = "the session of the server that ran the task is lost, and the task with it; it may have had its \
                       effect: see whether it had, and call it again if not";
        let error = modern_error(ErrorCode::InternalError, message).encode();
        let mut lost = Vec::new();
        for (id, task) in &mut self.tasks {
            if task.session == session && task.over(id).is_none() {
                task.end(&Outcome::Error(error.clone()), None);
                lost.push(id.clone());
            }
        }
        lost
    }

    /// The server asks something for a task: the key under which the client finds the question,
    /// which is in its words already (see [`question_to_modern`](crate::input::question_to_modern)).
    ///
    /// # Errors
    /// Error for the server: there is no such task, or it asked too much.
    pub fn asked(
        &mut self,
        task: &str,
        id: Id,
        method: Method,
        question: String,
    ) -> Result<String, WireError> {
        let refused = |message| wire_error(ErrorCode::InternalError, message, CORE);
        let most = self.limits.questions;
        let entry = self.tasks.get_mut(task);
        let entry = entry.ok_or_else(|| refused("the task has expired"))?;
        if entry.asked >= most {
            return Err(refused("the task asks too many questions"));
        }
        Ok(entry.ask(id, method, question))
    }

    /// Removes a question that the server withdrew.
    pub fn withdrawn(&mut self, task: &str, id: IdRef<'_>) {
        if let Some(entry) = self.tasks.get_mut(task) {
            entry.pending.retain(|_, pending| pending.id.as_ref() != id);
        }
    }

    /// Takes the answers of a client and returns those for the server. Answers to questions that are
    /// not open are ignored. The client gets [`ACKNOWLEDGED`].
    ///
    /// # Errors
    /// It has no such task, or the answers are malformed; then none of them was taken.
    pub fn update(
        &mut self,
        task: &str,
        owner: &str,
        responses: Option<&str>,
    ) -> Result<Vec<ServerAnswer>, WireError> {
        self.owned(task, owner)?;
        let malformed = || {
            let message = "`inputResponses` must be an object of objects";
            modern_error(ErrorCode::InvalidParams, message)
        };
        let responses = Object::parse(responses.unwrap_or("null")).map_err(|_| malformed())?;
        if responses.iter().any(|(_, raw)| Object::parse(raw).is_err()) {
            return Err(malformed());
        }
        let entry = self.tasks.get_mut(task);
        let answers = entry.map(|entry| entry.answer(&responses));
        Ok(answers.unwrap_or_default())
    }

    /// A client wants its task cancelled: the server's id, if there is still something to cancel.
    /// Whatever the server says to that, the client gets [`ACKNOWLEDGED`].
    ///
    /// # Errors
    /// It has no such task.
    pub fn cancel(&self, task: &str, owner: &str) -> Result<Option<Box<str>>, WireError> {
        let entry = self.owned(task, owner)?;
        let is_over = entry.over(task).is_some();
        Ok((!is_over).then(|| entry.upstream.clone()))
    }

    /// Removes expired tasks and returns our names for them.
    #[must_use]
    pub fn expire(&mut self, now: Moment) -> Vec<Box<str>> {
        let mut gone = Vec::new();
        self.tasks.retain(|id, task| {
            let stays = task.expires > now;
            if !stays {
                gone.push(id.clone());
            }
            stays
        });
        gone
    }

    /// Time at which the next task expires.
    #[cfg(test)]
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.tasks.values().map(|task| task.expires).min()
    }

    /// Returns whether this owner has this task, as for the filter of a stream.
    #[must_use]
    pub fn owns(&self, task: &str, owner: &str) -> bool {
        self.owned(task, owner).is_ok()
    }

    fn owned(&self, task: &str, owner: &str) -> Result<&Task, WireError> {
        let entry = self.tasks.get(task).filter(|entry| *entry.owner == *owner);
        entry.ok_or_else(|| {
            let message = format!("there is no task `{task}`, or it has expired");
            modern_error(ErrorCode::InvalidParams, message)
        })
    }
}

#[cfg(test)]
mod tests;
