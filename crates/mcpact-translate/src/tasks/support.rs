//! Task support of tools, and the mode of a call that follows from it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::task_rule::TaskSupport;
use mcpact_spec::tables::meta::RELATED_TASK;
use mcpact_spec::{Capability, ErrorCode, Extension};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter, elements};

use crate::shape::ShapeError;
use crate::shape::members::{Members, each_element, edit, edit_body};
use crate::shape::meta::put;

/// Mode of a call to a server of 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// As any other call.
    Plain,
    /// As a task, which the client follows.
    Task,
    /// As a task that is waited for here, since the tool runs in no other way and the client knows
    /// no tasks: `tasks/result` takes the place of the call.
    Waited,
}

/// `execution.taskSupport` of the tools of one server, which newer revisions have no place for.
#[derive(Clone, Debug)]
pub struct TaskSupports {
    tools: BTreeMap<Box<str>, TaskSupport>,
    most: usize,
}

impl TaskSupports {
    /// Remembers at most so many tools; those beyond count as never running as a task.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            tools: BTreeMap::new(),
            most,
        }
    }

    /// Takes note of a page of tools, as the server sent it.
    ///
    /// # Errors
    /// The page is malformed.
    pub fn learn(&mut self, page: &str) -> Result<(), ShapeError> {
        let page = Object::parse(page)?;
        for tool in elements(page.get("tools").unwrap_or("[]"))? {
            let Ok(tool) = Object::parse(tool) else {
                continue;
            };
            let Some(name) = tool.get_str("name") else {
                continue;
            };
            let execution = tool
                .get("execution")
                .and_then(|raw| Object::parse(raw).ok());
            let word = execution.and_then(|execution| execution.get_str("taskSupport"));
            self.note(&name, TaskSupport::parse(word.as_deref()));
        }
        Ok(())
    }

    /// Only what differs from the default is worth keeping.
    fn note(&mut self, name: &str, support: TaskSupport) {
        if support == TaskSupport::Forbidden {
            self.tools.remove(name);
        } else if self.tools.len() < self.most || self.tools.contains_key(name) {
            self.tools.insert(Box::from(name), support);
        }
    }

    /// Mode of a call of this tool, for a client that follows tasks or not.
    #[must_use]
    pub fn way(&self, tool: &str, server: &CapabilitySet, follows_tasks: bool) -> CallMode {
        if !server.declared().has(Capability::ServerTasksToolsCall) {
            return CallMode::Plain;
        }
        match (self.tools.get(tool), follows_tasks) {
            (Some(TaskSupport::Optional | TaskSupport::Required), true) => CallMode::Task,
            (Some(TaskSupport::Required), false) => CallMode::Waited,
            (Some(TaskSupport::Optional | TaskSupport::Forbidden) | None, _) => CallMode::Plain,
        }
    }
}

/// The parameters of a call that is to run as a task.
///
/// # Errors
/// The parameters are malformed.
pub fn with_task(params: &str) -> Result<String, ShapeError> {
    let mut params = Members::of_body(params)?;
    params.set("task", String::from("{}"));
    Ok(params.finish().unwrap_or_default())
}

/// Returns whether a modern server refused a call only because its client did not declare tasks.
#[must_use]
pub fn wants_tasks(error: &str) -> bool {
    let inside = |raw: &str, key: &str| Some(String::from(Object::parse(raw).ok()?.get(key)?));
    let required = ErrorBody::parse(error)
        .filter(|body| body.code == ErrorCode::MissingClientCapability.code())
        .and_then(|body| inside(body.data?, "requiredCapabilities"));
    let only = required.filter(|raw| Object::parse(raw).is_ok_and(|keys| keys.len() == 1));
    let extensions = only.and_then(|raw| inside(&raw, "extensions"));
    extensions.is_some_and(|raw| {
        let wanted = Object::parse(&raw).unwrap_or_default();
        wanted.len() == 1 && wanted.get(Extension::Tasks.id()).is_some()
    })
}

/// A question or a result that says which task of 2025-11-25 it belongs to.
///
/// `2025-11-25 basic/utilities/tasks#associating-task-related-messages`
///
/// # Errors
/// The body is malformed.
pub fn related(raw: &str, task: &str) -> Result<String, ShapeError> {
    let task = ObjectWriter::new().text("taskId", task).finish();
    edit_body(raw, |body| put(body, RELATED_TASK, &task)).map(Cow::into_owned)
}

/// The id of the task that a server of 2025-11-25 made of a call; none when it made none.
#[must_use]
pub fn created_task(result: &str) -> Option<Cow<'_, str>> {
    let task = Object::parse(result).ok()?.get("task")?;
    Object::parse(task).ok()?.get_str("taskId")
}

/// A page of a modern server's tools for a client with hosted tasks: each runs either
/// way.
///
/// # Errors
/// The page is malformed.
pub fn with_task_support(page: &str) -> Result<Cow<'_, str>, ShapeError> {
    let support = |tool: &mut Members<'_>| {
        tool.set("execution", String::from(r#"{"taskSupport":"optional"}"#));
        Ok(())
    };
    edit_body(page, |body| {
        body.rewrite("tools", |raw| each_element(raw, |raw| edit(raw, support)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use mcpact_spec::Side;

    const PAGE: &str = r#"{"tools":[{"name":"never"},{"name":"either","execution":{"taskSupport":"optional"}},{"name":"only","execution":{"taskSupport":"required"}},7,{}]}"#;

    /// BB-25, XR-10: what a modern client is not told is remembered, and a tool that runs only as a
    /// task does so also for a client that knows none.
    #[test]
    fn the_tool_and_the_client_decide_how_a_call_runs() {
        let tasks = CapabilitySet::declaring(Side::Server, [Capability::ServerTasksToolsCall]);
        let none = CapabilitySet::empty(Side::Server);
        let mut supports = TaskSupports::new(9);
        supports.learn(PAGE).unwrap();
        let cells = [
            ("never", true, CallMode::Plain),
            ("either", true, CallMode::Task),
            ("either", false, CallMode::Plain),
            ("only", true, CallMode::Task),
            ("only", false, CallMode::Waited),
            ("unheard of", true, CallMode::Plain),
        ];
        for (tool, follows, expected) in cells {
            assert_eq!(supports.way(tool, &tasks, follows), expected, "{tool}");
            assert_eq!(
                supports.way(tool, &none, follows),
                CallMode::Plain,
                "{tool}"
            );
        }
        supports.learn(r#"{"tools":[{"name":"only"}]}"#).unwrap();
        assert_eq!(
            supports.way("only", &tasks, true),
            CallMode::Plain,
            "changed"
        );
        let mut small = TaskSupports::new(1);
        small.learn(PAGE).unwrap();
        assert_eq!(small.way("only", &tasks, true), CallMode::Plain, "no room");
    }

    #[test]
    fn a_refusal_for_missing_tasks_is_recognised() {
        let tasks = r#"{"io.modelcontextprotocol/tasks":{}}"#;
        let error = |code: i32, required: &str| {
            format!(
                r#"{{"code":{code},"message":"m","data":{{"requiredCapabilities":{required}}}}}"#
            )
        };
        let cells = [
            (error(-32021, &format!(r#"{{"extensions":{tasks}}}"#)), true),
            (
                error(-32020, &format!(r#"{{"extensions":{tasks}}}"#)),
                false,
            ),
            (
                error(
                    -32021,
                    &format!(r#"{{"extensions":{tasks},"sampling":{{}}}}"#),
                ),
                false,
            ),
            (error(-32021, r#"{"extensions":{"x/y":{}}}"#), false),
            (error(-32021, r#"{"elicitation":{}}"#), false),
            (String::from(r#"{"code":-32021,"message":"m"}"#), false),
        ];
        for (error, expected) in cells {
            assert_eq!(wants_tasks(&error), expected, "{error}");
        }
    }

    #[test]
    fn hosted_tasks_are_offered_for_every_tool() {
        let offered = with_task_support(r#"{"tools":[{"name":"t"}],"nextCursor":"c"}"#).unwrap();
        let expected =
            r#"{"tools":[{"name":"t","execution":{"taskSupport":"optional"}}],"nextCursor":"c"}"#;
        assert_eq!(offered, expected);
    }

    #[test]
    fn a_call_becomes_a_task() {
        let params = with_task(r#"{"name":"t"}"#).unwrap();
        assert_eq!(params, r#"{"name":"t","task":{}}"#);
        let created = r#"{"task":{"taskId":"1","status":"working"}}"#;
        assert_eq!(created_task(created).as_deref(), Some("1"));
        assert_eq!(created_task(r#"{"content":[]}"#), None);
    }
}
