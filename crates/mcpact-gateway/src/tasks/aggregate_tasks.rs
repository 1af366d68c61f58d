//! Tasks of several servers; the public task id consists of the server name and the server's own id.

use std::sync::Arc;

use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_spec::{Capability, ErrorCode, Feature, Method, Revision};
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::rewrite::{edit, quoted};
use crate::aggregate::rewriter::Rewriter;
use crate::aggregate::sealed_state::ItemNames;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::task_ids::{qualified_id, split_id};
use crate::downstream::client::DownstreamClient;
use crate::downstream::sink::ClientSink;
use crate::error::ServeError;
use crate::exchange::refuse;
use crate::handover::subscriptions;
use crate::upstream::affinity::Evidence;
use crate::upstream::saved_client::without_progress;

/// Returns the server of a task and the task's id there.
pub(crate) fn by_task(
    aggregator: &Aggregator,
    task: &str,
    client: Revision,
) -> Result<(Arc<ServerEntry>, Box<str>), ServeError> {
    let found = split_id(task).and_then(|(place, inner)| {
        let entry = subscriptions::named(aggregator, place)?;
        Some((entry, Box::from(inner)))
    });
    found.ok_or_else(|| {
        let why = format!(
            "Unknown task: `{task}`. A task is called `SERVER:ID`, and the servers are: {}",
            aggregator.server_names()
        );
        refuse(ErrorCode::InvalidParams, why, client)
    })
}

/// Refuses a task-augmented call to a server without task support where another server has it, because the client relies
/// on getting a task. If none has it, the call has no `task` any more.
///
/// `2025-11-25 basic/utilities/tasks#tool-level-negotiation`
pub(crate) fn check_task(
    entry: &ServerEntry,
    method: Method,
    params: &str,
    client: Revision,
) -> Result<(), ServeError> {
    let wants_task = || {
        let params = Object::parse(params).unwrap_or_default();
        params.get_present("task").is_some()
    };
    if method != Method::ToolsCall
        || !client.has(Feature::TasksCore)
        || !params.contains("task\"")
        || !wants_task()
    {
        return Ok(());
    }
    let shown = entry.shown_to(client, Evidence::None);
    // A server without a known profile decides itself.
    if shown.is_none_or(|shown| shown.declared().has(Capability::ServerTasksToolsCall)) {
        return Ok(());
    }
    let why = format!("the tools of `{}` do not run as tasks", entry.name);
    Err(refuse(ErrorCode::MethodNotFound, why, client))
}

/// Lists the tasks of all servers, one server after the other.
pub(crate) async fn list_tasks(
    aggregator: &Arc<Aggregator>,
    job: &BackendRequest,
    client: &Arc<DownstreamClient>,
    sink: &ClientSink,
) -> Result<RawResult, ServeError> {
    let revision = job.pact.revision();
    let params = Object::parse(&job.params).unwrap_or_default();
    let cursor = params.get_str("cursor");
    let mut having = aggregator.server_set().entries.clone();
    having.retain(|entry| {
        let shown = entry.shown_to(revision, client.evidence());
        shown.is_some_and(|shown| shown.declared().has(Capability::ServerTasksList))
    });
    let (begin, mut inner) = match cursor.as_deref() {
        None => (0, None),
        Some(cursor) => {
            let found = split_id(cursor).and_then(|(server, inner)| {
                let at = having.iter().position(|entry| *entry.name == *server)?;
                Some((at, (!inner.is_empty()).then(|| inner.to_owned())))
            });
            found.ok_or_else(|| {
                let why = "the cursor is not known; begin again without a cursor";
                refuse(ErrorCode::InvalidParams, why, revision)
            })?
        }
    };
    for (at, entry) in having.iter().enumerate().skip(begin) {
        let params = match inner.take() {
            Some(cursor) => ObjectWriter::new().text("cursor", &cursor).finish(),
            None => String::from("{}"),
        };
        let job = BackendRequest {
            params: params.into(),
            ..without_progress(job)
        };
        let page = match subscriptions::send_for(aggregator, client, entry, sink, job).await {
            Ok(page) => Rewriter::new(aggregator, entry, &client.watched).result(
                Method::TasksList,
                page,
                ItemNames::default,
            ),
            Err(error) if at == begin && cursor.is_some() => return Err(error),
            // Skip this server; the tasks of the others are still listed.
            Err(error) => {
                let masks = &entry.server.shared.masks;
                let error = masks.cover(error.message().into_owned());
                tracing::warn!(server = %entry.name, error, "no tasks");
                continue;
            }
        };
        let after = having.get(at + 1).map(|next| qualified_id(&next.name, ""));
        return Ok(with_next(&page, &entry.name, after).into());
    }
    Ok(ObjectWriter::new().raw("tasks", "[]").finish().into())
}

/// Returns the page with a cursor to the server's next page, or else to the next server.
fn with_next(page: &str, server: &str, after: Option<String>) -> String {
    let own = edit(page, "nextCursor", |raw| {
        let cursor = mcpact_wire::scan::text(raw)?;
        Some(quoted(&qualified_id(server, &cursor)))
    });
    match (own, after) {
        (Some(own), _) => own,
        (None, None) => page.to_owned(),
        (None, Some(after)) => {
            let page = Object::parse(page).unwrap_or_default();
            let out = page.iter().filter(|(key, _)| *key != "nextCursor");
            let out = out.fold(ObjectWriter::new(), |out, (key, raw)| out.raw(key, raw));
            out.text("nextCursor", &after).finish()
        }
    }
}
