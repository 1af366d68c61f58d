//! Results of tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpact_engine::refusal::Dialect;
use mcpact_spec::tables::meta;
use mcpact_spec::{Era, ErrorCode, Method, Revision};
use mcpact_translate::shape;
use serde_json::{Value, json};

use super::TaskHandle;
use crate::lock;
use crate::model::{TaskStatus, ToolResult};
use crate::server::context::Context;
use crate::server::handler_error::{HandlerError, Kind};
use crate::server::input::Question;

/// `2025-11-25 basic/utilities/tasks#result-retrieval`: waits for the end, and delivers the questions of the task to
/// the client meanwhile.
pub(super) async fn result(
    task: &Arc<TaskHandle>,
    context: &Context,
) -> Result<String, HandlerError> {
    loop {
        let changed = task.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if let Some(ended) = ended(task) {
            return ended;
        }
        let (delivery, questions) = Delivery::take(task);
        if questions.is_empty() {
            changed.await;
            continue;
        }
        match context.send_all(questions, Some(&task.id)).await {
            Ok(answers) => task.answer(answers),
            Err(error) => delivery.fail(&reason(error)),
        }
    }
}

/// Returns the response of the original request, once the task has ended.
fn ended(task: &TaskHandle) -> Option<Result<String, HandlerError>> {
    let state = lock(&task.state);
    Some(match (&state.outcome, state.status) {
        (Some(Ok(result)), _) => {
            let mut result = result.clone();
            result["_meta"][meta::RELATED_TASK] = json!({"taskId": task.id});
            Ok(result.to_string())
        }
        (Some(Err(error)), _) => Err(stored_error(error)),
        (None, TaskStatus::Cancelled) => Err(HandlerError::rpc(
            ErrorCode::InternalError.code(),
            "the task was cancelled",
        )),
        (None, _) => return None,
    })
}

/// Restores the error of a failed task.
fn stored_error(error: &Value) -> HandlerError {
    let code = error["code"].as_i64();
    let message = error["message"].as_str().unwrap_or_default();
    let code = code.unwrap_or(ErrorCode::InternalError.code());
    let restored = HandlerError::rpc(code, message);
    match error.get("data") {
        Some(data) => restored.with_data(data.clone()),
        None => restored,
    }
}

fn reason(error: HandlerError) -> String {
    match error.0 {
        Kind::Failed(text) => text,
        other => format!("{:?}", HandlerError(other)),
    }
}

/// Questions being delivered to a client. If it disconnects before it answers, the next one gets them.
struct Delivery<'t> {
    task: &'t TaskHandle,
    keys: BTreeSet<String>,
}

impl<'t> Delivery<'t> {
    /// Takes the questions that are not being delivered yet.
    fn take(task: &'t TaskHandle) -> (Self, Vec<(String, Question)>) {
        let mut state = lock(&task.state);
        let free = state
            .waiting
            .iter()
            .filter(|(key, _)| !state.in_delivery.contains(*key));
        let questions: Vec<_> = free
            .map(|(key, (question, _))| (key.clone(), question.clone()))
            .collect();
        let keys: BTreeSet<_> = questions.iter().map(|(key, _)| key.clone()).collect();
        state.in_delivery.extend(keys.iter().cloned());
        (Self { task, keys }, questions)
    }

    /// Fails the questions, so that the handler continues.
    fn fail(&self, why: &str) {
        let mut state = lock(&self.task.state);
        for key in &self.keys {
            state.settle(key, Err(why.to_owned()));
        }
        self.task.resume(state);
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let mut state = lock(&self.task.state);
        state.in_delivery.retain(|key| !self.keys.contains(key));
        drop(state);
        self.task.changed.notify_waiters();
    }
}

/// Stores the outcome. A failed tool counts as completed in the extension, and as failed in the core feature.
pub(super) fn finish(
    task: &TaskHandle,
    outcome: Result<ToolResult, HandlerError>,
    dialect: Dialect,
) {
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
            (status, Ok(shaped(&result, dialect.revision)))
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
    task.advance(status, |state| {
        state.message = match &outcome {
            Ok(result) if status == TaskStatus::Failed => {
                result["content"][0]["text"].as_str().map(str::to_owned)
            }
            Ok(_) => Some(String::from("The operation has ended.")),
            Err(error) => error["message"].as_str().map(str::to_owned),
        };
        state.outcome = Some(outcome);
    });
}

/// Encodes the result as the response of the call in this revision.
fn shaped(result: &ToolResult, revision: Revision) -> Value {
    let raw = serde_json::to_string(result).unwrap_or_default();
    let shaped = match revision.era() {
        Era::Legacy => shape::result_to_legacy(Method::ToolsCall, &raw, revision),
        Era::Modern => shape::result_to_modern(Method::ToolsCall, &raw, revision, None),
    };
    shaped
        .ok()
        .and_then(|shaped| serde_json::from_str(&shaped).ok())
        .unwrap_or_default()
}
