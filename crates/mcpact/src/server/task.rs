//! Tasks: calls that go on after they were answered. One store serves the core feature of 2025-11-25
//! and the extension of 2026-07-28; only the shapes on the wire differ.

mod outcome;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use mcpact_engine::refusal::Dialect;
use mcpact_spec::{Era, ErrorCode, Method};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use self::outcome::{finish, result};
use super::change::Changes;
use super::context::{CallScope, Context};
use super::date;
use super::dispatch::text;
use super::error::HandlerError;
use super::input::Question;
use super::outbox::Outbox;
use crate::model::{TaskStatus, ToolResult};

/// How many tasks are kept at a time.
const LIMIT: usize = 1000;

/// How long a task is kept when its client does not say.
const DEFAULT_TTL: Duration = Duration::from_secs(60 * 60);

/// The longest time that a client can ask for.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

const POLL_INTERVAL_MS: u64 = 100;

/// Every task of a server.
#[derive(Debug, Default)]
pub(super) struct TaskStore {
    tasks: Mutex<HashMap<String, Arc<TaskHandle>>>,
}

/// A task while it runs and until it is forgotten.
#[derive(Debug)]
pub(super) struct TaskHandle {
    id: String,
    principal: String,
    created: String,
    since: Instant,
    ttl: Duration,
    state: Mutex<TaskState>,
    changed: Notify,
    changes: Arc<Changes>,
    abort: AbortHandle,
}

#[derive(Debug)]
struct TaskState {
    status: TaskStatus,
    message: Option<String>,
    updated: String,
    outcome: Option<Result<Value, Value>>,
    /// The questions that are open; they are answered or told why not.
    waiting: BTreeMap<String, (Question, oneshot::Sender<Result<Value, String>>)>,
    /// Those of them that a request for the result is carrying to its client.
    carried: BTreeSet<String>,
}

impl TaskHandle {
    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether whoever asks may know of it: it is theirs, and its time is not up.
    fn is_for(&self, context: &Context) -> bool {
        self.principal == context.principal() && self.since.elapsed() < self.ttl
    }

    /// Moves on, unless the task has ended: a final status never changes.
    fn set(&self, status: TaskStatus, change: impl FnOnce(&mut TaskState)) -> bool {
        let mut state = self.state();
        if state.status.is_final() {
            return false;
        }
        state.status = status;
        state.updated = date::now();
        change(&mut state);
        self.tell(&state);
        true
    }

    /// Wakes whoever waits, and tells whoever listens. The state is still held, so that what is told
    /// last is what holds.
    fn tell(&self, state: &TaskState) {
        self.changed.notify_waiters();
        let told = Value::Object(self.detailed(state));
        self.changes
            .publish_to(&self.principal, Method::TasksChanged, &told);
    }

    /// Asks whoever looks after the task, and waits for the answers.
    pub(super) async fn ask(
        &self,
        questions: Vec<(String, Question)>,
    ) -> Result<Map<String, Value>, HandlerError> {
        let mut receivers = Vec::new();
        self.set(TaskStatus::InputRequired, |state| {
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

    /// Takes answers that fit; those to questions that are not open are ignored.
    fn answer(&self, responses: Map<String, Value>) {
        let mut state = self.state();
        for (key, answer) in responses {
            let fits = |(question, _): &(Question, _)| question.accepts(&answer);
            if state.waiting.get(&key).is_some_and(fits) {
                state.settle(&key, Ok(answer));
            }
        }
        self.go_on(state);
    }

    /// Works again once nothing is open any more.
    fn go_on(&self, mut state: MutexGuard<'_, TaskState>) {
        if state.waiting.is_empty() && state.status == TaskStatus::InputRequired {
            state.status = TaskStatus::Working;
            state.updated = date::now();
            self.tell(&state);
        }
    }

    /// The task as its era writes it.
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

    fn shown(&self, era: Era) -> String {
        Value::Object(self.encode(&self.state(), era)).to_string()
    }

    /// The task with what its status adds, as the extension writes it.
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
    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<TaskHandle>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a call as a task and gives the result that says so.
    pub(super) fn start(
        &self,
        params: &Map<String, Value>,
        context: &Context,
        run: impl FnOnce(Context) -> BoxFuture<'static, Result<ToolResult, HandlerError>>,
    ) -> Result<String, HandlerError> {
        let ttl = wanted_ttl(params, context.pact().era())?;
        let (abort, registration) = AbortHandle::new_pair();
        let created = date::now();
        let handle = Arc::new(TaskHandle {
            id: super::http::random_id()
                .ok_or_else(|| HandlerError::failed("no random numbers"))?,
            principal: context.principal().to_owned(),
            since: Instant::now(),
            ttl,
            state: Mutex::new(TaskState {
                status: TaskStatus::Working,
                message: Some(String::from("The operation is in progress.")),
                updated: created.clone(),
                outcome: None,
                waiting: BTreeMap::new(),
                carried: BTreeSet::new(),
            }),
            created,
            changed: Notify::new(),
            changes: Arc::clone(&context.call.changes),
            abort,
        });
        self.keep(&handle)?;
        let era = context.pact().era();
        // `2025-11-25 basic/utilities/tasks`: it begins as working, whatever it does at once.
        let task = handle.encode(&handle.state(), era);
        let future = run(for_task(context, &handle));
        let dialect = Dialect {
            revision: context.pact().revision(),
            errors: mcpact_engine::policy::ErrorDialect::Spec,
        };
        tokio::spawn(async move {
            // A task that panics has failed; it must not look as if it worked for ever.
            let guarded = AssertUnwindSafe(future).catch_unwind();
            if let Ok(outcome) = Abortable::new(guarded, registration).await {
                let outcome = outcome.unwrap_or_else(|_| Err(HandlerError::failed_inside()));
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

    /// Keeps a task; those whose time is up make room.
    fn keep(&self, handle: &Arc<TaskHandle>) -> Result<(), HandlerError> {
        let mut tasks = self.tasks();
        tasks.retain(|_, task| {
            let is_kept = task.since.elapsed() < task.ttl;
            if !is_kept {
                task.abort.abort();
            }
            is_kept
        });
        if tasks.len() >= LIMIT {
            return Err(HandlerError::failed(format!(
                "more than {LIMIT} tasks are kept"
            )));
        }
        tasks.insert(handle.id.clone(), Arc::clone(handle));
        Ok(())
    }

    /// The tasks of whoever asks, the oldest first.
    pub(super) fn of(&self, context: &Context) -> Vec<Map<String, Value>> {
        let tasks = self.tasks();
        let mut own: Vec<_> = tasks.values().filter(|task| task.is_for(context)).collect();
        own.sort_by(|one, other| (one.since, &one.id).cmp(&(other.since, &other.id)));
        let era = context.pact().era();
        let encoded = own.iter().map(|task| task.encode(&task.state(), era));
        encoded.collect()
    }

    /// Whether whoever asks has this task.
    pub(super) fn has(&self, id: &str, context: &Context) -> bool {
        let tasks = self.tasks();
        tasks.get(id).is_some_and(|task| task.is_for(context))
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
            (Method::TasksGet, Era::Legacy) => Ok(task.shown(era)),
            (Method::TasksGet, Era::Modern) => {
                let mut detailed = task.detailed(&task.state());
                detailed.insert("resultType".into(), json!("complete"));
                Ok(Value::Object(detailed).to_string())
            }
            (Method::TasksResult, _) => result(&task, context).await,
            (Method::TasksCancel, era) => {
                let was_running = task.set(TaskStatus::Cancelled, |state| {
                    state.message = Some(String::from("The task was cancelled by request."));
                    state.waiting.clear();
                });
                task.abort.abort();
                match era {
                    Era::Modern => Ok(json!({"resultType": "complete"}).to_string()),
                    Era::Legacy if was_running => Ok(task.shown(era)),
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
        let found = self.tasks().get(id).cloned();
        found
            .filter(|task| task.is_for(context))
            .ok_or_else(|| HandlerError::invalid_params(format!("Unknown task: {id}")))
    }
}

/// The context of a handler that runs as a task: its questions wait in the task, and what it says on
/// the way has nowhere to go.
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
            rounds: Mutex::default(),
            changes: Arc::clone(&call.changes),
            task: Some(Arc::clone(handle)),
        }),
    }
}

/// How long a client wants its task to be kept; only the core feature lets it say.
fn wanted_ttl(params: &Map<String, Value>, era: Era) -> Result<Duration, HandlerError> {
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
