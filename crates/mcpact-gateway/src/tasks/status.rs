//! Status notifications of a modern server's tasks on a change stream.

use crate::tasks::kept;
use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_wire::scan::text;

use crate::aggregate::rewrite::{edit, edit_each, quoted};
use crate::connection::UpstreamConnection;
use crate::exchange::Exchange;
use crate::tasks::ids::TaskName;
use mcpact::connection::ServerNotification;

/// Parameters of `subscriptions/listen` at a server.
#[derive(Debug)]
pub(crate) struct TaskListen {
    /// Parameters for the first connection.
    pub(crate) first: ByteString,
    /// Parameters for later connections, because the tasks of an instance end with it.
    pub(crate) later: ByteString,
}

/// Selects the instance that runs the tasks of a stream, and returns the parameters with its task ids. A stream
/// covers one instance; tasks in other instances are left out.
pub(crate) async fn go_to_tasks(exchange: &mut Exchange, params: ByteString) -> TaskListen {
    let filter = ListenFilter::parse(Some(&params)).unwrap_or_default();
    let owner = exchange.inbound.sink.owner();
    let is_own = |task: &&str| !kept::is_of_another(exchange, task, owner);
    let tasks = filter.tasks.iter().map(|task| &**task);
    if filter.tasks.is_empty() || !kept::names_tasks(exchange) {
        let first = with_tasks(&params, tasks.filter(is_own));
        let later = first.clone();
        return TaskListen { first, later };
    }
    let named: Vec<TaskName<'_>> = tasks
        .filter_map(|task| TaskName::parse(task, owner))
        .collect();
    let later = with_tasks(&params, std::iter::empty());
    let connection = named
        .iter()
        .find_map(|task| kept::lane_named(exchange, task.instance));
    let Some(connection) = connection else {
        let first = later.clone();
        return TaskListen { first, later };
    };
    let here = named
        .iter()
        .filter(|task| *task.instance == *connection.name);
    let first = match enter(exchange, &connection).await {
        true => with_tasks(&params, here.map(|task| task.task)),
        false => later.clone(),
    };
    TaskListen { first, later }
}

/// Acquires a call guard on a connection. Returns true if the connection accepts calls.
async fn enter(exchange: &mut Exchange, connection: &Arc<UpstreamConnection>) -> bool {
    let Ok(Some(guard)) = connection.running.start_call().await else {
        return false;
    };
    exchange.connection = Arc::clone(connection);
    exchange.guard = Some(guard);
    true
}

/// Replaces the task ids in a notification by the client's public ids.
pub(crate) fn task_told(exchange: &Exchange, note: &ServerNotification) -> Option<String> {
    if !kept::names_tasks(exchange) {
        return None;
    }
    let names = kept::named_tasks(&exchange.connection, exchange.inbound.sink.owner());
    match note.method {
        Method::SubscriptionsAcknowledged => edit_tasks(&note.params, |tasks| {
            edit_each(tasks, |task| Some(quoted(&(names.0)(&text(task)?))))
        }),
        method => names.params(method, &note.params),
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
