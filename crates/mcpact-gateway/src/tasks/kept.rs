//! Tasks of a server for clients of its own era.
//!
//! Running tasks prevent idle shutdown of the server. If several clients share the instances of a server, the public
//! task id contains the instance, because other instances do not know the task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytestring::ByteString;
use mcpact_engine::server::Scope;
use mcpact_spec::{Era, ErrorCode, Extension, Feature, Method};
use mcpact_translate::tasks::Status;
use mcpact_wire::raw::Object;
use tokio::time::Instant;

use mcpact::connection::{ServerNotification, ServerRequest, related_task};

use crate::aggregate::rewrite::with_subject;
use crate::aggregate::task_ids::TaskMap;
use crate::connection::UpstreamConnection;
use crate::connection::ownership::ConnectionUser;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::{Exchange, refusal};
use crate::sync::lock;
use crate::tasks::ids::TaskName;
use crate::tasks::{LONGEST, TASKS, meant};

/// Tasks of one session, by the ids that the server assigned.
#[derive(Debug, Default)]
pub(crate) struct KeptTasks {
    tasks: Mutex<HashMap<Box<str>, Task>>,
}

#[derive(Debug)]
struct Task {
    /// Receiver of notifications about the task.
    sink: WeakClientSink,
    /// Owner of the task; the task does not exist for other clients.
    owner: Box<str>,
    /// Expiry time of the task at the server.
    until: Instant,
    is_over: bool,
}

impl KeptTasks {
    fn tasks(&self) -> MutexGuard<'_, HashMap<Box<str>, Task>> {
        let mut tasks = lock(&self.tasks);
        let now = Instant::now();
        tasks.retain(|_, task| task.until > now);
        tasks
    }

    /// Returns true if any task may still run.
    pub(crate) fn are_running(&self) -> bool {
        self.tasks().values().any(|task| !task.is_over)
    }

    /// Records the status of a task.
    fn note(&self, task: &Object<'_>, sink: &ClientSink) {
        let Some(id) = task.get_str("taskId") else {
            return;
        };
        let status = task.get_str("status");
        let status = status.and_then(|word| Status::parse(&word));
        let is_over = status.is_some_and(Status::is_terminal);
        let mut tasks = self.tasks();
        if let Some(known) = tasks.get_mut(&*id) {
            known.is_over |= is_over;
            return;
        }
        if tasks.len() >= TASKS {
            // A finished task makes room for a running one.
            let over = tasks.iter().find(|(_, task)| task.is_over);
            let over = over.map(|(id, _)| id.clone());
            over.map(|id| tasks.remove(&id));
        }
        if tasks.len() < TASKS {
            let lasts = ["ttl", "ttlMs"].into_iter().find_map(|key| task.get(key));
            let lasts = lasts.and_then(|raw| raw.parse().ok());
            let lasts = lasts.map_or(LONGEST, Duration::from_millis).min(LONGEST);
            let task = Task {
                sink: sink.downgrade(),
                owner: Box::from(sink.owner()),
                until: Instant::now() + lasts,
                is_over,
            };
            tasks.insert(Box::from(&*id), task);
        }
    }

    fn over(&self, id: &str) {
        if let Some(task) = self.tasks().get_mut(id) {
            task.is_over = true;
        }
    }

    /// Returns the sink for notifications about a task that may still run.
    fn sink(&self, id: &str) -> Option<ClientSink> {
        let tasks = self.tasks();
        let task = tasks.get(id).filter(|task| !task.is_over);
        task?.sink.upgrade()
    }

    /// Returns true if the task exists and belongs to another owner.
    fn is_of_another(&self, id: &str, owner: &str) -> bool {
        let tasks = self.tasks();
        tasks.get(id).is_some_and(|task| *task.owner != *owner)
    }
}

/// Returns the mapping from task ids to the public ids for this owner.
pub(crate) fn named_tasks(
    connection: &UpstreamConnection,
    owner: &str,
) -> TaskMap<impl Fn(&str) -> String> {
    let instance = &*connection.name;
    TaskMap(move |task: &str| TaskName { instance, task }.shown(owner))
}

/// Sends a task notification of a shared session to the task's owner only.
pub(crate) fn notify_task_owner(connection: &UpstreamConnection, note: &ServerNotification) {
    let params = &note.params;
    let task = Object::parse(params).unwrap_or_default();
    let id = task.get_str("taskId").unwrap_or_default();
    let Some(owner) = connection.kept.sink(&id) else {
        return;
    };
    connection.kept.note(&task, &owner);
    if let Some(shown) = named_tasks(connection, owner.owner()).params(note.method, params) {
        owner.try_notify(&Scope::Connection, note.method, &shown);
    }
}

/// Returns the client for a question about a task, and the parameters with the client's task id.
pub(crate) fn asked_for_task(
    connection: &UpstreamConnection,
    ask: &ServerRequest,
) -> Option<(ClientSink, ByteString)> {
    let params = &ask.params;
    let owner = connection.kept.sink(&related_task(params)?)?;
    let shown = named_tasks(connection, owner.owner()).params(ask.method?, params)?;
    Some((owner, shown.into()))
}

/// Returns true if public task ids contain the instance. That is needed if only one instance knows a task and
/// clients share instances. With a sessionless endpoint, every connection reaches all tasks.
pub(crate) fn names_tasks(exchange: &Exchange) -> bool {
    let (down, up) = (exchange.downstream(), exchange.upstream());
    let is_placed = match (down.era(), up.era()) {
        (Era::Legacy, Era::Legacy) => down.has(Feature::TasksCore) && up.has(Feature::TasksCore),
        (Era::Modern, Era::Modern) => !exchange.connection.upstream.is_free(),
        (Era::Legacy, Era::Modern) | (Era::Modern, Era::Legacy) => false,
    };
    is_placed && exchange.binding.pool().is_some()
}

/// Returns the method if the request concerns one task at the server.
fn about_task(exchange: &Exchange) -> Option<Method> {
    let method = exchange.inbound.job.method?;
    let is_about_one = matches!(
        method,
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate
    );
    is_about_one.then_some(method)
}

/// Selects the instance that runs the task. Returns the parameters with the task id of that instance.
pub(crate) async fn select_instance(exchange: &mut Exchange) -> Result<Option<String>, ServeError> {
    let Some(method) = about_task(exchange) else {
        return Ok(None);
    };
    let owner = exchange.inbound.sink.owner();
    if !names_tasks(exchange) {
        return match meant(&exchange.inbound) {
            Ok(task) if is_of_another(exchange, &task, owner) => Err(unknown_task(exchange, &task)),
            Ok(_) | Err(_) => Ok(None),
        };
    }
    let task = meant(&exchange.inbound)?;
    let Some(named) = TaskName::parse(&task, owner) else {
        return Err(unknown_task(exchange, &task));
    };
    let connection = connection_named(exchange, named.instance);
    let connection = connection.ok_or_else(|| task_gone(exchange))?;
    let entered = connection.running.start_call().await;
    let entered = entered.map_err(|failure| exchange.binding.error(failure))?;
    let guard = entered.ok_or_else(|| task_gone(exchange))?;
    let params = with_subject(method, &exchange.inbound.job.params, named.task);
    exchange.connection = connection;
    exchange.guard = Some(guard);
    Ok(params)
}

/// Returns the open connection to the instance with this name.
pub(crate) fn connection_named(exchange: &Exchange, name: &str) -> Option<Arc<UpstreamConnection>> {
    let mut connections = exchange
        .binding
        .pool()?
        .open_connections(&ConnectionUser::Gateway)
        .into_iter();
    connections.find(|connection| *connection.name == *name)
}

/// Returns true if another client started the task with this id.
pub(crate) fn is_of_another(exchange: &Exchange, task: &str, owner: &str) -> bool {
    let connections = exchange
        .binding
        .pool()
        .map(|pool| pool.open_connections(&ConnectionUser::Gateway));
    let mut connections = connections.into_iter().flatten();
    connections.any(|connection| connection.kept.is_of_another(task, owner))
}

/// Error for an unknown task. A task of another client gives the same error.
fn unknown_task(exchange: &Exchange, task: &str) -> ServeError {
    let why = format!("Unknown task: `{task}`; see whether it is one that this client was given");
    let code = ErrorCode::InvalidParams.code();
    refusal(code, why, None, exchange.downstream())
}

fn task_gone(exchange: &Exchange) -> ServeError {
    exchange
        .binding
        .lost_call(UpstreamErrorKind::TaskLost)
        .into()
}

/// Refuses to resend a task request to another instance, where the id would refer to another task.
pub(crate) fn check_same_instance(exchange: &Exchange) -> Result<(), ServeError> {
    match about_task(exchange).filter(|_| names_tasks(exchange)) {
        Some(_) => Err(task_gone(exchange)),
        None => Ok(()),
    }
}

/// Records a task in a response, and replaces its id by the public one.
pub(crate) fn record_tasks(exchange: &Exchange, raw: ByteString) -> ByteString {
    let Some(method) = exchange.inbound.job.method else {
        return raw;
    };
    note_task(exchange, method, &raw);
    if !names_tasks(exchange) {
        return raw;
    }
    let owner = exchange.inbound.sink.owner();
    let shown = named_tasks(&exchange.connection, owner).result(method, &raw);
    shown.map_or(raw, Into::into)
}

/// Returns true if the client accepts a task as the result of the call.
fn may_become_task(exchange: &Exchange) -> bool {
    let job = &exchange.inbound.job;
    match job.pact.era() {
        Era::Legacy => !job.params.is_plain_call(),
        Era::Modern => job.pact.lacking(Extension::Tasks).is_none(),
    }
}

fn note_task(exchange: &Exchange, method: Method, raw: &str) {
    let (kept, sink) = (&exchange.connection.kept, &exchange.inbound.sink);
    match method {
        Method::ToolsCall if may_become_task(exchange) && raw.contains("taskId\"") => {
            let result = Object::parse(raw).unwrap_or_default();
            let created = result.get("task").and_then(|raw| Object::parse(raw).ok());
            let is_task = result.get_str("resultType").as_deref() == Some("task");
            match created.filter(|_| result.get("content").is_none()) {
                Some(task) => kept.note(&task, sink),
                None if is_task => kept.note(&result, sink),
                None => {}
            }
        }
        Method::TasksGet | Method::TasksCancel => {
            kept.note(&Object::parse(raw).unwrap_or_default(), sink);
        }
        Method::TasksResult => {
            if let Some(id) = related_task(raw) {
                kept.over(&id);
            }
        }
        _ => {}
    }
}
