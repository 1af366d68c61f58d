//! Tasks: calls that go on after they were answered. One store serves the core feature of 2025-11-25
//! and the extension of 2026-07-28; only the shapes on the wire differ.

mod date;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use mcpact_engine::refusal::Dialect;
use mcpact_spec::{Era, ErrorCode, Method};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};

use super::context::{CallScope, Context};
use super::dispatch::text;
use super::error::{HandlerError, Kind};
use super::input::Question;
use crate::model::{TaskStatus, ToolResult};

/// How many tasks are kept at a time.
const LIMIT: usize = 1000;

/// How long a task is kept when its client does not say.
const DEFAULT_TTL: Duration = Duration::from_secs(60 * 60);

/// The longest time that a client can ask for.
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

const POLL_INTERVAL_MS: u64 = 100;

const RELATED: &str = "io.modelcontextprotocol/related-task";

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
    abort: AbortHandle,
}

#[derive(Debug)]
struct TaskState {
    status: TaskStatus,
    message: Option<String>,
    updated: String,
    outcome: Option<Result<Value, Value>>,
    open: Map<String, Value>,
    waiting: HashMap<String, (Question, oneshot::Sender<Value>)>,
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
        drop(state);
        self.changed.notify_waiters();
        true
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
                state.open.insert(key.clone(), question.request());
                state.waiting.insert(key.clone(), (question, sender));
                receivers.push((key, receiver));
            }
        });
        let mut answers = Map::new();
        for (key, receiver) in receivers {
            let answer = receiver
                .await
                .map_err(|_| HandlerError::failed("the task was cancelled"))?;
            answers.insert(key, answer);
        }
        self.set(TaskStatus::Working, |_| {});
        Ok(answers)
    }

    /// Takes answers; those to questions that are not open are ignored.
    fn answer(&self, responses: &Map<String, Value>) {
        let mut state = self.state();
        for (key, answer) in responses {
            let fits = state
                .waiting
                .get(key)
                .is_some_and(|(question, _)| question.accepts(answer));
            if !fits {
                continue;
            }
            state.open.remove(key);
            if let Some((_, sender)) = state.waiting.remove(key) {
                let _ = sender.send(answer.clone());
            }
        }
        if state.open.is_empty() && state.status == TaskStatus::InputRequired {
            state.status = TaskStatus::Working;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The task as its era writes it.
    fn encode(&self, era: Era) -> Map<String, Value> {
        let state = self.state();
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

    /// The task with what its status adds, as the extension writes it.
    fn detailed(&self) -> Value {
        let mut task = self.encode(Era::Modern);
        let state = self.state();
        match (&state.status, &state.outcome) {
            (TaskStatus::InputRequired, _) => {
                task.insert("inputRequests".into(), Value::Object(state.open.clone()));
            }
            (_, Some(Ok(result))) => drop(task.insert("result".into(), result.clone())),
            (_, Some(Err(error))) => drop(task.insert("error".into(), error.clone())),
            (_, None) => {}
        }
        task.insert("resultType".into(), json!("complete"));
        Value::Object(task)
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
        let ttl = params
            .get("task")
            .and_then(|task| task.get("ttl"))
            .and_then(Value::as_u64);
        let (abort, registration) = AbortHandle::new_pair();
        let created = date::now();
        let handle = Arc::new(TaskHandle {
            id: super::http::random_id()
                .ok_or_else(|| HandlerError::failed("no random numbers"))?,
            principal: context.principal().to_owned(),
            since: Instant::now(),
            ttl: ttl
                .map_or(DEFAULT_TTL, Duration::from_millis)
                .min(LONGEST_TTL),
            state: Mutex::new(TaskState {
                status: TaskStatus::Working,
                message: Some(String::from("The operation is in progress.")),
                updated: created.clone(),
                outcome: None,
                open: Map::new(),
                waiting: HashMap::new(),
            }),
            created,
            changed: Notify::new(),
            abort,
        });
        self.keep(&handle)?;
        let future = run(for_task(context, &handle));
        let dialect = Dialect {
            revision: context.pact().revision(),
            errors: mcpact_engine::policy::ErrorDialect::Spec,
        };
        let task = Arc::clone(&handle);
        tokio::spawn(async move {
            if let Ok(outcome) = Abortable::new(future, registration).await {
                finish(&task, outcome, dialect);
            }
        });
        let era = context.pact().era();
        let task = handle.encode(era);
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
        tasks.retain(|_, task| task.since.elapsed() < task.ttl);
        if tasks.len() >= LIMIT {
            return Err(HandlerError::failed(format!(
                "more than {LIMIT} tasks are kept"
            )));
        }
        tasks.insert(handle.id.clone(), Arc::clone(handle));
        Ok(())
    }

    pub(super) async fn serve(
        &self,
        method: Method,
        params: &Map<String, Value>,
        context: &Context,
    ) -> Result<String, HandlerError> {
        let era = context.pact().era();
        if method == Method::TasksList {
            let tasks = self.tasks();
            let own = tasks.values().filter(|task| task.is_for(context));
            let all: Vec<_> = own.map(|task| task.encode(era)).collect();
            return Ok(json!({ "tasks": all }).to_string());
        }
        let task = self.find(params, context)?;
        match (method, era) {
            (Method::TasksGet, Era::Legacy) => Ok(Value::Object(task.encode(era)).to_string()),
            (Method::TasksGet, Era::Modern) => Ok(task.detailed().to_string()),
            (Method::TasksResult, _) => result(&task, context).await,
            (Method::TasksCancel, era) => {
                let was_running = task.set(TaskStatus::Cancelled, |state| {
                    state.message = Some(String::from("The task was cancelled by request."));
                    state.waiting.clear();
                    state.open.clear();
                });
                task.abort.abort();
                match era {
                    Era::Modern => Ok(json!({"resultType": "complete"}).to_string()),
                    Era::Legacy if was_running => Ok(Value::Object(task.encode(era)).to_string()),
                    Era::Legacy => Err(HandlerError::invalid_params("the task has ended already")),
                }
            }
            (Method::TasksUpdate, _) => {
                if let Some(Value::Object(responses)) = params.get("inputResponses") {
                    task.answer(responses);
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

/// `2025-11-25 basic/utilities/tasks#result-retrieval`: waits for the end, and meanwhile carries the
/// task's questions to the client.
async fn result(task: &Arc<TaskHandle>, context: &Context) -> Result<String, HandlerError> {
    loop {
        let changed = task.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let (outcome, status, questions) = {
            let mut state = task.state();
            let keys: Vec<String> = state.open.keys().cloned().collect();
            let questions: Vec<_> = keys
                .iter()
                .filter_map(|key| {
                    state.open.remove(key);
                    state
                        .waiting
                        .get(key)
                        .map(|(question, _)| (key.clone(), question.clone()))
                })
                .collect();
            (state.outcome.clone(), state.status, questions)
        };
        match (outcome, status) {
            (Some(Ok(mut result)), _) => {
                result["_meta"][RELATED] = json!({"taskId": task.id});
                return Ok(result.to_string());
            }
            (Some(Err(error)), _) => {
                let code = error["code"]
                    .as_i64()
                    .unwrap_or(ErrorCode::InternalError.code());
                let message = error["message"].as_str().unwrap_or_default().to_owned();
                return Err(HandlerError::rpc(code, message));
            }
            (None, TaskStatus::Cancelled) => {
                return Err(HandlerError::rpc(
                    ErrorCode::InternalError.code(),
                    "the task was cancelled",
                ));
            }
            (None, _) => {}
        }
        if questions.is_empty() {
            changed.await;
        } else {
            let answers = context.push_all(questions, Some(&task.id)).await?;
            task.answer_all(answers);
        }
    }
}

impl TaskHandle {
    /// Takes answers that came on the client's own request for the result.
    fn answer_all(&self, answers: Map<String, Value>) {
        let mut state = self.state();
        for (key, answer) in answers {
            if let Some((_, sender)) = state.waiting.remove(&key) {
                let _ = sender.send(answer);
            }
        }
    }
}

/// The context of a handler that runs as a task: its questions wait in the task, and what it says on
/// the way has nowhere to go.
fn for_task(context: &Context, handle: &Arc<TaskHandle>) -> Context {
    let call = &context.call;
    let (nowhere, _) = tokio::sync::mpsc::channel(1);
    Context {
        call: Arc::new(CallScope {
            id: call.id.clone(),
            name: call.name.clone(),
            pact: Arc::clone(&call.pact),
            progress_token: None,
            session: Arc::clone(&call.session),
            outbox: super::context::Outbox(nowhere),
            rounds: Mutex::default(),
            changes: Arc::clone(&call.changes),
            task: Some(Arc::clone(handle)),
        }),
    }
}

/// A tool that failed has still completed in the extension, and has failed in the core feature.
fn finish(task: &TaskHandle, outcome: Result<ToolResult, HandlerError>, dialect: Dialect) {
    let outcome = match outcome {
        Err(HandlerError(Kind::Failed(text))) => Ok(ToolResult::error(text)),
        other => other,
    };
    let (status, outcome) = match outcome {
        Ok(result) => {
            let failed = result.failed() && dialect.revision.era() == Era::Legacy;
            let status = if failed {
                TaskStatus::Failed
            } else {
                TaskStatus::Completed
            };
            (status, Ok(serde_json::to_value(result).unwrap_or_default()))
        }
        Err(error) => {
            let wire = error.on_wire(dialect);
            let mut error = json!({"code": wire.code, "message": wire.message});
            if let Some(data) = wire.data.and_then(|data| serde_json::from_str(&data).ok()) {
                let data: Value = data;
                error["data"] = data;
            }
            (TaskStatus::Failed, Err(error))
        }
    };
    task.set(status, |state| {
        state.message = match &outcome {
            Ok(_) => Some(String::from("The operation has ended.")),
            Err(error) => error["message"].as_str().map(str::to_owned),
        };
        state.outcome = Some(outcome);
    });
}
