//! Calls that wait for a server task, for clients that do not follow tasks themselves.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::connection::{Call, RawResult, ServerResponse};
use mcpact_spec::{Capability, ErrorCode, Extension, Feature, Method};
use mcpact_translate::input::{NextStep, Outcome, Rounds};
use mcpact_translate::tasks::{
    CallMode, FollowedTask, Step, TaskSupports, created_task, with_task,
};
use mcpact_wire::raw::Object;
use tokio::sync::Mutex as AsyncMutex;

use crate::connection::UpstreamConnection;
use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};
use crate::exchange::rounds::{self, QuestionChannel, new_url_id};
use crate::exchange::{Exchange, refuse};
use crate::suspended;
use crate::sync::lock;
use crate::tasks::{QUESTIONS, task_params};
use crate::upstream::UpstreamServer;
use crate::upstream::binding::ServerBinding;

/// Maximum number of consecutive failures to get the task status.
const ATTEMPTS: u32 = 5;

/// Maximum number of tools to remember.
const TOOLS: usize = 4096;

/// Task support of tools, from the server's tool list.
#[derive(Debug)]
pub(crate) struct ToolTasks {
    supports: Mutex<TaskSupports>,
    /// Version of the tool list, incremented on every change.
    version: AtomicU64,
    /// Last version that was read completely. Locked while the list is read; other calls wait for it.
    read: AsyncMutex<u64>,
}

impl Default for ToolTasks {
    fn default() -> Self {
        Self {
            supports: Mutex::new(TaskSupports::new(TOOLS)),
            version: AtomicU64::new(1),
            read: AsyncMutex::new(0),
        }
    }
}

impl ToolTasks {
    /// Records a page of the list.
    pub(crate) fn learn(&self, page: &str) {
        if let Err(fault) = lock(&self.supports).learn(page) {
            tracing::debug!(%fault, "invalid tool list");
        }
    }

    /// Marks the known list as outdated.
    pub(crate) fn forget(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the mode of a call to a server of 2025-11-25. A client of the same revision chooses itself.
pub(crate) async fn call_mode(server: &UpstreamServer, exchange: &Exchange) -> CallMode {
    let job = &exchange.inbound.job;
    let declared = &exchange.connection.upstream.introduction.capabilities;
    let is_plain = job.method != Some(Method::ToolsCall)
        || exchange.downstream().has(Feature::TasksCore)
        || !declared.declared().has(Capability::ServerTasksToolsCall);
    if is_plain {
        return CallMode::Plain;
    }
    Box::pin(read_tools_once(server, exchange)).await;
    let params = Object::parse(&job.params).unwrap_or_default();
    let tool = params.get_str("name").unwrap_or_default();
    let follows = job.pact.lacking(Extension::Tasks).is_none();
    lock(&server.shared.tool_tasks.supports).way(&tool, declared, follows)
}

/// Reads the tool list if needed, because a client may call a tool without listing tools first. Concurrent calls
/// wait for one reader.
async fn read_tools_once(server: &UpstreamServer, exchange: &Exchange) {
    let tools = &server.shared.tool_tasks;
    let mut read = tools.read.lock().await;
    let version = tools.version.load(Ordering::Relaxed);
    // Set only after the read: concurrent calls would otherwise treat unknown tools as tools without task
    // support. If the list has changed meanwhile, the next call reads it again.
    if *read != version && rounds::read_tools(exchange).await {
        *read = version;
    }
}

/// Server task with a waiting call; dropping it cancels the task.
#[derive(Debug)]
pub(crate) struct StartedTask {
    connection: Arc<UpstreamConnection>,
    /// Parameters of the cancel request.
    params: String,
    is_ended: bool,
}

impl StartedTask {
    pub(crate) fn new(exchange: &Exchange, id: &str) -> Result<Self, ServeError> {
        Ok(Self {
            connection: Arc::clone(&exchange.connection),
            params: exchange.stamped(&task_params(id))?.into_owned(),
            is_ended: false,
        })
    }

    /// Marks the task as ended, so that nothing is cancelled.
    pub(crate) const fn set_ended(&mut self) {
        self.is_ended = true;
    }
}

impl Drop for StartedTask {
    fn drop(&mut self) {
        if self.is_ended || self.connection.upstream.is_gone() {
            return;
        }
        let connection = Arc::clone(&self.connection);
        let params = std::mem::take(&mut self.params);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The task may have ended already.
                let _ = connection.request(Method::TasksCancel, &params).await;
            });
        }
    }
}

/// Outcome of a call that was sent as a task.
pub(crate) enum SentCall {
    /// The server created a task; the request for its result replaces the call.
    Waiting(Call, StartedTask),
    /// The server responded without creating a task.
    Answered(ServerResponse),
}

/// Sends a call to a server of 2025-11-25 as a task. Returns the response, and the id of the task if the server
/// created one.
pub(crate) async fn send_as_task(
    exchange: &mut Exchange,
    params: &str,
) -> Result<(ServerResponse, Option<String>), ServeError> {
    let params = with_task(params).map_err(|fault| exchange.malformed(&fault))?;
    // No task exists yet to which a question could belong.
    let reply = suspended::send_without_questions(exchange, &params, None).await?;
    let task = match &reply {
        ServerResponse::Result(raw) => created_task(raw).map(Cow::into_owned),
        ServerResponse::Error(_) => None,
    };
    Ok((reply, task))
}

/// Calls a tool that runs only as a task, for a client without task support.
pub(crate) async fn begin(exchange: &mut Exchange, params: &str) -> Result<SentCall, ServeError> {
    let (reply, task) = send_as_task(exchange, params).await?;
    let Some(id) = task else {
        return Ok(SentCall::Answered(reply));
    };
    let started = StartedTask::new(exchange, &id)?;
    let call = request_result(&exchange.connection, &id).await;
    Ok(SentCall::Waiting(call, started))
}

/// Returns true if the tasks of this connection are lost with its process or session.
pub(crate) fn lost_tasks(connection: &UpstreamConnection) -> bool {
    connection.upstream.is_gone() && !connection.upstream.is_free()
}

/// Returns a connection for requests about a task that a modern server started here. A new connection is used if
/// this one is closed and the task is still reachable.
pub(crate) async fn connection_for_task(
    connection: &Arc<UpstreamConnection>,
    binding: &ServerBinding,
) -> Result<Arc<UpstreamConnection>, UpstreamError> {
    if !connection.upstream.is_gone() {
        return Ok(Arc::clone(connection));
    }
    if !lost_tasks(connection) {
        return binding.connection().await;
    }
    let why = connection.upstream.end().unwrap_or_default();
    Err(binding.lost_call(match connection.is_ended() {
        true => UpstreamErrorKind::Stopped,
        false => binding.loss_error(connection, why),
    }))
}

/// Requests the result of a task from a server of 2025-11-25; questions of the task arrive on this call.
pub(crate) async fn request_result(connection: &UpstreamConnection, id: &str) -> Call {
    connection.call(Method::TasksResult, &task_params(id)).await
}

/// Polls the task until it ends; the client sees one call with questions in it.
pub(crate) async fn follow(
    server: &UpstreamServer,
    exchange: Exchange,
    result: &str,
) -> Result<RawResult, ServeError> {
    let Some(mut task) = FollowedTask::new(result, QUESTIONS) else {
        let why = "the server created a task without `taskId`";
        return Err(refuse(ErrorCode::InternalError, why, exchange.downstream()));
    };
    let mut started = StartedTask::new(&exchange, task.id())?;
    let _awake = exchange.connection.hold();
    let params = task_params(task.id());
    let mut pause = task.pause();
    let mut rounds = rounds_of_task(server, &exchange);
    loop {
        let detailed = poll(&exchange, task.id(), pause).await?;
        let step = task.status(&detailed);
        if let Step::Ask(_) = step {
            // New questions get new round limits; repeated ones are limited as in a call without a task.
            rounds = rounds_of_task(server, &exchange);
        }
        match step {
            Step::Poll(after) => pause = after,
            Step::Ask(round) | Step::AskAgain(round) => {
                let answered = answer_task(server, &exchange, &params, &round, &mut rounds);
                if let Some(raw) = answered.await? {
                    return Ok(raw.into());
                }
                pause = task.pause();
            }
            Step::End(outcome) => {
                started.set_ended();
                return match outcome {
                    Outcome::Result(raw) => exchange.result(&raw.into()),
                    Outcome::Error(raw) => Err(exchange.error(&raw)),
                };
            }
        }
    }
}

/// Gets the status of the server's task. A broken connection is reopened, unless the task was lost with it.
pub(crate) async fn poll(
    exchange: &Exchange,
    upstream: &str,
    after: Duration,
) -> Result<RawResult, ServeError> {
    let params = task_params(upstream);
    let params = exchange.stamped(&params)?;
    let mut attempt = 0;
    loop {
        tokio::time::sleep(after).await;
        attempt += 1;
        let connection = connection_for_task(&exchange.connection, &exchange.binding).await;
        let lost = match connection {
            Ok(connection) => match connection.request(Method::TasksGet, &params).await {
                Ok(ServerResponse::Result(raw)) => return Ok(raw),
                Ok(ServerResponse::Error(raw)) => return Err(exchange.error(&raw)),
                Err(loss) => exchange.lost(&loss),
            },
            Err(error) => error.into(),
        };
        if attempt >= ATTEMPTS || lost_tasks(&exchange.connection) {
            return Err(lost);
        }
    }
}

fn rounds_of_task(server: &UpstreamServer, exchange: &Exchange) -> Rounds {
    let rounds = Rounds::new(
        Method::ToolsCall,
        exchange.inbound.job.pact.clone(),
        exchange.upstream(),
        server.settings.rounds,
        server.clock.now(),
    );
    rounds.with_default_answers(&server.settings.default_answers)
}

/// Sends the task's questions to the client, and the answers to the task. Returns the call's result if a missing
/// answer ends the call.
async fn answer_task(
    server: &UpstreamServer,
    exchange: &Exchange,
    params: &str,
    round: &str,
    rounds: &mut Rounds,
) -> Result<Option<String>, ServeError> {
    let here = QuestionChannel::Here;
    let mut turn = rounds.server_result(round, server.clock.now(), &mut new_url_id);
    while let NextStep::Ask(questions) = turn {
        turn = rounds::ask(server, exchange, here, questions, rounds).await;
    }
    match turn {
        NextStep::Again => {
            let answers = rounds.next_params(params);
            exchange
                .request_separately(Method::TasksUpdate, &answers)
                .await?;
            Ok(None)
        }
        NextStep::Answer(raw) => Ok(Some(raw)),
        NextStep::Fail(error) => Err(error.into()),
        _ => Ok(None),
    }
}
