//! One hosted task.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use mcpact_engine::time::Moment;
use mcpact_spec::{ErrorCode, Method};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{Action, Timestamp};
use crate::input::{Outcome, Question};
use crate::tasks::{CORE, SHORTEST, Status, TaskOwner, related};
use crate::wire_error::wire_error;

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) owner: Box<str>,
    pub(super) account: Box<str>,
    pub(super) order: u64,
    pub(super) status: Status,
    pub(super) expires: Moment,
    pub(super) upstream: Option<Box<str>>,
    /// Every key that the server ever used.
    pub(super) asked: BTreeMap<Box<str>, Method>,
    pub(super) outcome: Option<Outcome>,
    pub(super) waiters: Vec<u64>,
    unasked: Vec<Question>,
    created: Box<str>,
    updated: Box<str>,
    message: Option<Box<str>>,
    ttl: Duration,
    interval: Duration,
    begun: Moment,
}

impl Task {
    pub(super) fn new(
        owner: TaskOwner<'_>,
        order: u64,
        ttl: Duration,
        interval: Duration,
        now: Timestamp<'_>,
    ) -> Self {
        Self {
            owner: Box::from(owner.name),
            account: Box::from(owner.account),
            order,
            status: Status::Working,
            expires: now.moment.after(ttl),
            upstream: None,
            asked: BTreeMap::new(),
            outcome: None,
            waiters: Vec::new(),
            unasked: Vec::new(),
            created: Box::from(now.stamp),
            updated: Box::from(now.stamp),
            message: None,
            ttl,
            interval,
            begun: now.moment,
        }
    }

    /// The task as its client sees it.
    pub(super) fn encode(&self, id: &str) -> String {
        ObjectWriter::new()
            .text("taskId", id)
            .text("status", self.status.as_str())
            .maybe_text("statusMessage", self.message.as_deref())
            .text("createdAt", &self.created)
            .text("lastUpdatedAt", &self.updated)
            .raw("ttl", &self.ttl.as_millis().to_string())
            .raw("pollInterval", &self.interval.as_millis().to_string())
            .finish()
    }

    /// Takes over what the server says about its task besides the status. A task cannot be kept
    /// for longer than the server keeps its own.
    pub(super) fn follow(&mut self, seen: &Object<'_>) {
        let millis = |key: &str| seen.get(key)?.parse().ok().map(Duration::from_millis);
        if let Some(interval) = millis("pollIntervalMs") {
            self.interval = interval.max(SHORTEST);
        }
        if let Some(ttl) = millis("ttlMs").filter(|ttl| *ttl < self.ttl) {
            self.ttl = ttl;
            self.expires = self.begun.after(ttl);
        }
        if let Some(message) = seen.get_str("statusMessage") {
            self.message = Some(Box::from(message.as_ref()));
        }
    }

    pub(super) fn turn(&mut self, status: Status, now: Timestamp<'_>) {
        if self.status != status {
            self.status = status;
            self.updated = Box::from(now.stamp);
        }
    }

    pub(super) fn poll(&self, id: &str) -> Option<Action> {
        Some(Action::Poll {
            task: Box::from(id),
            upstream: self.upstream.clone()?,
            after: self.interval,
        })
    }

    pub(super) fn ask(&mut self, questions: Vec<Question>) {
        for question in &questions {
            self.asked.insert(question.key.clone(), question.method);
        }
        self.unasked.extend(questions);
    }

    /// The questions that can be asked now: a client that waits for the result expects them.
    pub(super) fn asking(&mut self, id: &str) -> Vec<Action> {
        if self.waiters.is_empty() {
            return Vec::new();
        }
        let questions = mem::take(&mut self.unasked).into_iter();
        questions
            .map(|question| Action::Ask {
                task: Box::from(id),
                question,
            })
            .collect()
    }

    pub(super) fn update(&self, key: &str, answer: &str) -> Option<Action> {
        let answers = ObjectWriter::new().raw(key, answer).finish();
        let params = ObjectWriter::new()
            .text("taskId", self.upstream.as_deref()?)
            .raw("inputResponses", &answers)
            .finish();
        Some(Action::Update { params })
    }

    pub(super) fn stop(&self, id: &str) -> Action {
        Action::Cancel {
            task: Box::from(id),
            upstream: self.upstream.clone(),
        }
    }

    /// Stops the server's work and ends the task with this outcome.
    pub(super) fn abort(&mut self, id: &str, outcome: Outcome, now: Timestamp<'_>) -> Vec<Action> {
        let mut acts = Vec::from([self.stop(id)]);
        acts.extend(self.end(id, outcome, now));
        acts
    }

    /// Ends the task with this outcome and answers all waiting requests.
    pub(super) fn end(&mut self, id: &str, outcome: Outcome, now: Timestamp<'_>) -> Vec<Action> {
        let outcome = match outcome {
            Outcome::Result(raw) => related(&raw, id).map_or_else(
                |error| {
                    let message = alloc::format!("the result of the task cannot be read: {error}");
                    Outcome::Error(wire_error(ErrorCode::InternalError, message, CORE).encode())
                },
                Outcome::Result,
            ),
            Outcome::Error(raw) => Outcome::Error(raw),
        };
        let status = match &outcome {
            Outcome::Result(raw) if !is_error(raw) => Status::Completed,
            Outcome::Result(_) | Outcome::Error(_) => Status::Failed,
        };
        self.turn(status, now);
        self.unasked.clear();
        self.outcome = Some(outcome.clone());
        self.answer_waiters(&outcome)
    }

    /// The task is cancelled, for good.
    pub(super) fn cancel(&mut self, now: Timestamp<'_>) -> Vec<Action> {
        self.turn(Status::Cancelled, now);
        self.unasked.clear();
        let acts = self.dismiss("the task was cancelled");
        self.outcome = Some(refusal("the task was cancelled"));
        acts
    }

    /// Those who wait for the result wait in vain.
    pub(super) fn dismiss(&mut self, why: &'static str) -> Vec<Action> {
        self.answer_waiters(&refusal(why))
    }

    fn answer_waiters(&mut self, outcome: &Outcome) -> Vec<Action> {
        let waiters = mem::take(&mut self.waiters).into_iter();
        let answer = |waiter| Action::Answer {
            waiter,
            outcome: outcome.clone(),
        };
        waiters.map(answer).collect()
    }
}

fn refusal(why: &'static str) -> Outcome {
    Outcome::Error(wire_error(ErrorCode::InternalError, why, CORE).encode())
}

fn is_error(result: &str) -> bool {
    let result = Object::parse(result).unwrap_or_default();
    result.get("isError") == Some("true")
}
