//! Status notifications of a modern server's tasks on a change stream.

use std::sync::Arc;

use bytestring::ByteString;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_wire::scan::text;

use mcpact::connection::ServerNotification;

use crate::aggregate::rewrite::{edit, edit_each, quoted};
use crate::exchange::Exchange;
use crate::tasks::ids::TaskName;
use crate::tasks::kept;

/// Selects the instance that runs the tasks of a stream. A stream covers one instance; tasks in other instances are
/// left out.
///
/// Returns the stream parameters for the first connection, with the task ids of that instance, and those for later
/// connections. The latter contain no such tasks, because they end with the instance.
pub(crate) async fn select_instance(
    exchange: &mut Exchange,
    params: ByteString,
) -> (ByteString, ByteString) {
    let filter = ListenFilter::parse(Some(&params)).unwrap_or_default();
    let owner = exchange.inbound.sink.owner();
    let is_own = |task: &&str| !kept::is_of_another(exchange, task, owner);
    let tasks = filter.tasks.iter().map(|task| &**task);
    if filter.tasks.is_empty() || !kept::names_tasks(exchange) {
        let first = with_tasks(&params, tasks.filter(is_own));
        return (first.clone(), first);
    }
    let named: Vec<TaskName<'_>> = tasks
        .filter_map(|task| TaskName::parse(task, owner))
        .collect();
    let later = with_tasks(&params, std::iter::empty());
    let connection = named
        .iter()
        .find_map(|task| kept::connection_named(exchange, task.instance));
    let Some(connection) = connection else {
        return (later.clone(), later);
    };
    let here = named
        .iter()
        .filter(|task| *task.instance == *connection.name);
    let Ok(Some(guard)) = connection.running.start_call().await else {
        return (later.clone(), later);
    };
    let first = with_tasks(&params, here.map(|task| task.task));
    exchange.connection = Arc::clone(&connection);
    exchange.guard = Some(guard);
    (first, later)
}

/// Replaces the task ids in a notification by the client's public ids.
pub(crate) fn with_public_ids(exchange: &Exchange, note: &ServerNotification) -> Option<String> {
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
