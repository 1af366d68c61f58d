//! `mcpact tasks`: lists, shows and cancels tasks of a server, and waits for their results.

use std::time::Duration;

use mcpact::client::Era;
use mcpact::model::{Task, TaskStatus, ToolResult};
use serde_json::{Value, json};

use super::{block_on_this_thread, call};
use crate::args::TasksArgs;
use crate::client::{self, ClientFailure, Session, Tasks};
use crate::error::{CliError, Exit};
use crate::report::{self, tasks};
use crate::target;

/// Default polling interval.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limits of the polling interval.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));

pub(super) fn run(args: &TasksArgs) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let (action, rest) = match rest {
        [action, rest @ ..] => (action.as_str(), rest),
        [] => ("list", rest),
    };
    let (id, rest) = match rest {
        [id, rest @ ..] => (Some(id.as_str()), rest),
        [] => (None, rest),
    };
    target::no_more(rest)?;
    let action = match (action, id) {
        ("list", None) => Action::List,
        ("list", Some(id)) => {
            target::no_more(&[id.to_owned()])?;
            Action::List
        }
        ("get" | "cancel" | "result", None) => {
            return Err(ClientFailure::MissingWord("task ID").into());
        }
        ("get", Some(id)) => Action::Get(id),
        ("cancel", Some(id)) => Action::Cancel(id),
        ("result", Some(id)) => Action::Result(id),
        (other, _) => {
            let known = ["list", "get", "cancel", "result"];
            return Err(CliError::unknown("action", other, "actions", known));
        }
    };
    block_on_this_thread(client::run(
        &args.client,
        given,
        Tasks::Declared,
        async |session| perform(session, args, &action).await,
    ))
}

/// What to do with the tasks.
enum Action<'a> {
    List,
    Get(&'a str),
    Cancel(&'a str),
    Result(&'a str),
}

async fn perform(
    session: &Session,
    args: &TasksArgs,
    action: &Action<'_>,
) -> Result<Exit, CliError> {
    let is_json = args.client.json;
    match action {
        Action::List => {
            let all = session.wait(session.client.list_tasks()).await?;
            report::print(&match is_json {
                true => report::json(&json!({ "tasks": all })),
                false => tasks::list(&all),
            })?;
        }
        Action::Get(id) => show(&get(session, id).await?, is_json)?,
        Action::Cancel(id) => {
            let params = json!({ "taskId": id });
            session.request("tasks/cancel", &params).await?;
            show(&get(session, id).await?, is_json)?;
        }
        Action::Result(id) => {
            let result = result(session, id).await?;
            return call::show_result(&result, is_json, args.out.as_deref());
        }
    }
    Ok(Exit::Ok)
}

fn show(task: &Task, is_json: bool) -> Result<(), CliError> {
    report::print(&match is_json {
        true => report::json(task),
        false => tasks::list(std::slice::from_ref(task)),
    })
}

async fn get(session: &Session, id: &str) -> Result<Task, ClientFailure> {
    let task = session
        .request("tasks/get", &json!({ "taskId": id }))
        .await?;
    session.parse("tasks/get", task)
}

/// Waits for the end of a task and returns its result.
async fn result(session: &Session, id: &str) -> Result<ToolResult, CliError> {
    let mut is_noted = false;
    let task = loop {
        let task = get(session, id).await?;
        if task.status.is_final() {
            break task;
        }
        if task.status == TaskStatus::InputRequired && !is_noted {
            is_noted = true;
            report::warn(
                &format!("task `{id}` waits for input"),
                "the client that started it can answer",
            );
        }
        let interval = task.interval_ms().map_or(INTERVAL, Duration::from_millis);
        tokio::time::sleep(interval.clamp(INTERVALS.0, INTERVALS.1)).await;
    };
    let result = match session.client.pact().era() {
        Era::Legacy => {
            session
                .request("tasks/result", &json!({ "taskId": id }))
                .await?
        }
        Era::Modern if task.status == TaskStatus::Completed => {
            task.extra.get("result").cloned().unwrap_or(Value::Null)
        }
        Era::Modern => return Err(ended_without_result(session, &task).into()),
    };
    Ok(session.parse("tasks/result", result)?)
}

fn ended_without_result(session: &Session, task: &Task) -> ClientFailure {
    let error = task
        .extra
        .get("error")
        .and_then(|error| error["message"].as_str());
    let message = error.or(task.status_message.as_deref()).unwrap_or_default();
    session.task_failed(&task.task_id, tasks::name(task.status), message)
}
