//! Calls that run as tasks: the core feature of 2025-11-25 and the extension of 2026-07-28.

use std::collections::HashSet;
use std::time::Duration;

use mcpact_spec::{Era, Method};
use mcpact_wire::raw::{Object, ObjectWriter};
use serde_json::Value;

use super::Client;
use super::calls::{CallOptions, call_params, read};
use super::client_error::{ClientError, RpcError};
use crate::model::{Task, TaskStatus, ToolResult};

/// Default polling interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits of the polling interval.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// Default maximum duration of a task.
const MAXIMUM: Duration = Duration::from_secs(24 * 3600);

/// Options of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskOptions {
    ttl: Option<Duration>,
}

impl TaskOptions {
    /// Creates default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long the server keeps the task. Modern servers ignore it.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

/// Call that runs as a task, or was answered at once.
#[derive(Debug)]
pub struct TaskCall {
    client: Client,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(Box<Task>),
    Answered(String),
}

impl Client {
    /// Calls a tool as a task. A server of 2025-11-25 must have declared it. A modern server decides by itself, if
    /// this client declared the extension with [`ClientBuilder::tasks`](super::ClientBuilder::tasks).
    ///
    /// # Errors
    /// The server does not declare tasks, refuses the call, or times out.
    pub async fn call_tool_as_task(
        &self,
        name: &str,
        arguments: Value,
        options: TaskOptions,
    ) -> Result<TaskCall, ClientError> {
        let mut params = call_params(name, &arguments)?;
        let era = self.pact().era();
        if era == Era::Legacy {
            let ttl = options.ttl.map(|ttl| ttl.as_millis().to_string());
            let task = ObjectWriter::new()
                .maybe_raw("ttl", ttl.as_deref())
                .finish();
            let body = Object::parse(&params).unwrap_or_default();
            params = body.keep(|_| true).raw("task", &task).finish();
        }
        let raw = self.tool_result(params, &CallOptions::new()).await?;
        let task = task_in(era, &raw)?;
        Ok(TaskCall {
            client: self.clone(),
            state: match task {
                Some(task) => State::Running(Box::new(task)),
                None => State::Answered(raw),
            },
        })
    }

    /// Lists the tasks of a server of 2025-11-25, over all pages.
    ///
    /// # Errors
    /// The server does not declare `tasks.list`.
    pub async fn list_tasks(&self) -> Result<Vec<Task>, ClientError> {
        let tasks = self.list(Method::TasksList, "tasks").await?;
        Ok(tasks.items)
    }

    /// Awaits a result that is a task; returns other results unchanged.
    pub(super) async fn await_task(
        &self,
        raw: String,
        options: &CallOptions,
    ) -> Result<String, ClientError> {
        match (self.pact().era(), task_in(Era::Modern, &raw)?) {
            (Era::Modern, Some(task)) => self.poll(task, options).await,
            (Era::Modern | Era::Legacy, _) => Ok(raw),
        }
    }

    async fn poll(&self, mut task: Task, options: &CallOptions) -> Result<String, ClientError> {
        let polling = async {
            let mut answered = HashSet::new();
            loop {
                match task.status {
                    TaskStatus::Completed => {
                        let result = task.extra.get("result");
                        return Ok(result.map(Value::to_string).unwrap_or_default());
                    }
                    TaskStatus::Failed => {
                        let error = task.extra.get("error").map(Value::to_string);
                        return Err(RpcError::parse(&error.unwrap_or_default()).into());
                    }
                    TaskStatus::Cancelled => return Err(ClientError::Cancelled),
                    TaskStatus::InputRequired => self.update(&task, &mut answered).await?,
                    TaskStatus::Working => {}
                }
                let interval = task.interval_ms().map_or(INTERVAL, Duration::from_millis);
                tokio::time::sleep(interval.clamp(INTERVALS.0, INTERVALS.1)).await;
                task = self.task(&task.task_id).await?;
            }
        };
        tokio::select! {
            outcome = polling => outcome,
            () = options.cancelled() => Err(ClientError::Cancelled),
            () = tokio::time::sleep(options.maximum.unwrap_or(MAXIMUM)) => {
                Err(ClientError::Timeout { method: Method::TasksGet.as_str().to_owned() })
            }
        }
    }

    /// Answers new questions of a task.
    async fn update(&self, task: &Task, answered: &mut HashSet<String>) -> Result<(), ClientError> {
        let Some(Value::Object(questions)) = task.extra.get("inputRequests") else {
            return Ok(());
        };
        let open = questions
            .iter()
            .filter(|(key, _)| !answered.contains(*key))
            .map(|(key, question)| (key.clone(), question.clone()));
        let open = serde_json::Map::from_iter(open);
        if open.is_empty() {
            return Ok(());
        }
        answered.extend(open.keys().cloned());
        let responses = self.answer_all(&Value::Object(open).to_string()).await?;
        let params = ObjectWriter::new()
            .text("taskId", &task.task_id)
            .raw("inputResponses", &responses)
            .finish();
        self.ask_plainly(Method::TasksUpdate, Some(params)).await?;
        Ok(())
    }

    async fn task(&self, id: &str) -> Result<Task, ClientError> {
        let params = ObjectWriter::new().text("taskId", id).finish();
        let method = Method::TasksGet;
        let raw = self.ask_plainly(method, Some(params)).await?;
        read(method, &raw)
    }
}

/// Returns the task in a result: nested in 2025-11-25, flat in the extension.
fn task_in(era: Era, raw: &str) -> Result<Option<Task>, ClientError> {
    let body = Object::parse(raw).unwrap_or_default();
    let task = match era {
        Era::Legacy => body.get_present("task"),
        Era::Modern => (body.get_str("resultType").as_deref() == Some("task")).then_some(raw),
    };
    task.map(|raw| read(Method::ToolsCall, raw)).transpose()
}

impl TaskCall {
    /// Returns the last known state of the task; none if the server answered at once.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        match &self.state {
            State::Running(task) => Some(task),
            State::Answered(_) => None,
        }
    }

    /// Fetches the state of the task.
    ///
    /// # Errors
    /// The server does not know the task, or times out.
    pub async fn refresh(&mut self) -> Result<Option<&Task>, ClientError> {
        if let State::Running(task) = &mut self.state {
            **task = self.client.task(&task.task_id).await?;
        }
        Ok(self.task())
    }

    /// Waits for the result and answers questions of the server meanwhile.
    ///
    /// # Errors
    /// The task failed, was cancelled, or is unknown to the server.
    pub async fn result(self) -> Result<ToolResult, ClientError> {
        let client = &self.client;
        let raw = match self.state {
            State::Answered(raw) => raw,
            State::Running(task) => match client.pact().era() {
                Era::Modern => client.poll(*task, &CallOptions::new()).await?,
                Era::Legacy => {
                    let params = ObjectWriter::new().text("taskId", &task.task_id).finish();
                    let options = CallOptions::new().timeout(MAXIMUM).maximum(MAXIMUM);
                    let method = Method::TasksResult.as_str();
                    client.ask(method, Some(params), &options).await?
                }
            },
        };
        read(Method::ToolsCall, &raw)
    }

    /// Cancels the task. A modern server may still finish it.
    ///
    /// # Errors
    /// The task has ended already (2025-11-25), or the server times out.
    pub async fn cancel(&self) -> Result<(), ClientError> {
        if let State::Running(task) = &self.state {
            let params = ObjectWriter::new().text("taskId", &task.task_id).finish();
            let method = Method::TasksCancel;
            self.client.ask_plainly(method, Some(params)).await?;
        }
        Ok(())
    }
}
