//! Names of tasks inside messages, so that the tasks of several servers or sessions do not get mixed up.

use mcpact_spec::Method;
use mcpact_spec::tables::meta::RELATED_TASK;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::text;

use super::rewrite::{edit, edit_each, quoted};

/// The name of a task together with the place that knows it; the place has no colon.
pub(crate) fn placed(place: &str, task: &str) -> String {
    format!("{place}:{task}")
}

/// The place that knows a task, and what the task is called there.
pub(crate) fn place_of(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(':')
}

/// Shows the names of tasks in another form.
#[derive(Debug)]
pub(crate) struct TaskMap<F>(pub(crate) F);

impl<F: Fn(&str) -> String> TaskMap<F> {
    /// The result of a method with its tasks shown; none if there is nothing to change.
    pub(crate) fn result(&self, method: Method, raw: &str) -> Option<String> {
        if !mentions_task(raw) {
            return None;
        }
        let shown = match method {
            Method::TasksGet | Method::TasksCancel | Method::TasksUpdate => self.member(raw),
            Method::TasksList => edit(raw, "tasks", |all| edit_each(all, |task| self.member(task))),
            Method::ToolsCall => self.created(raw),
            _ => None,
        };
        let related = self.related(shown.as_deref().unwrap_or(raw));
        related.or(shown)
    }

    /// The parameters of a notification or a question, likewise.
    pub(crate) fn params(&self, method: Method, raw: &str) -> Option<String> {
        if !mentions_task(raw) {
            return None;
        }
        match method {
            Method::TasksStatus | Method::TasksChanged => self.member(raw),
            _ => self.related(raw),
        }
    }

    /// A call that has become a task, in the words of either era.
    fn created(&self, raw: &str) -> Option<String> {
        let result = Object::parse(raw).ok()?;
        if result.get_str("resultType").as_deref() == Some("task") {
            return self.member(raw);
        }
        // What a finished call returns is its own business.
        result.get("content").is_none().then_some(())?;
        edit(raw, "task", |task| self.member(task))
    }

    /// An object that is a task.
    fn member(&self, raw: &str) -> Option<String> {
        edit(raw, "taskId", |raw| Some(quoted(&(self.0)(&text(raw)?))))
    }

    /// A message that belongs to a task.
    fn related(&self, raw: &str) -> Option<String> {
        edit(raw, "_meta", |meta| {
            edit(meta, RELATED_TASK, |task| self.member(task))
        })
    }
}

/// Most messages are about no task, and are not looked into.
fn mentions_task(raw: &str) -> bool {
    raw.contains("taskId\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks are shown under names of their own wherever a message names one, and nowhere else.
    #[test]
    fn names_of_tasks_are_shown() {
        let map = TaskMap(|task: &str| placed("a", task));
        let cells = [
            (
                Method::ToolsCall,
                r#"{"task":{"taskId":"1","ttl":5}}"#,
                Some(r#"{"task":{"taskId":"a:1","ttl":5}}"#),
            ),
            (
                Method::ToolsCall,
                r#"{"resultType":"task","taskId":"1"}"#,
                Some(r#"{"resultType":"task","taskId":"a:1"}"#),
            ),
            (
                Method::ToolsCall,
                r#"{"content":[],"task":{"taskId":"1"}}"#,
                None,
            ),
            (
                Method::TasksGet,
                r#"{"taskId":"1"}"#,
                Some(r#"{"taskId":"a:1"}"#),
            ),
            (
                Method::TasksList,
                r#"{"tasks":[{"taskId":"1"},{"taskId":"2"}]}"#,
                Some(r#"{"tasks":[{"taskId":"a:1"},{"taskId":"a:2"}]}"#),
            ),
            (
                Method::TasksResult,
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#,
                Some(
                    r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a:1"}}}"#,
                ),
            ),
            (Method::ResourcesRead, r#"{"taskId":"1"}"#, None),
        ];
        for (method, raw, expected) in cells {
            assert_eq!(map.result(method, raw).as_deref(), expected, "{raw}");
        }
        let told = map.params(Method::TasksStatus, r#"{"taskId":"1"}"#);
        assert_eq!(told.as_deref(), Some(r#"{"taskId":"a:1"}"#));
        assert_eq!(map.params(Method::Progress, r#"{"taskId":"1"}"#), None);
        assert_eq!(place_of("a:b:c"), Some(("a", "b:c")));
        assert_eq!(place_of("abc"), None);
    }
}
