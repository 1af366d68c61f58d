//! Tasks: calls that continue after their response. One store serves the core feature of 2025-11-25 and the extension
//! of 2026-07-28, which differ only in encoding.

mod outcome;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use mcpact_engine::refusal::Dialect;
use mcpact_spec::{Era, ErrorCode, Method};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use self::outcome::{finish, result};
use super::context::{CallScope, Context, Rounds};
use super::date;
use super::dispatch::text;
use super::handler_error::HandlerError;
use super::input::Question;
use super::outbox::Outbox;
use super::subscribers::Subscribers;
use crate::lock;
use crate::model::{TaskStatus, ToolResult};

/// Maximum number of stored tasks.
const LIMIT: usize = 1000;

/// Lifetime of a task if the client does not request one.
const DEFAULT_TTL: Duration = Duration::from_secs(60 * 60);

/// Maximum lifetime that a client can request.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

const POLL_INTERVAL_MS: u64 = 100;

/// Tasks of a server.
#[derive(Debug, Default)]
pub(super) struct TaskStore {
    tasks: Mutex<HashMap<String, Arc<TaskHandle>>>,
}

/// Task, running or finished.
#[derive(Debug)]
pub(super) struct TaskHandle {
    id: String,
    owner: String,
    created: String,
    since: Instant,
    ttl: Duration,
    state: Mutex<TaskState>,
    changed: Notify,
    subscribers: Arc<Subscribers>,
    abort: AbortHandle,
}

#[derive(Debug)]
struct TaskState {
    status: TaskStatus,
    message: Option<String>,
    updated: String,
    outcome: Option<Result<Value, Value>>,
    /// Open questions, with the sender of the answer or the reason for none.
    waiting: BTreeMap<String, (Question, oneshot::Sender<Result<Value, String>>)>,
    /// Questions being delivered by a request for the result.
    in_delivery: BTreeSet<String>,
}

impl TaskHandle {
    /// Returns `true` if the caller may access it: same owner, and not expired.
    fn is_accessible_by(&self, context: &Context) -> bool {
        self.owner == context.owner() && self.since.elapsed() < self.ttl
    }

    /// Changes the status, unless it is final.
    fn advance(&self, status: TaskStatus, change: impl FnOnce(&mut TaskState)) -> bool {
        let mut state = lock(&self.state);
        if state.status.is_final() {
            return false;
        }
        state.status = status;
        state.updated = date::now();
        change(&mut state);
        self.publish(&state);
        true
    }

    /// Wakes waiters and notifies subscribers. The caller holds the lock, so that notifications are in order.
    fn publish(&self, state: &TaskState) {
        self.changed.notify_waiters();
        let params = Value::Object(self.detailed(state));
        self.subscribers
            .publish_to(&self.owner, Method::TasksChanged, &params);
    }

    /// Asks the client of the task and waits for the answers.
    pub(super) async fn ask(
        &self,
        questions: Vec<(String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let mut receivers = Vec::new();
        self.advance(TaskStatus::InputRequired, |state| {
            for (key, question) in questions {
                let (sender, receiver) = oneshot::channel();
                state.waiting.insert(key.clone(), (question, sender));
                receivers.push((key, receiver));
            }
        });
        let mut answers = Map::new();
        for (key, receiver) in receivers {
            let answer = receiver
                .await
                .map_err(|_| HandlerError::failed("the task was cancelled"))?;
            answers.insert(key, answer.map_err(HandlerError::failed)?);
        }
        Ok(answers)
    }

    /// Accepts matching answers; others are ignored.
    fn answer(&self, responses: Map<String, Value>) {
        let mut state = lock(&self.state);
        for (key, answer) in responses {
            let is_accepted = |(question, _): &(Question, _)| question.accepts(&answer);
            if state.waiting.get(&key).is_some_and(is_accepted) {
                state.settle(&key, Ok(answer));
            }
        }
        self.resume(state);
    }

    /// Continues when no question is open.
    fn resume(&self, mut state: MutexGuard<'_, TaskState>) {
        if state.waiting.is_empty() && state.status == TaskStatus::InputRequired {
            state.status = TaskStatus::Working;
            state.updated = date::now();
            self.publish(&state);
        }
    }

    /// Encodes the task for an era.
    fn encode(&self, state: &TaskState, era: Era) -> Map<String, Value> {
        let ttl = u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX);
        let (ttl_key, poll_key) = match era {
            Era::Legacy => ("ttl", "pollInterval"),
            Era::Modern => ("ttlMs", "pollIntervalMs"),
        };
        let mut task = Map::from_iter([
            ("taskId".into(), json!(self.id)),
            ("status".into(), json!(state.status)),
            ("createdAt".into(), json!(self.created)),
            ("lastUpdatedAt".into(), json!(state.updated)),
            (ttl_key.into(), json!(ttl)),
            (poll_key.into(), json!(POLL_INTERVAL_MS)),
        ]);
        if let Some(message) = &state.message {
            task.insert("statusMessage".into(), json!(message));
        }
        task
    }

    fn encode_text(&self, era: Era) -> String {
        Value::Object(self.encode(&lock(&self.state), era)).to_string()
    }

    /// Encodes the task with the members of its status, for the extension.
    fn detailed(&self, state: &TaskState) -> Map<String, Value> {
        let mut task = self.encode(state, Era::Modern);
        match (&state.status, &state.outcome) {
            (TaskStatus::InputRequired, _) => {
                let open = state.waiting.iter();
                let open = open.map(|(key, (question, _))| (key.clone(), question.request()));
                task.insert("inputRequests".into(), Value::Object(open.collect()));
            }
            (_, Some(Ok(result))) => drop(task.insert("result".into(), result.clone())),
            (_, Some(Err(error))) => drop(task.insert("error".into(), error.clone())),
            (_, None) => {}
        }
        task
    }
}

impl TaskState {
    fn settle(&mut self, key: &str, answer: Result<Value, String>) {
        if let Some((_, sender)) = self.waiting.remove(key) {
            let _ = sender.send(answer);
        }
    }
}

impl TaskStore {
    /// Starts a call as a task and returns the result that announces it.
    pub(super) fn start(
        &self,
        params: &Map<String, Value>,
        context: &Context,
        run: impl FnOnce(Context) -> BoxFuture<'static, Result<ToolResult, HandlerError>>,
    ) -> Result<String, HandlerError> {
        let ttl = requested_ttl(params, context.pact().era())?;
        let (abort, registration) = AbortHandle::new_pair();
        let created = date::now();
        let handle = Arc::new(TaskHandle {
            id: super::http::random_id().ok_or_else(|| {
                HandlerError::failed("the operating system returned no random numbers")
            })?,
            owner: context.owner().to_owned(),
            since: Instant::now(),
            ttl,
            state: Mutex::new(TaskState {
                status: TaskStatus::Working,
                message: Some(String::from("The operation is in progress.")),
                updated: created.clone(),
                outcome: None,
                waiting: BTreeMap::new(),
                in_delivery: BTreeSet::new(),
            }),
            created,
            changed: Notify::new(),
            subscribers: Arc::clone(&context.call.subscribers),
            abort,
        });
        self.insert(&handle)?;
        let era = context.pact().era();
        // `2025-11-25 basic/utilities/tasks`: a task starts as working, even if it asks at once.
        let task = handle.encode(&lock(&handle.state), era);
        let future = run(for_task(context, &handle));
        let dialect = Dialect {
            revision: context.pact().revision(),
            errors: mcpact_engine::policy::ErrorDialect::Spec,
        };
        tokio::spawn(async move {
            // A task that panics has failed; it must not stay working forever.
            let guarded = AssertUnwindSafe(future).catch_unwind();
            if let Ok(outcome) = Abortable::new(guarded, registration).await {
                let outcome = outcome.unwrap_or_else(|_| Err(HandlerError::internal()));
                finish(&handle, outcome, dialect);
            }
        });
        Ok(match era {
            Era::Legacy => json!({ "task": task }),
            Era::Modern => {
                let mut flat = task;
                flat.insert("resultType".into(), json!("task"));
                Value::Object(flat)
            }
        }
        .to_string())
    }

    /// Stores a task, after removing expired ones.
    fn insert(&self, handle: &Arc<TaskHandle>) -> Result<(), HandlerError> {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|_, task| {
            let is_kept = task.since.elapsed() < task.ttl;
            if !is_kept {
                task.abort.abort();
            }
            is_kept
        });
        if tasks.len() >= LIMIT {
            return Err(HandlerError::failed(format!(
                "the limit of {LIMIT} tasks is reached"
            )));
        }
        tasks.insert(handle.id.clone(), Arc::clone(handle));
        Ok(())
    }

    /// Returns the tasks of the caller, oldest first.
    pub(super) fn list_for(&self, context: &Context) -> Vec<Map<String, Value>> {
        let tasks = lock(&self.tasks);
        let mut own: Vec<_> = tasks
            .values()
            .filter(|task| task.is_accessible_by(context))
            .collect();
        own.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
        let era = context.pact().era();
        let encoded = own.iter().map(|task| task.encode(&lock(&task.state), era));
        encoded.collect()
    }

    /// Returns `true` if the caller has this task.
    pub(super) fn has(&self, id: &str, context: &Context) -> bool {
        let tasks = lock(&self.tasks);
        tasks
            .get(id)
            .is_some_and(|task| task.is_accessible_by(context))
    }

    pub(super) async fn serve(
        &self,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<String, HandlerError> {
        let era = context.pact().era();
        let task = self.find(params, context)?;
        match (method, era) {
            (Method::TasksGet, Era::Legacy) => Ok(task.encode_text(era)),
            (Method::TasksGet, Era::Modern) => {
                let mut detailed = task.detailed(&lock(&task.state));
                detailed.insert("resultType".into(), json!("complete"));
                Ok(Value::Object(detailed).to_string())
            }
            (Method::TasksResult, _) => result(&task, context).await,
            (Method::TasksCancel, era) => {
                let was_running = task.advance(TaskStatus::Cancelled, |state| {
                    state.message = Some(String::from("The task was cancelled by request."));
                    state.waiting.clear();
                });
                task.abort.abort();
                match era {
                    Era::Modern => Ok(json!({"resultType": "complete"}).to_string()),
                    Era::Legacy if was_running => Ok(task.encode_text(era)),
                    Era::Legacy => Err(HandlerError::invalid_params("the task has ended already")),
                }
            }
            (Method::TasksUpdate, _) => {
                if let Some(Value::Object(responses)) = params.get("inputResponses") {
                    task.answer(responses.clone());
                }
                Ok(json!({"resultType": "complete"}).to_string())
            }
            _ => Err(HandlerError::rpc(
                ErrorCode::MethodNotFound.code(),
                "Method not found",
            )),
        }
    }

    fn find(
        &self,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<Arc<TaskHandle>, HandlerError> {
        let id = text(params, "taskId")?;
        let found = lock(&self.tasks).get(id).cloned();
        found
            .filter(|task| task.is_accessible_by(context))
            .ok_or_else(|| HandlerError::invalid_params(format!("Unknown task: {id}")))
    }
}

/// Creates the context of a task's handler: questions wait in the task, and other messages are dropped.
fn for_task(context: &Context, handle: &Arc<TaskHandle>) -> Context {
    let call = &context.call;
    let (nowhere, _) = Outbox::new(1);
    Context {
        call: Arc::new(CallScope {
            id: call.id.clone(),
            name: call.name.clone(),
            pact: Arc::clone(&call.pact),
            progress_token: None,
            session: Arc::clone(&call.session),
            outbox: nowhere,
            rounds: Mutex::new(Rounds {
                keys: lock(&call.rounds).keys.clone(),
                ..Rounds::default()
            }),
            asked: Notify::new(),
            lifetime: None,
            subscribers: Arc::clone(&call.subscribers),
            task: Some(Arc::clone(handle)),
        }),
    }
}

/// Returns the requested lifetime; only the core feature has one.
fn requested_ttl(params: &Map<String, Value>, era: Era) -> Result<Duration, HandlerError> {
    let task = match era {
        Era::Legacy => params.get("task"),
        Era::Modern => None,
    };
    let Some(task) = task else {
        return Ok(DEFAULT_TTL);
    };
    let Some(task) = task.as_object() else {
        return Err(HandlerError::invalid_params("`task` must be an object"));
    };
    match task.get("ttl") {
        None | Some(Value::Null) => Ok(DEFAULT_TTL),
        Some(ttl) => ttl
            .as_u64()
            .map(|ttl| Duration::from_millis(ttl).min(LONGEST_TTL))
            .ok_or_else(|| HandlerError::invalid_params("`task.ttl` must be milliseconds")),
    }
}
