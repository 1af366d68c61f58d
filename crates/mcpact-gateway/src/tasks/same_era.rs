//! Tasks of a server for clients of its own era.
//!
//! Running tasks prevent idle shutdown of the server. If several clients share the instances of a server, the public
//! task id contains the instance: other instances do not know the task, and often number their tasks alike. The id also
//! contains an authentication code that cannot be derived from other ids and binds the id to its owner. It stays
//! verifiable without stored state, even after the instance has ended.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use bytestring::ByteString;
use mcpact::connection::RawResult;
use mcpact::connection::{ServerNotification, ServerRequest, related_task};
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::{Era, ErrorCode, Extension, Feature, Method};
use mcpact_translate::tasks::Status;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::{SeenKeys, text};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::aggregate::rewrite::{edit, edit_each, quoted, with_subject};
use crate::aggregate::task_ids::{TaskMap, qualified_id, split_id};
use crate::connection::UpstreamConnection;
use crate::connection::ownership::ConnectionUser;
use crate::downstream::sink::{ClientSink, WeakClientSink};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::{Exchange, refuse};
use crate::sync::lock;
use crate::target::{Target, hex};
use crate::tasks::{LONGEST, TASKS, task_id};

/// Key of the authentication codes. It lives as long as the process, because servers may be added and removed.
static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
    let mut key = [0; 32];
    // Without randomness no server starts either, because sealing of client state needs it, too.
    let _ = getrandom::fill(&mut key);
    key
});

/// Name of no instance, for tasks that every connection reaches.
const EVERYWHERE: &str = "";

/// Number of digest bytes in an authentication code.
const CODE: usize = 8;

/// Parsed public task id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PublicTaskId<'n> {
    pub(crate) instance: &'n str,
    /// Task id at the instance.
    pub(crate) task: &'n str,
}

impl<'n> PublicTaskId<'n> {
    /// Parses a public id; `None` if it was not issued to this owner.
    pub(crate) fn parse(name: &'n str, owner: &str) -> Option<Self> {
        let (place, task) = split_id(name)?;
        let (instance, code) = place.split_once('-')?;
        let id = Self { instance, task };
        // Comparing digests makes the timing independent of the authentication code.
        let is_valid = Sha256::digest(code) == Sha256::digest(id.code(owner));
        is_valid.then_some(id)
    }

    /// Returns the public id for this owner.
    pub(crate) fn shown(self, owner: &str) -> String {
        let place = format!("{}-{}", self.instance, self.code(owner));
        qualified_id(&place, self.task)
    }

    fn code(self, owner: &str) -> String {
        let mut inner = Sha256::new_with_prefix(*KEY);
        for part in [self.instance, owner, self.task] {
            inner.update(part.len().to_be_bytes());
            inner.update(part);
        }
        let outer = Sha256::new_with_prefix(*KEY).chain_update(inner.finalize());
        let digest = outer.finalize();
        hex(&digest[..CODE])
    }
}

/// Tasks of one session, by the ids that the server assigned.
#[derive(Debug, Default)]
pub(crate) struct SessionTasks {
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
    is_ended: bool,
    /// Form of its id for the owner.
    form: IdForm,
}

impl SessionTasks {
    fn tasks(&self) -> MutexGuard<'_, HashMap<Box<str>, Task>> {
        let mut tasks = lock(&self.tasks);
        let now = Instant::now();
        tasks.retain(|_, task| task.until > now);
        tasks
    }

    /// Returns true if any task may still run.
    pub(crate) fn are_running(&self) -> bool {
        self.tasks().values().any(|task| !task.is_ended)
    }

    /// Records the status of a task.
    fn record(&self, task: &Object<'_>, sink: &ClientSink, form: IdForm) {
        let Some(id) = task.get_str("taskId") else {
            return;
        };
        let status = task.get_str("status");
        let status = status.and_then(|word| Status::parse(&word));
        let is_ended = status.is_some_and(Status::is_terminal);
        let mut tasks = self.tasks();
        if let Some(known) = tasks.get_mut(&*id) {
            known.is_ended |= is_ended;
            return;
        }
        if tasks.len() >= TASKS {
            // An ended task is removed in favour of a running one.
            let ended = tasks.iter().find(|(_, task)| task.is_ended);
            let ended = ended.map(|(id, _)| id.clone());
            ended.map(|id| tasks.remove(&id));
        }
        if tasks.len() < TASKS {
            let ttl = ["ttl", "ttlMs"].into_iter().find_map(|key| task.get(key));
            let ttl = ttl.and_then(|raw| raw.parse().ok());
            let ttl = ttl.map_or(LONGEST, Duration::from_millis).min(LONGEST);
            let task = Task {
                sink: sink.downgrade(),
                owner: Box::from(sink.owner()),
                until: Instant::now() + ttl,
                is_ended,
                form,
            };
            tasks.insert(Box::from(&*id), task);
        }
    }

    /// Returns the sink for notifications about a task that may still run, and the form of its id.
    fn sink(&self, id: &str) -> Option<(ClientSink, IdForm)> {
        let tasks = self.tasks();
        let task = tasks.get(id).filter(|task| !task.is_ended)?;
        Some((task.sink.upgrade()?, task.form))
    }
}

/// Returns the mapping from task ids to the public ids for this owner; none if they are the same.
fn public_ids(
    connection: &UpstreamConnection,
    form: IdForm,
    owner: &str,
) -> Option<TaskMap<impl Fn(&str) -> String>> {
    let instance = match form {
        IdForm::Plain => return None,
        IdForm::Owned => EVERYWHERE,
        IdForm::Placed => &*connection.name,
    };
    Some(ids_of(instance, owner))
}

fn ids_of(instance: &str, owner: &str) -> TaskMap<impl Fn(&str) -> String> {
    TaskMap(move |task: &str| PublicTaskId { instance, task }.shown(owner))
}

/// Sends a task notification to the task's owner only. Returns false if no client has a public id of the task.
pub(crate) fn notify_task_owner(
    connection: &UpstreamConnection,
    note: &ServerNotification,
) -> bool {
    let params = &note.params;
    let task = Object::parse(params).unwrap_or_default();
    let id = task.get_str("taskId").unwrap_or_default();
    let Some((owner, form)) = connection.tasks.sink(&id) else {
        return false;
    };
    let Some(ids) = public_ids(connection, form, owner.owner()) else {
        return false;
    };
    connection.tasks.record(&task, &owner, form);
    if let Some(shown) = ids.params(note.method, params) {
        owner.try_notify(&Scope::Connection, note.method, &shown);
    }
    true
}

/// Returns the client for a question about a task, and the parameters with the client's task id.
pub(crate) fn asked_for_task(
    connection: &UpstreamConnection,
    ask: &ServerRequest,
) -> Option<(ClientSink, ByteString)> {
    let params = &ask.params;
    let (owner, form) = connection.tasks.sink(&related_task(params)?)?;
    let shown = public_ids(connection, form, owner.owner())?.params(ask.method?, params)?;
    Some((owner, shown.into()))
}

/// Form of the task ids that a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdForm {
    /// As the server assigned them.
    Plain,
    /// With the owner: every connection reaches all tasks of the endpoint, with whatever id.
    Owned,
    /// With owner and instance: only one instance knows a task, and clients share instances.
    Placed,
}

fn id_form(exchange: &Exchange) -> IdForm {
    let (down, up) = (exchange.downstream(), exchange.upstream());
    let is_shared = exchange.binding.pool().is_some();
    let is_identified = !exchange.inbound.sink.identity().principal.is_anonymous();
    match (down.era(), up.era()) {
        (Era::Legacy, Era::Legacy)
            if down.has(Feature::TasksCore) && up.has(Feature::TasksCore) =>
        {
            // A remote server may know the tasks of all its sessions, which have the credentials of the gateway.
            let is_remote = || matches!(exchange.binding.slot.shared.target, Target::Url { .. });
            match is_shared {
                true => IdForm::Placed,
                false if is_identified && is_remote() => IdForm::Owned,
                false => IdForm::Plain,
            }
        }
        (Era::Modern, Era::Modern) if !exchange.connection.upstream.is_free() && is_shared => {
            IdForm::Placed
        }
        (Era::Modern, Era::Modern) if is_identified => IdForm::Owned,
        _ => IdForm::Plain,
    }
}

/// Returns the mapping from task ids to the ids for the client; none if they are the same.
fn ids_for_client(exchange: &Exchange) -> Option<TaskMap<impl Fn(&str) -> String>> {
    let owner = exchange.inbound.sink.owner();
    public_ids(&exchange.connection, id_form(exchange), owner)
}

/// Returns the method if the request concerns one task at the server.
fn task_method(exchange: &Exchange) -> Option<Method> {
    let method = exchange.inbound.job.method?;
    let concerns_task = matches!(
        method,
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate
    );
    concerns_task.then_some(method)
}

/// Selects the instance that runs the task. Returns the parameters with the task id of that instance.
pub(crate) async fn select_instance(exchange: &mut Exchange) -> Result<Option<String>, ServeError> {
    let Some(method) = task_method(exchange) else {
        return Ok(None);
    };
    let owner = exchange.inbound.sink.owner();
    let form = id_form(exchange);
    if form == IdForm::Plain {
        return match task_id(&exchange.inbound) {
            Ok(task) if is_of_another(exchange, &task, owner) => Err(unknown_task(exchange, &task)),
            Ok(_) | Err(_) => Ok(None),
        };
    }
    let task = task_id(&exchange.inbound)?;
    let Some(id) = PublicTaskId::parse(&task, owner) else {
        return Err(unknown_task(exchange, &task));
    };
    let params = with_subject(method, &exchange.inbound.job.params, id.task);
    if form == IdForm::Owned {
        return Ok(params);
    }
    let connection = connection_of_instance(exchange, id.instance);
    let connection = connection.ok_or_else(|| task_lost(exchange))?;
    let entered = connection.running.start_call().await;
    let entered = entered.map_err(|failure| exchange.binding.error(failure))?;
    let guard = entered.ok_or_else(|| task_lost(exchange))?;
    exchange.connection = connection;
    exchange.guard = Some(guard);
    Ok(params)
}

/// Returns the open connections to all instances that the client may share.
fn open_connections(exchange: &Exchange) -> impl Iterator<Item = Arc<UpstreamConnection>> {
    let pool = exchange.binding.pool().into_iter();
    pool.flat_map(|pool| pool.open_connections(&ConnectionUser::Gateway))
}

/// Returns the open connection to the instance with this name.
fn connection_of_instance(exchange: &Exchange, name: &str) -> Option<Arc<UpstreamConnection>> {
    open_connections(exchange).find(|connection| *connection.name == *name)
}

/// Returns true if another client started the task with this id.
fn is_of_another(exchange: &Exchange, task: &str, owner: &str) -> bool {
    open_connections(exchange).any(|connection| {
        let tasks = connection.tasks.tasks();
        tasks.get(task).is_some_and(|task| *task.owner != *owner)
    })
}

/// Error for an unknown task. A task of another client gives the same error.
fn unknown_task(exchange: &Exchange, task: &str) -> ServeError {
    let why = format!("Unknown task: `{task}`; use an id that this client received");
    refuse(ErrorCode::InvalidParams, why, exchange.downstream())
}

fn task_lost(exchange: &Exchange) -> ServeError {
    let error = exchange.binding.lost_call(UpstreamErrorKind::TaskLost);
    error.into()
}

/// Refuses to resend a task request to another instance, where the id would refer to another task.
pub(crate) fn check_same_instance(exchange: &Exchange) -> Result<(), ServeError> {
    if task_method(exchange).is_some() && id_form(exchange) == IdForm::Placed {
        return Err(task_lost(exchange));
    }
    Ok(())
}

/// Records a task in a response, and replaces its id by the public one.
pub(crate) fn record_tasks(exchange: &Exchange, raw: RawResult) -> RawResult {
    let Some(method) = exchange.inbound.job.method else {
        return raw;
    };
    let (tasks, sink) = (&exchange.connection.tasks, &exchange.inbound.sink);
    let has_task = raw.may_have(SeenKeys::TASK_ID);
    let form = id_form(exchange);
    match method {
        Method::ToolsCall if may_become_task(exchange) && has_task => {
            let result = Object::parse(&raw).unwrap_or_default();
            let created = result.get("task").and_then(|raw| Object::parse(raw).ok());
            let is_task = result.get_str("resultType").as_deref() == Some("task");
            match created.filter(|_| result.get("content").is_none()) {
                Some(task) => tasks.record(&task, sink, form),
                None if is_task => tasks.record(&result, sink, form),
                None => {}
            }
        }
        Method::TasksGet | Method::TasksCancel => {
            tasks.record(&Object::parse(&raw).unwrap_or_default(), sink, form);
        }
        Method::TasksResult => {
            if let Some(id) = related_task(&raw)
                && let Some(task) = tasks.tasks().get_mut(&*id)
            {
                task.is_ended = true;
            }
        }
        _ => {}
    }
    let ids = ids_for_client(exchange).filter(|_| has_task);
    let shown = ids.and_then(|ids| ids.result(method, &raw));
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

/// Selects the instance that runs the tasks of a stream. A stream covers one instance; tasks in other instances are
/// left out.
///
/// Returns the stream parameters for the first connection, with the task ids of that instance, and those for later
/// connections. The latter contain no such tasks, because they end with the instance.
pub(crate) async fn select_stream_instance(
    exchange: &mut Exchange,
    params: ByteString,
) -> (ByteString, ByteString) {
    let filter = ListenFilter::parse(Some(&params)).unwrap_or_default();
    let owner = exchange.inbound.sink.owner();
    let is_own = |task: &&str| !is_of_another(exchange, task, owner);
    let tasks = filter.tasks.iter().map(|task| &**task);
    let form = id_form(exchange);
    if filter.tasks.is_empty() || form == IdForm::Plain {
        let first = with_tasks(&params, tasks.filter(is_own));
        return (first.clone(), first);
    }
    let ids: Vec<PublicTaskId<'_>> = tasks
        .filter_map(|task| PublicTaskId::parse(task, owner))
        .collect();
    if form == IdForm::Owned {
        let all = with_tasks(&params, ids.iter().map(|id| id.task));
        return (all.clone(), all);
    }
    let later = with_tasks(&params, std::iter::empty());
    let connection = ids
        .iter()
        .find_map(|id| connection_of_instance(exchange, id.instance));
    if let Some(connection) = connection
        && let Ok(Some(guard)) = connection.running.start_call().await
    {
        let here = ids.iter().filter(|id| *id.instance == *connection.name);
        let first = with_tasks(&params, here.map(|id| id.task));
        exchange.connection = connection;
        exchange.guard = Some(guard);
        return (first, later);
    }
    (later.clone(), later)
}

/// Replaces the task ids in a notification by the client's public ids.
pub(crate) fn with_public_task_ids(
    exchange: &Exchange,
    note: &ServerNotification,
) -> Option<String> {
    let ids = ids_for_client(exchange)?;
    match note.method {
        Method::SubscriptionsAcknowledged => edit_tasks(&note.params, |tasks| {
            edit_each(tasks, |task| Some(quoted(&(ids.0)(&text(task)?))))
        }),
        method => ids.params(method, &note.params),
    }
}

/// Returns stream parameters with exactly these tasks.
fn with_tasks<'t>(params: &ByteString, tasks: impl Iterator<Item = &'t str>) -> ByteString {
    let tasks: Vec<String> = tasks.map(quoted).collect();
    let tasks = format!("[{}]", tasks.join(","));
    edit_tasks(params, |_| Some(tasks)).map_or_else(|| params.clone(), Into::into)
}

fn edit_tasks(params: &str, change: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    edit(params, "notifications", |filter| {
        edit(filter, "taskIds", change)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_id_is_valid_only_for_its_owner_and_task() {
        let first = PublicTaskId {
            instance: "1f",
            task: "t1",
        };
        let name = first.shown("ann");
        assert_eq!(PublicTaskId::parse(&name, "ann"), Some(first));
        let second = PublicTaskId {
            task: "t2",
            ..first
        };
        let elsewhere = PublicTaskId {
            instance: "2f",
            ..first
        };
        let guessed = [
            name.replace("t1", "t2"),
            name.replace("1f-", "2f-"),
            String::from("1f:t1"),
            String::from("1f-:t1"),
            String::from("t1"),
        ];
        for guess in guessed {
            assert_eq!(PublicTaskId::parse(&guess, "ann"), None, "{guess}");
        }
        for other in [second.shown("ann"), elsewhere.shown("ann"), first.shown("")] {
            assert_ne!(other, name);
        }
        assert_eq!(PublicTaskId::parse(&name, "bob"), None);
    }

    #[test]
    fn public_id_contains_any_task_id() {
        for task in ["", "a:b", "a-b:c", "\u{e9}"] {
            let named = PublicTaskId {
                instance: "1f",
                task,
            };
            let name = named.shown("");
            assert_eq!(PublicTaskId::parse(&name, ""), Some(named), "{name}");
        }
    }
}
